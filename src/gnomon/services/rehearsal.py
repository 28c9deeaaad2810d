"""A process goes through its work once over nothing before its loops start, so that its first slot is not a late one.

A server plans each statement when a connection says it first, and an interpreter learns a path by taking it. Nothing is
written: the schedule that this is about is nobody's, so that the guards of the real statements let nothing through.
"""

from contextlib import suppress

from gnomon.domain.errors import Unavailable
from gnomon.domain.grant import Resolved
from gnomon.domain.ids import Kind
from gnomon.domain.run import RunStatus
from gnomon.domain.schedule import CatchUp, OnLost, Overlap, SessionMode
from gnomon.domain.target import Target, TargetKind
from gnomon.ports.clock import Clock
from gnomon.services import ending, slot_writing
from gnomon.services.gates import Gates, Verdict
from gnomon.services.mint import Mint
from gnomon.services.slot_plan import Plan, plan_slot
from gnomon.stores import runs, slots
from gnomon.stores.database import Database, Tx

_TARGET = Target(TargetKind.AGENT, "nobody")
_DUE = slots.Due(
    id="nobody",
    revision=1,
    target_kind=_TARGET.kind,
    target_id=_TARGET.id,
    cadence='{"unit":"minute","every":5,"zone":"UTC"}',
    calendar=None,
    anchor_at=0,
    query="",
    session_mode=SessionMode.FRESH,
    session_id=None,
    starts_at=None,
    ends_at=None,
    max_runs=None,
    overlap=Overlap.SKIP,
    catch_up=CatchUp.LATEST,
    misfire_grace_seconds=None,
    jitter_seconds=0,
    dedup_key=None,
    next_fire_at=0,
    last_fire_at=None,
    recorded_until=None,
    run_count=0,
    in_flight_run_id=None,
    waiting_run_id=None,
    fence=0,
    failure_streak=0,
    timeout_seconds=60,
    max_attempts=1,
    backoff_seconds=0,
    backoff_max_seconds=0,
    on_lost=OnLost.FAIL,
    lease_seconds=90,
    unfinished_run_id=None,
    now=0,
)


class Rehearsal:
    """What the engine of a process does first."""

    def __init__(
        self, *, database: Database, clock: Clock, mint: Mint, gates: Gates, process_id: str
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._gates = gates
        self._process_id = process_id

    async def run(self, *, dispatch: bool, work: bool) -> None:
        """Claim a slot of nobody's and end its run, and claim from the queue, as far as this process will do so."""
        if not (dispatch or work):
            return
        plan = self._plan()

        async def once(tx: Tx) -> None:
            await self._gates.judge(tx, [(_TARGET.kind, _TARGET.id)])
            if dispatch:
                await slots.next_due(tx)
                await slots.claim_due(tx, 1)
                await slot_writing.put_down(tx, [plan])
            if work:
                await ending.close(tx, [self._ending(plan)])
                await runs.next_claimable(tx)
                await runs.claim(tx, self._process_id, self._mint.make(Kind.CLAIM), 0)

        with suppress(Unavailable):  # the loops find that out by themselves, and try again
            await self._database.everywhere(once)

    def _plan(self) -> Plan:
        return plan_slot(
            _DUE._replace(id=self._mint.make(Kind.SCHEDULE)),
            verdict=Verdict(Resolved(_TARGET)),
            holidays=frozenset(),
            run_id=self._mint.make(Kind.RUN),
            owner=self._process_id,
            claim_id=self._mint.make(Kind.CLAIM),
        )

    def _ending(self, plan: Plan) -> ending.Ending:
        assert plan.taken is not None
        grant = plan.taken.grant(self._clock.monotonic())
        return ending.Ending(grant, self._process_id, RunStatus.SUCCEEDED, "", None, None, 0.0)
