"""Pushed jobs of one process over one database, built together: who makes triggers, who sends them, who hears of them.

As ``engine``, it knows no settings and no edge; the connections are the process's own.
"""

from collections.abc import Callable

from gnomon.ports.telemetry import TriggerCounts
from gnomon.services.agenda import next_delivery, next_job
from gnomon.services.connections import Connections
from gnomon.services.job_dispatcher import JobDispatcher
from gnomon.services.loop import Errand
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.trigger_delivery import TriggerDelivery
from gnomon.services.trigger_sweep import TriggerSweep
from gnomon.services.triggers import Triggers
from gnomon.stores.database import Database


class JobEngine:
    """The parts that tick, and those that instances speak to (JOB-2, JOB-4)."""

    def __init__(
        self,
        *,
        database: Database,
        connections: Connections,
        mint: Mint,
        signal: Signal,
        process_id: str,
        heartbeat_timeout_seconds: float,
        may_claim: Callable[[], bool],
        calm_us: Callable[[], int | None],
    ) -> None:
        self.sweep = TriggerSweep(
            database, signal, heartbeat_timeout_seconds=heartbeat_timeout_seconds, calm_us=calm_us
        )
        self.delivery = TriggerDelivery(
            database=database, push=connections, wakeup=signal, process_id=process_id, sweep=self.sweep
        )
        self.dispatcher = JobDispatcher(database=database, mint=mint, wakeup=signal, may_claim=may_claim)
        self.triggers = Triggers(
            database, connections, signal, heartbeat_timeout_seconds=heartbeat_timeout_seconds
        )
        connections.on("ack", self.triggers.acknowledge)
        connections.on("result", self.triggers.finish)
        connections.on_hello(self.triggers.hello)
        connections.on_gone(self.delivery.gone)

    def counts(self) -> TriggerCounts:
        """What this process has done since its start, for the metrics (OPS-6)."""
        return TriggerCounts(
            made=dict(self.dispatcher.made),
            pushed=dict(self.delivery.pushed),
            ended=dict(self.triggers.ended),
        )

    def errands(self, tick_seconds: float, *, dispatches: bool) -> tuple[Errand, ...]:
        """What ticks beside the engine: the delivery wherever connections are held, the jobs where it dispatches."""
        delivery = Errand("trigger", self.delivery.tick, tick_seconds, due_at=next_delivery)
        if not dispatches:
            return (delivery,)
        jobs = Errand("jobs", self.dispatcher.tick, tick_seconds, begins=True, due_at=next_job)
        return jobs, delivery
