"""The dispatcher's tick: due schedules are seen, judged, and what became of them is written (DSP-3, DSP-5).

For each due schedule: the domain decides what becomes of the slot, the gates may turn a firing into a skip, and then
the ledger's row, the session, the run, the audit entry and the next instant are committed together or not at all. The
planning holds no lock where an engine has one writer, so whoever is not any more as it was seen is left for the next scan. Runs
that this process has room for are born claimed and handed to its runner after the commit; the rest wait in the queue.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import NamedTuple, Protocol
from zlib import crc32

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.domain.grant import Grant
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services.claiming import HELD_SECONDS
from gnomon.services.gates import Gates, TargetKey, Verdict
from gnomon.services.lost_claims import LostClaims
from gnomon.services.mint import Mint
from gnomon.services.slot_ends import cancel_running, stop
from gnomon.services.slot_plan import Plan, Taken, plan_slot
from gnomon.stores import audit, runs, slots
from gnomon.stores.database import Database, Landed, Row, Tx, UniqueViolation

BATCH = 100
ACTOR = "dispatcher"
# Handing a run over costs half of what the queue does, so a full runner is given a moment; slow targets make a backlog
# wait no longer than this for each hundred slots.
PLACE_SECONDS = 0.01
# Processes that plan over one list take the same slots, and all but one have planned for nothing. Whoever lost takes
# its next batch from so many windows of the list, one by chance.
MOST_WINDOWS = 16
# For so long after a loss, what is due is held while it is planned, where the engine can
CROWDED_SECONDS = 1.0
NOT_YET_SECONDS = 0.2  # until the heartbeat of a process that stood still is fresh again
_log = structlog.get_logger()


class Receives(Protocol):
    """The runner of the same process, as the dispatcher sees it."""

    def reserve(self, most: int) -> int:
        """Set up to ``most`` free places aside; how many there were."""

    async def wait_for_place(self, seconds: float) -> None:
        """Return as soon as there is a free place, or after ``seconds``."""

    def take(self, grants: list[Grant], reserved: int) -> None:
        """Start these runs; ``reserved`` places are given back, used or not."""


class NoRunner:
    """For a process that dispatches and does not work: every run goes to the queue."""

    def reserve(self, most: int) -> int:  # noqa: ARG002 - there is never any
        """No place at all."""
        return 0

    async def wait_for_place(self, seconds: float) -> None:
        """There never will be one."""

    def take(self, grants: list[Grant], reserved: int) -> None:
        """Nothing was reserved, so nothing can come."""
        assert not grants
        assert not reserved


@dataclass(slots=True)
class _Scan:
    """What one transaction did."""

    seen: int = 0
    moved: int = 0  # of them, those that still were as they had been seen
    queued: int = 0
    worst_lag_us: int = 0
    taken: list[Taken] = field(default_factory=list)
    outcomes: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Written:
    """What was planned, and which of it landed: known after the commit."""

    planned: list[Plan]
    landed: Landed

    def scan(self) -> _Scan:
        """What came of it."""
        plans = [plan for plan in self.planned if plan.schedule_id in self.landed.ids]
        taken = [plan.taken for plan in plans if plan.taken is not None]
        return _Scan(
            seen=len(self.planned),
            moved=len(plans),
            queued=sum(plan.run is not None for plan in plans) - len(taken),
            worst_lag_us=max(plan.lag_us() for plan in self.planned),
            taken=taken,
            outcomes=[plan.outcome() for plan in plans if plan.occurrence is not None],
        )


class _Seen(NamedTuple):
    """What a scan has read."""

    due: list[Row]
    verdicts: dict[TargetKey, Verdict]
    calendars: dict[str, frozenset[date]]


class Dispatcher:
    """Claims due slots; one of any number, in any number of processes."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        mint: Mint,
        wakeup: Wakeup,
        gates: Gates,
        runner: Receives,
        process_id: str,
        may_claim: Callable[[], bool] = lambda: True,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._wakeup = wakeup
        self._gates = gates
        self._runner = runner
        self._process_id = process_id
        self._may_claim = may_claim
        self._batch = batch
        self.lost_claims = LostClaims(database, clock, process_id, wakeup)
        self._spread = 1
        self._crowded_until = 0.0
        self.lag_us = 0
        # slots by disposition and reason, for the metrics
        self.recorded: Counter[tuple[str, str]] = Counter()

    async def tick(self) -> float | None:
        """Record every slot that is due; seconds until the next one, or ``None`` where no schedule has any."""
        worst = 0
        left = False
        await self.lost_claims.settle()
        while True:
            wait_us = await self._database.look(slots.next_due)
            if wait_us is None or wait_us > 0:  # the common tick reads once and writes nothing
                self.lag_us = worst
                return None if wait_us is None else wait_us / SECOND
            if not self._may_claim():
                return NOT_YET_SECONDS
            if left:
                return HELD_SECONDS
            scan = await self._scan()
            worst = max(worst, scan.worst_lag_us)
            while scan.seen == self._batch and (scan.moved or self._spread < MOST_WINDOWS):
                scan = await self._scan()
                worst = max(worst, scan.worst_lag_us)
            left = not scan.moved and (not scan.seen or self._spread == MOST_WINDOWS)

    async def _scan(self) -> _Scan:
        await self._runner.wait_for_place(PLACE_SECONDS)
        places = self._runner.reserve(self._batch)
        taken_at = self._clock.monotonic()
        claim_id = self._mint.make(Kind.CLAIM)
        scan = _Scan()
        claim = partial(self._claim, claim_id, places)
        try:
            try:
                written = await claim(_write)
            except UniqueViolation:  # a slot is in the ledger: a restored file, a clock that went back
                written = await claim(_write_the_unrecorded)
            scan = scan if written is None else written.scan()
        except Unavailable as error:
            self.lost_claims.doubt(claim_id, error)
            raise
        finally:
            self._runner.take([taken.grant(taken_at) for taken in scan.taken], places)
        self.recorded.update(scan.outcomes)
        if scan.queued:
            self._wakeup.notify()
        if scan.seen:
            self._spread = max(1, self._spread - 1) if scan.moved else min(2 * self._spread, MOST_WINDOWS)
        if scan.moved < scan.seen:
            self._crowded_until = self._clock.monotonic() + CROWDED_SECONDS
        return scan

    async def _claim(
        self, claim_id: str, places: int, write: Callable[[Tx, list[Plan]], Awaitable[_Written]]
    ) -> _Written | None:
        crowded = self._clock.monotonic() < self._crowded_until
        look = partial(self._look, crc32(claim_id.encode()) % self._spread, crowded)
        planned = partial(
            self._database.write_planned, look, partial(self._plan, claim_id, places), crowded=crowded
        )
        return await failpoints.through("claim", planned, write)

    async def _look(self, window: int, crowded: bool, tx: Tx) -> _Seen:
        """What is due, and what a decision about it needs to know."""
        due = await slots.claim_due(tx, self._batch, window * self._batch, hold=crowded)
        if not due and window:
            due = await slots.claim_due(tx, self._batch, hold=crowded)
        if not due:
            return _Seen(due, {}, {})
        verdicts = await self._gates.judge(tx, {(row["target_kind"], row["target_id"]) for row in due})
        return _Seen(due, verdicts, await self._holidays(tx, due))

    def _plan(self, claim_id: str, places: int, seen: _Seen) -> list[Plan] | None:
        """What becomes of each; ``None`` where nothing is due."""
        plans: list[Plan] = []
        for row, run_id in zip(seen.due, self._mint.many(Kind.RUN, len(seen.due)), strict=True):
            plan = plan_slot(
                row,
                verdict=seen.verdicts[row["target_kind"], row["target_id"]],
                holidays=seen.calendars.get(row["calendar"], frozenset()),
                run_id=run_id,
                owner=self._process_id if places > 0 else None,
                claim_id=claim_id,
            )
            places -= plan.taken is not None
            plans.append(plan)
        return plans or None

    async def _holidays(self, tx: Tx, due: list[Row]) -> dict[str, frozenset[date]]:
        slugs = {row["calendar"] for row in due if row["calendar"] is not None}
        return await slots.holidays(tx, slugs) if slugs else {}


