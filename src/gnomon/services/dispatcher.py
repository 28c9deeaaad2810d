"""The dispatcher's tick: due schedules are seen, judged, and what became of them is written (DSP-3, DSP-5).

For each due schedule: the domain decides what becomes of the slot, the gates may turn a firing into a skip, and then
the ledger's row, the session, the run, the audit entry and the next instant are committed together or not at all. The
planning holds no lock where an engine has one writer, so whoever is not any more as it was seen is left for the next scan. Runs
that this process has room for are born claimed and handed to its runner after the commit; the rest wait in the queue.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection
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
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services import slot_writing
from gnomon.services.claiming import HELD_SECONDS
from gnomon.services.gates import Gates, TargetKey, Verdict
from gnomon.services.lost_claims import LostClaims
from gnomon.services.mint import Mint
from gnomon.services.slot_plan import Plan, plan_slot
from gnomon.services.slot_writing import Scan, Write, Written
from gnomon.stores import slots
from gnomon.stores.database import Database, Tx, UniqueViolation

BATCH, LARGE_BATCH = 100, 200
# So many batches come of one look; so many are on their way at a time: while they are being written, in other threads or
# by a server, the next are read and planned. What was read long ago is likelier to be old when it is written, and each
# comes with its query, which may be long.
BATCHES, ABREAST = 8, 4
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


def batch_for(places: int) -> int:
    """How many slots are written at a time by a process with so many places.

    What a batch costs beside its rows, on the way to a server and back, is shared by more where there is room for them; one
    that found no places would go through the queue.
    """
    return min(max(BATCH, places // ABREAST), LARGE_BATCH)


class Receives(Protocol):
    """The runner of the same process, as the dispatcher sees it."""

    def reserve(self, most: int) -> int:
        """Set up to ``most`` free places aside; how many there were."""

    def has_room(self, count: int) -> bool:
        """Whether so many places are free; if not, some may be soon."""

    async def wait_for_place(self, seconds: float) -> None:
        """Return as soon as there is a free place, or after ``seconds``."""

    def take(self, grants: list[Grant], reserved: int) -> None:
        """Start these runs; ``reserved`` places are given back, used or not."""


class NoRunner:
    """For a process that dispatches and does not work: every run goes to the queue."""

    def reserve(self, most: int) -> int:  # noqa: ARG002 - there is never any
        """No place at all."""
        return 0

    def has_room(self, count: int) -> bool:  # noqa: ARG002 - nobody is waited for
        """It is of no use to wait for any."""
        return True

    async def wait_for_place(self, seconds: float) -> None:
        """There never will be one."""

    def take(self, grants: list[Grant], reserved: int) -> None:
        """Nothing was reserved, so nothing can come."""
        assert not grants
        assert not reserved


class _Claim(NamedTuple):
    """One batch on its way: its id, the places that are set aside for it, and the instant before it was asked for."""

    id: str
    places: int
    taken_at: float


class _Writing(NamedTuple):
    """A batch that is being written, and the schedules in it."""

    landing: "asyncio.Task[Scan]"
    ids: frozenset[str]


class _Seen(NamedTuple):
    """What a scan has read."""

    due: list[slots.Due]
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
            while scan.more and (scan.moved or self._spread < MOST_WINDOWS) and self._may_claim():
                scan = await self._scan()
                worst = max(worst, scan.worst_lag_us)
            left = not scan.moved and (not scan.seen or self._spread == MOST_WINDOWS)

    async def _scan(self) -> Scan:
        """See what is due, and write it down in batches."""
        if self._clock.monotonic() < self._crowded_until:
            scan = await self._land(await self._claim(), self._hold)
            scan.more = scan.seen == self._batch
        else:
            scan = await self._ahead()
        if scan.seen:
            self._spread = max(1, self._spread - 1) if scan.moved else min(2 * self._spread, MOST_WINDOWS)
        if scan.lost:
            self._crowded_until = self._clock.monotonic() + CROWDED_SECONDS
        return scan

    async def _ahead(self) -> Scan:
        """Work the list off: what comes next is read and planned while the batches before it are being written."""
        scan = Scan()
        writing: deque[_Writing] = deque()
        try:
            while not scan.lost and self._may_claim():
                seen = await self._next(writing)
                for first in range(0, len(seen.due), self._batch):
                    part = seen._replace(due=seen.due[first : first + self._batch])
                    while writing and (len(writing) == ABREAST or not self._runner.has_room(len(part.due))):
                        scan.add(await writing.popleft().landing)
                    # the process stops; or somebody else is at the same list, of which the rest is old as well
                    if not self._may_claim() or scan.lost:
                        break
                    claim = await self._claim()
                    write = partial(self._write, planned=self._plan(claim, part))
                    landing = asyncio.create_task(self._land(claim, write), name="gnomon-claim")
                    writing.append(_Writing(landing, frozenset([due.id for due in part.due])))
                if len(seen.due) < self._at_a_look:
                    break
        finally:
            rest = await asyncio.gather(*[each.landing for each in writing], return_exceptions=True)
        for landed in rest:
            if isinstance(landed, BaseException):
                raise landed
            scan.add(landed)
        scan.more = scan.lost
        return scan

    @property
    def _at_a_look(self) -> int:
        return BATCHES * min(self._batch, BATCH)

    async def _next(self, writing: Collection[_Writing]) -> _Seen:
        """The next of the list, but for what is on its way: that may have landed by now or not."""
        under_way = frozenset[str]().union(*[each.ids for each in writing])
        most = self._at_a_look + len(under_way)
        seen = await self._database.look(partial(self._look, most=most, skip=self._window()))
        return seen._replace(due=[due for due in seen.due if due.id not in under_way][: self._at_a_look])

    async def _claim(self) -> _Claim:
        await self._runner.wait_for_place(PLACE_SECONDS)
        places = self._runner.reserve(self._batch)
        return _Claim(self._mint.make(Kind.CLAIM), places, self._clock.monotonic())

    async def _land(self, claim: _Claim, write: Callable[[_Claim, Write], Awaitable[Written | None]]) -> Scan:
        """Write what is planned under this claim, and hand what landed to the runner."""
        scan = Scan()
        try:
            try:
                written = await write(claim, slot_writing.write)
            except UniqueViolation:  # a slot is in the ledger: a restored file, a clock that went back
                written = await write(claim, slot_writing.write_the_unrecorded)
            scan = scan if written is None else written.scan()
        except Unavailable as error:
            self.lost_claims.doubt(claim.id, error)
            raise
        finally:
            self._runner.take([taken.grant(claim.taken_at) for taken in scan.taken], claim.places)
        self.recorded.update(scan.outcomes)
        if scan.queued:
            self._wakeup.notify(News.RUN)
        return scan

    async def _write(self, _claim: _Claim, write: Write, planned: list[Plan]) -> Written:
        def guarded(work: Write) -> Awaitable[Written]:
            return self._database.write_guarded(lambda tx: work(tx, planned))

        return await failpoints.through("claim", guarded, write)

    async def _hold(self, claim: _Claim, write: Write) -> Written | None:
        """The look as well: what it finds nobody else gets until it is written, where an engine can do that."""
        look = partial(self._look, most=self._batch, skip=self._window(), hold=True)
        held = partial(self._database.write_held, look, lambda seen: self._plan(claim, seen) or None)
        return await failpoints.through("claim", held, write)

    def _window(self) -> int:
        """How many of the list to pass over; drawn as ids are, so that a simulation repeats it."""
        return self._batch * (crc32(self._mint.make(Kind.CLAIM).encode()) % self._spread)

    async def _look(self, tx: Tx, most: int, skip: int, *, hold: bool = False) -> _Seen:
        """What is due, and what a decision about it needs to know."""
        due = await slots.claim_due(tx, most, skip, hold=hold)
        if not due and skip:
            due = await slots.claim_due(tx, most, hold=hold)
        if not due:
            return _Seen(due, {}, {})
        verdicts = await self._gates.judge(tx, {(one.target_kind, one.target_id) for one in due})
        return _Seen(due, verdicts, await self._holidays(tx, due))

    def _plan(self, claim: _Claim, seen: _Seen) -> list[Plan]:
        """What becomes of each."""
        places = claim.places
        plans: list[Plan] = []
        for one, run_id in zip(seen.due, self._mint.many(Kind.RUN, len(seen.due)), strict=True):
            plan = plan_slot(
                one,
                verdict=seen.verdicts[one.target_kind, one.target_id],
                holidays=seen.calendars.get(one.calendar or "", frozenset()),
                run_id=run_id,
                owner=self._process_id if places > 0 else None,
                claim_id=claim.id,
            )
            places -= plan.taken is not None
            plans.append(plan)
        return plans

    async def _holidays(self, tx: Tx, due: list[slots.Due]) -> dict[str, frozenset[date]]:
        slugs = {one.calendar for one in due if one.calendar is not None}
        return await slots.holidays(tx, slugs) if slugs else {}
