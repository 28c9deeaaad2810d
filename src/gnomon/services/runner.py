"""The runner: works on claimed runs, at most so many at a time (RUN-2 … RUN-6, RUN-10, DSP-10).

``tick()`` claims what is queued while there is room, stops whom somebody wants cancelled, and ends by force what is
over its hard timeout; the runs themselves are tasks of the event loop.
"""

import asyncio
from collections.abc import Coroutine, Iterable

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.domain.grant import Grant
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services.attempt import Attempts
from gnomon.services.claiming import HELD_SECONDS, give_back, granted
from gnomon.services.closing import Closing
from gnomon.services.ending import Ending
from gnomon.services.gates import Gates
from gnomon.services.lost_claims import LostClaims
from gnomon.services.mint import Mint
from gnomon.services.places import Places
from gnomon.services.renewal import Renewal
from gnomon.services.reporting import Reports
from gnomon.services.work import Stopping, Work, Works
from gnomon.stores import runs
from gnomon.stores.database import Database, Row, Tx

_log = structlog.get_logger()
BATCH = 100
DEFERRED_POLL_SECONDS = 1.0
NOT_YET_SECONDS = 0.2  # until the heartbeat of a process that stood still is fresh again


class Runner:
    """The working half of a process."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        mint: Mint,
        wakeup: Wakeup,
        gates: Gates,
        renewal: Renewal,
        closing: Closing,
        attempts: Attempts,
        reports: Reports,
        process_id: str,
        places: Places,
        kill_grace_seconds: float = 10.0,
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._wakeup = wakeup
        self._gates = gates
        self._renewal = renewal
        self._closing = closing
        closing.tell(self._over)
        self._attempts = attempts
        self._reports = reports
        self._process_id = process_id
        self._grace = kill_grace_seconds
        self.lost_claims = LostClaims(database, clock, process_id, wakeup)
        self._share = places.share(lambda: wakeup.wake(News.RUN))
        self._works = Works()
        self._closers: set[asyncio.Task[None]] = set()
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def in_work(self) -> int:
        """How many runs this process works on, with those whose ending is being written."""
        return len(self._works)

    @property
    def places(self) -> int:
        """How many more it would take."""
        return 0 if self._draining else self._share.left

    def reserve(self, most: int) -> int:
        """Set up to ``most`` free places aside for a claim that is about to be made; how many there were."""
        return 0 if self._draining else self._share.take(most)

    def has_room(self, count: int) -> bool:
        """Whether so many places are free; a process that stops waits for none."""
        return self._draining or self._share.left >= count

    async def wait_for_place(self, seconds: float) -> None:
        """Return as soon as there is a free place, or after ``seconds``."""
        if not self.has_room(1):
            await self._share.wait_for_one(seconds)

    def take(self, grants: list[Grant], reserved: int) -> None:
        """Start these claimed runs; the reserved places are given back, used or not."""
        if len(grants) < reserved:
            self._share.give_back(reserved - len(grants))
        if not grants:
            return
        failpoints.reach("open.granted")
        loop, now = asyncio.get_running_loop(), self._clock.monotonic()
        self._renewal.hold_all(grants, lambda run_id: loop.call_soon_threadsafe(self._give_up, run_id))
        works = [Work(grant, now) for grant in grants]
        self._leave(self._works.put_in(works))
        for work in works:
            work.task = loop.create_task(self._work(work), name=work.grant.run_id)
        self._idle.clear()

    async def tick(self) -> float | None:
        """Claim, cancel, end by force; seconds until there is something to do, or ``None``."""
        self._expire()
        if self._works:
            await self._look_at_cancels()
        waits = [None if self._draining else await self._claim()]
        if any(work.deferred for work in self._works.values()):
            await self._look_at_deferred()
            waits.append(DEFERRED_POLL_SECONDS)
        nearest = self._works.deadlines.nearest()
        if nearest is not None:
            waits.append(max(0.0, nearest - self._clock.monotonic()))
        return min((wait for wait in waits if wait is not None), default=None)

    async def drain(self, grace_seconds: float) -> None:
        """Stop claiming, give unstarted claims back, let the rest finish for a while (DSP-10).

        What is left after the grace is stopped without a word in its record: its lease ends it.
        """
        self._draining = True
        for work in list(self._works.values()):
            if not work.invoked or work.deferred:  # the target of a deferred run completes it without us
                self._stop(work, Stopping.GIVEN_UP)
        try:
            await asyncio.wait_for(self._idle.wait(), grace_seconds)
        except TimeoutError:
            _log.warning("left_to_the_lease", runs=sorted(self._works))
            tasks = [work.task for work in self._works.values() if work.task is not None]
            for work in list(self._works.values()):
                self._stop(work, Stopping.GIVEN_UP)
            await asyncio.wait(tasks, timeout=self._grace)
        if self._closers:
            await asyncio.wait(self._closers)

    async def _give_back(self, work: Work) -> None:
        """A claim under which nothing was sent goes back to the queue as if it had not been made."""
        held = [(work.grant.run_id, work.grant.fence)]
        try:
            await failpoints.through(
                "giveback", self._database.write_guarded, lambda tx: give_back(tx, self._process_id, held)
            )
        except Unavailable as error:
            self.lost_claims.left(*held[0])
            _log.warning("give_back_delayed", run_id=work.grant.run_id, error=error.message)
        finally:
            self._forget(work)
        self._wakeup.notify(News.RUN)

    async def _claim(self) -> float | None:
        """Fill the free places from the queue; seconds until the next run may be claimed."""
        if not self._renewal.alive():
            return NOT_YET_SECONDS
        await self.lost_claims.settle()
        left = False
        while True:
            try:
                wait_us = await self._database.look(runs.next_claimable)
            except Unavailable:
                self._share.wait_no_more()
                raise
            if wait_us is None or wait_us > 0:
                self._share.wait_no_more()
                return None if wait_us is None else wait_us / SECOND
            if left:
                return HELD_SECONDS
            places = self.reserve(BATCH)
            if not places:
                if not self._draining:
                    self._share.wait()  # the next place that gets free wakes the loop
                return None
            grants: list[Grant] = []
            try:
                grants = await self._claim_batch(places)
            finally:
                self.take(grants, places)
            left = not grants

    async def _claim_batch(self, places: int) -> list[Grant]:
        taken_at = self._clock.monotonic()
        claim_id = self._mint.make(Kind.CLAIM)

        async def work(tx: Tx) -> list[Row]:
            return await runs.claim(tx, self._process_id, claim_id, places)

        try:
            rows = await failpoints.through("take", self._database.write_guarded, work)
            return await granted(self._database, self._gates, self._process_id, rows, taken_at)
        except Unavailable as error:
            self.lost_claims.doubt(claim_id, error)
            raise

    async def _work(self, work: Work) -> None:
        work.begun = True
        ending = None
        try:
            ending = await self._attempts.run(work)
            if self._reports.gathered:
                await self._reports.flush()
        finally:
            self._finish(work, ending, target_is_over=True)

    def _finish(self, work: Work, ending: Ending | None, *, target_is_over: bool = False) -> None:
        """Have the ending written, once, unless it was given up; the next may begin meanwhile, if the target is over."""
        if work.ended:
            return
        work.ended = True
        self._renewal.closing(work.grant.run_id)
        if ending is not None:
            self._closing.submit(ending)
            if target_is_over:
                work.ending = True
                self._share.end()
        elif work.invoked:
            self._forget(work)
        else:
            self._aside(self._give_back(work))

    def _over(self, endings: Iterable[Ending]) -> None:
        self._forget(*self._works.of(ending.grant for ending in endings))

    def _forget(self, *works: Work) -> None:
        gone = self._works.take_out(works)
        if gone:
            self._renewal.drop([work.grant.run_id for work in gone])
            self._leave(gone)
        if not self._works:
            self._idle.set()

    def _leave(self, gone: list[Work]) -> None:
        """Nothing of these is left to be done here."""
        written = sum(work.ending for work in gone)
        self._share.written(written)
        self._share.give_back(len(gone) - written)

    def _give_up(self, run_id: str) -> None:
        work = self._works.get(run_id)
        if work is not None:
            self._stop(work, Stopping.GIVEN_UP)

    def _stop(self, work: Work, why: Stopping) -> None:
        """Ask the target to stop by cancelling its task; a hard deadline ends the wait for one that ignores it."""
        if work.ended or (work.stopping is not None and why is not Stopping.GIVEN_UP):
            return
        work.stopping = why
        if why is Stopping.GIVEN_UP:
            work.ended = True
            if work.invoked:
                self._forget(work)
            else:
                self._renewal.closing(work.grant.run_id)
                self._aside(self._give_back(work))
        elif not work.begun:  # its first step will never come, so nobody else ends it
            self._finish(work, self._attempts.stopped(work))
        else:
            self._works.deadlines.add(self._clock.monotonic() + self._grace, [work], hard=True)
        assert work.task is not None
        work.task.cancel()

    def _expire(self) -> None:
        for _, _, works, hard in self._works.deadlines.passed(self._clock.monotonic()):
            for work in works:
                if hard:
                    _log.error("target_ignores_its_cancel", run_id=work.grant.run_id)
                    self._finish(work, self._attempts.stopped(work))
                else:
                    self._stop(work, Stopping.TIMEOUT)

    def _aside(self, writing: Coroutine[None, None, None]) -> None:
        closer = asyncio.get_running_loop().create_task(writing)
        self._closers.add(closer)
        closer.add_done_callback(self._closers.discard)

    async def _look_at_cancels(self) -> None:
        for run_id, by in await self._database.look(lambda tx: runs.cancels(tx, self._process_id)):
            work = self._works.get(run_id)
            if work is not None:
                work.cancelled_by = by
                self._stop(work, Stopping.CANCEL)

    async def _look_at_deferred(self) -> None:
        waiting = {work.grant.run_id: work for work in self._works.values() if work.deferred}
        running = await self._database.look(lambda tx: runs.still_running(tx, waiting))
        for run_id, work in waiting.items():
            if run_id not in running:
                self._stop(work, Stopping.GIVEN_UP)
