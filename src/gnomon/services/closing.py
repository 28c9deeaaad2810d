"""The end of runs: record closed, counters moved, lock taken off, in one fenced write for all that have gathered.

Runs end one by one; what has ended while a write was under way goes into the next one together. A release can't throw
(RUN-3): a write that fails is tried again, then run by run, then reduced to taking the lock off; after that the lease
does it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import structlog

from gnomon.domain.errors import FenceStale, Unavailable
from gnomon.domain.invocation import Result, TargetFailure, Usage
from gnomon.domain.limits import breach
from gnomon.domain.run import RunError, RunStatus
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services.ending import Ending, close, close_in_doubt, close_or_tell, closing_row, fenced, released
from gnomon.services.settling import Closed, settle
from gnomon.stores import audit, runs, targets
from gnomon.stores.database import Database, Landed, Tx

_log = structlog.get_logger()
RETRY_SECONDS = (0.05, 0.2, 1.0, 3.0, 10.0, 30.0)


class Closing:
    """Gathers endings and writes them together."""

    def __init__(self, database: Database, clock: Clock, wakeup: Wakeup) -> None:
        self._database = database
        self._clock = clock
        self._wakeup = wakeup
        self._gathered: list[Ending] = []
        self._over: Callable[[Sequence[Ending]], None] = lambda _: None
        self._flusher: asyncio.Task[None] | None = None
        self.ended: Counter[str] = Counter()  # closed runs by status, for the metrics

    def tell(self, over: Callable[[Sequence[Ending]], None]) -> None:
        """``over`` is called with the endings of each batch after their write, whether they landed or not."""
        self._over = over

    def submit(self, ending: Ending) -> None:
        """Write the ending with whatever else has gathered."""
        self._gathered.append(ending)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush(), name="gnomon-close")

    async def complete(
        self, run_id: str, fence: int, status: RunStatus, output: str | None, usage: Usage | None
    ) -> None:
        """Close a run for its target, which took the work with a 202 and shows the fence (CONTRACT, ``/complete``).

        Raises:
            FenceStale: the run is over, or another fence holds it; nothing but the audit was written.
        """
        error = (
            None if status is RunStatus.SUCCEEDED else RunError("reported", output or "The target failed.")
        )

        async def work(tx: Tx) -> bool:
            nonlocal status, output, error
            failure = None if status is not RunStatus.SUCCEEDED else await _breach(tx, run_id, output, usage)
            if failure is not None:
                status, output, error = RunStatus.FAILED, None, RunError(failure.code, failure.message)
            row = await runs.close_by_fence(tx, closing_row(run_id, fence, status, output, usage, error))
            if row is None:
                await audit.append_many(tx, [fenced(run_id, fence, "target")])
                return False
            await audit.append_many(tx, [released(run_id, fence, "target", status)])
            await settle(tx, [Closed(run_id, row["schedule_id"], row["trigger_kind"], status, error)])
            return True

        landed = await self._database.write_guarded(work)
        self._wakeup.notify(News.RUN)
        if not landed:
            raise FenceStale(
                f"Run {run_id} is not held under fence {fence} any more: it is over, or it was given to somebody else. "
                "Nothing was changed; drop the work.",
                data={"run_id": run_id, "fence": fence},
            )

    async def _flush(self) -> None:
        while self._gathered:
            batch, self._gathered = self._gathered, []
            landed = await self._write(batch)
            self._over(batch)
            notify = False
            for ending in batch:
                if ending.grant.run_id in landed:
                    self.ended["retried" if ending.retry_in_us is not None else ending.status] += 1
                notify = notify or ending.retry_in_us is not None or ending.status is not RunStatus.SUCCEEDED
            if notify:
                self._wakeup.notify(News.RUN)

    async def _write(self, endings: list[Ending], *, doubtful: bool = False) -> frozenset[str]:
        """Write a batch, come what may; the runs whose ending landed. ``doubtful``: it may have landed before."""
        for pause in (*RETRY_SECONDS, None):
            work = partial(close_in_doubt if doubtful else close, endings=endings)
            plain = not doubtful and all(ending.is_plain for ending in endings)
            try:
                return await self._write_once(work, endings, plain=plain)
            except Unavailable as error:
                doubtful = True
                if error.code == "stopping" or pause is None:
                    break
                _log.warning("close_delayed", runs=len(endings), error=error.message)
                await self._clock.wait(pause)
            except Exception:
                _log.exception("close_failed", runs=len(endings))
                break
        if len(endings) == 1:
            return await self._release_alone(endings[0])
        one_by_one = [await self._write([ending], doubtful=doubtful) for ending in endings]
        return frozenset().union(*one_by_one)

    async def _write_once(
        self, work: Callable[[Tx], Awaitable[Landed]], endings: list[Ending], *, plain: bool = False
    ) -> frozenset[str]:
        landed = (await failpoints.through("close", self._database.write_guarded, work)).ids
        left = [ending for ending in endings if ending.grant.run_id not in landed]
        if left:
            landed |= (await self._database.write_guarded(partial(close_or_tell, endings=left))).ids
        in_full = left if plain else endings
        if any(not ending.grant.parallel for ending in in_full):  # whoever waited for one of them may begin
            self._wakeup.notify(News.RUN)
        return landed

    async def _release_alone(self, ending: Ending) -> frozenset[str]:
        """The last resort takes nothing but the lock off; if that fails too, the lease does (RUN-3)."""
        bare = replace(
            ending,
            status=RunStatus.FAILED,
            output=None,
            usage=None,
            retry_in_us=None,
            error=RunError("close_failed", "The run ended, but its record could not be written in full."),
        )
        try:
            return await self._write_once(partial(close_in_doubt, endings=[bare], first=ending), [bare])
        except Exception:
            _log.exception("release_left_to_the_lease", run_id=ending.grant.run_id)
            return frozenset()


async def _breach(tx: Tx, run_id: str, output: str | None, usage: Usage | None) -> TargetFailure | None:
    """What a late answer breaks of its agent's limits: they hold for it as for one that came at once (TGT-5)."""
    rows = await runs.by_ids(tx, [run_id])
    agents = await targets.live_agents(tx, {row["target_id"] for row in rows})
    return next((breach(Result(output or "", usage), agent.limits) for agent in agents.values()), None)