async def _write(tx: Tx, planned: list[Plan]) -> _Written:
    """Write down what was planned, for those that still are as they were seen.

    Raises:
        UniqueViolation: the ledger holds one of the slots; nothing may be committed.
    """
    landed = await slots.advance(tx, [plan.advance for plan in planned])
    born = [plan for plan in planned if plan.run is not None]
    await runs.insert(
        tx, [plan.run for plan in born if plan.run is not None], landed, [plan.schedule_id for plan in born]
    )
    failpoints.reach("claim.recorded")
    told = [(entry, plan.schedule_id) for plan in planned for entry in plan.audit]
    await audit.append_many(tx, [entry for entry, _ in told], landed, [one for _, one in told])
    entered = [(plan.occurrence, plan.schedule_id) for plan in planned if plan.occurrence is not None]
    await slots.enter(tx, [slot for slot, _ in entered], landed, [one for _, one in entered])
    if any(plan.goes_on for plan in planned):
        await tx.send()
        for plan in planned:
            if plan.schedule_id in landed.ids:
                await _go_on(tx, plan)
    return _Written(planned, landed)


async def _go_on(tx: Tx, plan: Plan) -> None:
    """What few slots bring with them: a run that makes way, a schedule that leaves ``active``."""
    if plan.cancel_run_id is not None:
        await cancel_running(tx, plan.cancel_run_id)
    if plan.stop is not None:
        await stop(tx, plan.schedule_id, plan.stop)


async def _write_the_unrecorded(tx: Tx, planned: list[Plan]) -> _Written:
    """The same where the ledger holds some of the slots: their schedules move on, nothing starts (DSP-6)."""
    occurrences = [plan.occurrence for plan in planned if plan.occurrence is not None]
    recorded = await slots.recorded(tx, occurrences)
    return await _write(
        tx, [plan.without_slot() if plan.schedule_id in recorded else plan for plan in planned]
    )
