"""The counts of a process as Prometheus metrics: names with their unit, no id and no tenant as a label."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gnomon.ports.telemetry import Counts, TriggerCounts

SECOND = 1_000_000


class BoardCollector(Collector):
    """How many tasks can be claimed, by role, as they were at the process's last sweep: a scrape asks no database."""

    def __init__(self, depths: Callable[[], Mapping[str, int]]) -> None:
        self._depths = depths

    def collect(self) -> Iterator[Metric]:
        """The metric as it stands."""
        claimable = GaugeMetricFamily(
            "gnomon_tasks_claimable", "Tasks that can be claimed, at the last sweep.", labels=["role"]
        )
        for role, depth in sorted(self._depths().items()):
            claimable.add_metric([role], depth)
        yield claimable


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
        yield GaugeMetricFamily(
            "gnomon_runs_in_work",
            "Runs in work in this process, with those whose end is being written.",
            counts.in_work,
        )
        yield GaugeMetricFamily(
            "gnomon_dispatch_lag_seconds", "How late the latest slot was recorded.", counts.lag_us / SECOND
        )
        if counts.ticked_at_us is not None:
            yield GaugeMetricFamily(
                "gnomon_last_tick_timestamp_seconds",
                "When the dispatcher last looked for due slots.",
                counts.ticked_at_us / SECOND,
            )


class TriggerCollector(Collector):
    """The same for triggers."""

    def __init__(self, counts: Callable[[], TriggerCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """The metrics as they stand."""
        counts = self._counts()
        what = CounterMetricFamily(
            "gnomon_triggers", "Triggers of jobs, by what became of them in this process.", labels=["outcome"]
        )
        for outcome, number in sorted({**counts.made, **counts.ended}.items()):
            what.add_metric([outcome], number)
        yield what
        pushes = CounterMetricFamily(
            "gnomon_trigger_pushes", "Triggers sent by this process.", labels=["redelivered"]
        )
        for kind, number in sorted(counts.pushed.items()):
            pushes.add_metric([str(kind == "redelivered").lower()], number)
        yield pushes


class ConnectionCollector(Collector):
    """How many instances are connected here."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """The metric as it stands."""
        told = "Instances whose connection this process holds."
        yield GaugeMetricFamily("gnomon_instances_connected", told, self._count())
