"""The counts of a process as Prometheus metrics: names with their unit, no id and no tenant as a label."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gnomon.ports.telemetry import Counts

SECOND = 1_000_000


class ProcessCollector(Collector):
    """Reads the counts at each scrape; nothing is counted twice."""

    def __init__(self, counts: Callable[[], Counts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """The metrics as they stand."""
        counts = self._counts()
        slots = CounterMetricFamily(
            "gnomon_slots", "Slots recorded by this process.", labels=["disposition", "reason"]
        )
        for (disposition, reason), number in sorted(counts.slots.items()):
            slots.add_metric([disposition, reason], number)
        yield slots
        runs = CounterMetricFamily("gnomon_runs", "Runs closed by this process.", labels=["status"])
        for status, number in sorted(counts.runs.items()):
            runs.add_metric([status], number)
        yield runs
        yield GaugeMetricFamily("gnomon_runs_in_work", "Runs in work in this process.", counts.in_work)
        yield GaugeMetricFamily(
            "gnomon_dispatch_lag_seconds", "How late the latest slot was recorded.", counts.lag_us / SECOND
        )
        if counts.ticked_at_us is not None:
            yield GaugeMetricFamily(
                "gnomon_last_tick_timestamp_seconds",
                "When the dispatcher last looked for due slots.",
                counts.ticked_at_us / SECOND,
            )
