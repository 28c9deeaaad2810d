"""The dispatcher's tick: due schedules are claimed, judged and written down, all in one transaction (DSP-3, DSP-5).

For each due schedule: the domain decides what becomes of the slot, the gates may turn a firing into a skip, and then
the ledger's row, the session, the run, the audit entry and the next instant are committed together or not at all. Runs
that this process has room for are born claimed and handed to its runner after the commit; the rest wait in the queue.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.errors import Unavailable
from gnomon.domain.grant import Grant
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services.claiming import HELD_SECONDS
from gnomon.services.gates import Gates
from gnomon.services.lost_claims import LostClaims
from gnomon.services.mint import Mint
from gnomon.services.slot_plan import Plan, SetAside, Stop, Taken, plan_slot
from gnomon.stores import audit, runs, slots
from gnomon.stores.database import Database, Row, Tx

BATCH = 100
ACTOR = "dispatcher"
# Handing a run over costs half of what the queue does, so a full runner is given a moment; slow targets make a backlog
# wait no longer than this for each hundred slots.
PLACE_SECONDS = 0.01
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

    claimed: int = 0
    queued: int = 0
    worst_lag_us: int = 0
    taken: list[Taken] = field(default_factory=list)
    outcomes: list[tuple[str, str]] = field(default_factory=list)


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
        self._lost_claims = LostClaims(database, process_id, wakeup)
        self.lag_us = 0
        # slots by disposition and reason, for the metrics
        self.recorded: Counter[tuple[str, str]] = Counter()

    async def tick(self) -> float | None:
        """Record every slot that is due; seconds until the next one, or ``None`` where no schedule has any."""
        worst = 0
        left = False
        await self._lost_claims.settle()
        while True:
            wait_us = await self._database.read(slots.next_due)
            if wait_us is None or wait_us > 0:  # the common tick reads once and writes nothing
                self.lag_us = worst
                return None if wait_us is None else wait_us / SECOND
            if not self._may_claim():
                return NOT_YET_SECONDS
            if left:
                return HELD_SECONDS
            scan = await self._scan()
            worst = max(worst, scan.worst_lag_us)
            while scan.claimed == self._batch:
                scan = await self._scan()
                worst = max(worst, scan.worst_lag_us)
            left = not scan.claimed

    async def _scan(self) -> _Scan:
        await self._runner.wait_for_place(PLACE_SECONDS)
        places = self._runner.reserve(self._batch)
        taken_at = self._clock.monotonic()
        claim_id = self._mint.make(Kind.CLAIM)
        scan = _Scan()
        try:
            scan = await failpoints.through(
                "claim", self._database.write_guarded, lambda tx: self._claim(tx, claim_id, places)
            )
        except Unavailable:
            self._lost_claims.doubt(claim_id)
            raise
        finally:
            self._runner.take([taken.grant(taken_at) for taken in scan.taken], places)
        self.recorded.update(scan.outcomes)
        if scan.queued:
            self._wakeup.notify()
        return scan

    async def _claim(self, tx: Tx, claim_id: str, places: int) -> _Scan:
        due = await slots.claim_due(tx, self._batch)
        scan = _Scan(claimed=len(due))
        if not due:
            return scan
        verdicts = await self._gates.judge(tx, {(row["target_kind"], row["target_id"]) for row in due})
        calendars = await self._holidays(tx, due)
        plans: list[Plan] = []
        for row, run_id in zip(due, self._mint.many(Kind.RUN, len(due)), strict=True):
            scan.worst_lag_us = max(scan.worst_lag_us, row["now"] - row["next_fire_at"])
            plan = plan_slot(
                row,
                verdict=verdicts[row["target_kind"], row["target_id"]],
                holidays=calendars.get(row["calendar"], frozenset()),
                run_id=run_id,
                owner=self._process_id if len(scan.taken) < places else None,
                claim_id=claim_id,
            )
            if isinstance(plan, SetAside):
                await self._set_aside(tx, row, plan)
                continue
            plans.append(plan)
            if plan.taken is not None:
                scan.taken.append(plan.taken)
        await self._write(tx, plans, scan)
        return scan

    async def _write(self, tx: Tx, plans: list[Plan], scan: _Scan) -> None:
        occurrences = [plan.occurrence for plan in plans if plan.occurrence is not None]
        recorded = await slots.record(tx, occurrences) if occurrences else set()
        if len(recorded) < len(occurrences):
            plans = [plan if plan.is_recorded_by(recorded) else plan.without_slot() for plan in plans]
            kept = {plan.run.id for plan in plans if plan.run is not None}
            scan.taken = [taken for taken in scan.taken if taken.run.id in kept]
        scan.outcomes = [plan.outcome() for plan in plans if plan.occurrence is not None]
        new = [plan.run for plan in plans if plan.run is not None]
        scan.queued = len(new) - len(scan.taken)
        if new:
            await runs.insert(tx, new)
        failpoints.reach("claim.recorded")
        await slots.advance(tx, [plan.advance for plan in plans])
        await audit.append_many(tx, [entry for plan in plans for entry in plan.audit])
        for plan in plans:
            if plan.cancel_run_id is not None:
                await self._cancel(tx, plan.cancel_run_id, plan.schedule_id)
            if plan.stop is not None:
                await self._stop(tx, plan.schedule_id, plan.stop)

    async def _cancel(self, tx: Tx, run_id: str, schedule_id: str) -> None:
        """``cancel_running``: a queued run is closed here, a running one is asked to stop."""
        closed = await runs.close_queued(tx, run_id, "cancelled", "cancelled", "A newer slot came due.")
        if closed is not None:
            await runs.settle(tx, [{"run_id": run_id, "schedule_id": schedule_id, "clears": 0}])
        else:
            await runs.ask_cancel(tx, run_id, ACTOR)
        await audit.append(
            tx,
            actor=ACTOR,
            action=Action.CANCEL,
            subject_kind="run",
            subject_id=run_id,
            detail={"reason": "cancel_running"},
        )

    async def _stop(self, tx: Tx, schedule_id: str, stop: Stop) -> None:
        if await slots.stop(tx, schedule_id, "active", stop.status, ACTOR, stop.reason):
            await audit.append(
                tx,
                actor=ACTOR,
                action=stop.action,
                subject_kind="schedule",
                subject_id=schedule_id,
                detail={"reason": stop.reason},
            )

    async def _set_aside(self, tx: Tx, row: Row, plan: SetAside) -> None:
        """A schedule whose next slot can't be computed stops alone, and says why (DSP-9a)."""
        _log.error("schedule_set_aside", schedule_id=row["id"], error=plan.error)
        await slots.stop(
            tx, row["id"], "active", "error", ACTOR, "its next slot can't be computed", "cadence", plan.error
        )
        await audit.append(
            tx,
            actor=ACTOR,
            action=Action.SET_ASIDE,
            subject_kind="schedule",
            subject_id=row["id"],
            detail={"error": plan.error, "next_fire_at": row["next_fire_at"]},
        )

    async def _holidays(self, tx: Tx, due: list[Row]) -> dict[str, frozenset[date]]:
        slugs = {row["calendar"] for row in due if row["calendar"] is not None}
        return await slots.holidays(tx, slugs) if slugs else {}
