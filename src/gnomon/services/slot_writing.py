"""What a scan has planned, written down: the ledger's rows, the runs, the audit, the schedules moved on (DSP-5)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gnomon.ports import failpoints
from gnomon.services.slot_ends import cancel_running, stop
from gnomon.services.slot_plan import Plan, Taken
from gnomon.stores import audit, runs, slots
from gnomon.stores.database import Landed, Tx


@dataclass(slots=True)
class Scan:
    """What one transaction did, or several that one look led to."""

    seen: int = 0
    moved: int = 0  # of them, those that still were as they had been seen
    more: bool = False  # there may be more of the list
    worst_lag_us: int = 0
    queued: int = 0
    taken: list[Taken] = field(default_factory=list)
    outcomes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def lost(self) -> bool:
        """Whether somebody else was at the same list."""
        return self.moved < self.seen

    def add(self, batch: "Scan") -> None:
        """Count one of its batches in."""
        self.seen += batch.seen
        self.moved += batch.moved
        self.worst_lag_us = max(self.worst_lag_us, batch.worst_lag_us)


@dataclass(frozen=True, slots=True)
class Written:
    """What was planned, and which of it landed: known after the commit."""

    planned: list[Plan]
    landed: Landed

    def scan(self) -> Scan:
        """What came of it."""
        plans = [plan for plan in self.planned if plan.schedule_id in self.landed.ids]
        taken = [plan.taken for plan in plans if plan.taken is not None]
        return Scan(
            seen=len(self.planned),
            moved=len(plans),
            queued=sum(plan.run is not None for plan in plans) - len(taken),
            worst_lag_us=max(plan.lag_us() for plan in self.planned),
            taken=taken,
            outcomes=[plan.outcome() for plan in plans if plan.entry is not None],
        )


Write = Callable[[Tx, list[Plan]], Awaitable[Written]]


async def write(tx: Tx, planned: list[Plan]) -> Written:
    """Write down what was planned, for those that still are as they were seen.

    Raises:
        UniqueViolation: the ledger holds one of the slots; nothing may be committed.
    """
    landed = await put_down(tx, planned)
    failpoints.reach("claim.recorded")
    if any(plan.goes_on for plan in planned):
        await tx.send()
        await _go_on(tx, [plan for plan in planned if plan.schedule_id in landed.ids])
    return Written(planned, landed)


async def put_down(tx: Tx, planned: list[Plan]) -> Landed:
    """The schedules moved on, their runs, the audit and the ledger's rows: what each slot is, in one statement where it can.

    Raises:
        UniqueViolation: likewise.
    """
    landed = await slots.advance(tx, [plan.advance for plan in planned])
    born = [plan for plan in planned if plan.run is not None]
    await runs.insert(
        tx, [plan.run for plan in born if plan.run is not None], landed, [plan.schedule_id for plan in born]
    )
    told = [(line, plan.schedule_id) for plan in planned for line in plan.audit]
    await audit.append_many(tx, [line for line, _ in told], landed, [one for _, one in told])
    entered = [(plan.entry, plan.schedule_id) for plan in planned if plan.entry is not None]
    await slots.enter(tx, [slot for slot, _ in entered], landed, [one for _, one in entered])
    return landed


async def _go_on(tx: Tx, landed: list[Plan]) -> None:
    """What some slots bring with them: runs that make way, schedules that leave ``active``."""
    for plan in landed:
        if plan.cancel_run_id is not None:
            await cancel_running(tx, plan.cancel_run_id)
    await stop(tx, {plan.schedule_id: plan.stop for plan in landed if plan.stop is not None})


async def write_the_unrecorded(tx: Tx, planned: list[Plan]) -> Written:
    """The same where the ledger holds some of the slots: their schedules move on, nothing starts (DSP-6)."""
    entries = [plan.entry for plan in planned if plan.entry is not None]
    recorded = await slots.recorded(tx, [(entry.schedule_id, entry.nominal_fire_at) for entry in entries])
    return await write(
        tx, [plan.without_slot() if plan.schedule_id in recorded else plan for plan in planned]
    )
