"""The end of runs: record closed, counters moved, lock taken off, in one fenced write for all that have gathered.

Runs end one by one; what has ended while a write was under way goes into the next one together. A release can't throw
(RUN-3): a write that fails is tried again, then run by run, then reduced to taking the lock off; after that the lease
does it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.errors import FenceStale, Unavailable
from gnomon.domain.grant import Grant
from gnomon.domain.invocation import Result, TargetFailure, Usage
from gnomon.domain.limits import breach
from gnomon.domain.run import RunError, RunStatus, preview
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services.settling import Closed, settle
from gnomon.stores import audit, history, processes, runs, targets
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Database, Tx, Value

_log = structlog.get_logger()
_RELEASED = {status: f'{{"status":"{status.value}"}}' for status in RunStatus}
RETRY_SECONDS = (0.05, 0.2, 1.0, 3.0, 10.0, 30.0)


@dataclass(slots=True)  # not frozen: one is made for each run, and freezing triples the cost
class Ending:
    """How a claimed run ended, by its holder. With ``retry_in_us`` (microseconds) it goes back into the queue, for so long."""

    grant: Grant
    owner: str
    status: RunStatus
    output: str | None
    usage: Usage | None
    error: RunError | None
    duration_seconds: float
    retry_in_us: int | None = None


class Closing:
    """Gathers endings and writes them together."""

    def __init__(self, database: Database, clock: Clock, wakeup: Wakeup) -> None:
        self._database = database
        self._clock = clock
        self._wakeup = wakeup
        self._gathered: list[tuple[Ending, Callable[[], None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self.ended: Counter[str] = Counter()  # closed runs by status, for the metrics

    def submit(self, ending: Ending, done: Callable[[], None]) -> None:
        """Write the ending with whatever else has gathered; ``done`` is called after that, whether it landed or not."""
        self._gathered.append((ending, done))
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
            row = await runs.close_by_fence(tx, _closing_row(run_id, fence, status, output, usage, error))
            if row is None:
                await audit.append_many(tx, [_fenced(run_id, fence, "target")])
                return False
            if output is not None:
                await runs.answer(tx, [{"session_id": row["session_id"], "run_id": run_id, "output": output}])
            await audit.append_many(tx, [_released(run_id, fence, "target", status)])
            await settle(tx, [Closed(run_id, row["schedule_id"], row["trigger_kind"], status, error)])
            return True

        landed = await self._database.write_guarded(work)
        self._wakeup.notify()
        if not landed:
            raise FenceStale(
                f"Run {run_id} is not held under fence {fence} any more: it is over, or it was given to somebody else. "
                "Nothing was changed; drop the work.",
                data={"run_id": run_id, "fence": fence},
            )

    async def _flush(self) -> None:
        while self._gathered:
            batch, self._gathered = self._gathered, []
            landed = await self._write([ending for ending, _ in batch])
            notify = False
            for ending, done in batch:
                done()
                if ending.grant.run_id in landed:
                    self.ended["retried" if ending.retry_in_us is not None else ending.status.value] += 1
                notify = notify or ending.retry_in_us is not None or ending.status is not RunStatus.SUCCEEDED
            if notify:
                self._wakeup.notify()

    async def _write(self, endings: list[Ending], *, doubtful: bool = False) -> set[str]:
        """Write a batch, come what may; the runs whose ending landed. ``doubtful``: it may have landed before."""
        for pause in (*RETRY_SECONDS, None):
            work = partial(_close_in_doubt if doubtful else _close, endings=endings)
            try:
                return await failpoints.through("close", self._database.write_guarded, work)
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
        landed: set[str] = set()
        for ending in endings:
            landed |= await self._write([ending], doubtful=doubtful)
        return landed

    async def _release_alone(self, ending: Ending) -> set[str]:
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
            return await self._database.write_guarded(partial(_close_in_doubt, endings=[bare], first=ending))
        except Exception:
            _log.exception("release_left_to_the_lease", run_id=ending.grant.run_id)
            return set()


async def _breach(tx: Tx, run_id: str, output: str | None, usage: Usage | None) -> TargetFailure | None:
    """What a late answer breaks of its agent's limits: they hold for it as for one that came at once (TGT-5)."""
    rows = await runs.by_ids(tx, [run_id])
    agents = await targets.live_agents(tx, {row["target_id"] for row in rows})
    return next((breach(Result(output or "", usage), agent.limits) for agent in agents.values()), None)


async def _close_in_doubt(tx: Tx, endings: Sequence[Ending], first: Ending | None = None) -> set[str]:
    """Read back what a write whose answer was lost may have written, and write the rest (RUN-5a).

    Without that a close that had landed would be told as one that was fenced off. ``first`` is what was to be written
    before the endings were reduced.
    """
    landed = {ending.grant.run_id for ending in endings if await _has_landed(tx, first or ending)}
    rest = [ending for ending in endings if ending.grant.run_id not in landed]
    return landed | (await _close(tx, rest) if rest else set())


async def _has_landed(tx: Tx, ending: Ending) -> bool:
    grant = ending.grant
    if ending.retry_in_us is not None:
        return await history.tried_as(tx, grant.run_id, grant.attempt, grant.fence, ending.status)
    return await history.closed_as(tx, grant.run_id, ending.owner, grant.fence, _duration_us(ending))


def _duration_us(ending: Ending) -> int:
    return round(ending.duration_seconds * 1_000_000)


async def _close(tx: Tx, endings: Sequence[Ending]) -> set[str]:
    final = [ending for ending in endings if ending.retry_in_us is None]
    landed = await runs.close(tx, [_row(ending) for ending in final]) if final else set()
    closed = [ending for ending in final if ending.grant.run_id in landed]
    await runs.answer(
        tx,
        [
            {
                "session_id": ending.grant.session_id,
                "run_id": ending.grant.run_id,
                "output": ending.output,
            }
            for ending in closed
            if ending.output is not None
        ],
    )
    await settle(
        tx,
        [
            Closed(
                ending.grant.run_id,
                ending.grant.schedule_id,
                ending.grant.trigger,
                ending.status,
                ending.error,
                ending.grant.parallel,
            )
            for ending in closed
        ],
    )
    for ending in endings:
        if ending.retry_in_us is not None and await _retry(tx, ending):
            landed.add(ending.grant.run_id)
    await audit.append_many(
        tx,
        [
            _released(
                ending.grant.run_id,
                ending.grant.fence,
                ending.owner,
                ending.status if ending.retry_in_us is None else RunStatus.QUEUED,
            )
            if ending.grant.run_id in landed
            else _fenced(ending.grant.run_id, ending.grant.fence, ending.owner)
            for ending in endings
        ],
    )
    return landed


async def _retry(tx: Tx, ending: Ending) -> bool:
    """Back into the queue for the next attempt, the record of this one kept."""
    assert ending.retry_in_us is not None
    grant, error = ending.grant, ending.error
    kept = await runs.insert_attempt(
        tx,
        run_id=grant.run_id,
        fence=grant.fence,
        owner=ending.owner,
        outcome=ending.status,
        error_code=None if error is None else error.code,
        error=None if error is None else error.message,
    )
    if not kept:
        return False
    if ending.usage is not None:
        await runs.spend(tx, grant.run_id, grant.fence, ending.usage)
    at = await processes.now(tx) + ending.retry_in_us  # the clock that the claim goes by, not this host's
    return await runs.requeue(tx, grant.run_id, grant.fence, at, owner=ending.owner, half_done=False)


def _row(ending: Ending) -> dict[str, Value]:
    row = _closing_row(
        ending.grant.run_id,
        ending.grant.fence,
        ending.status,
        ending.output,
        ending.usage,
        ending.error,
    )
    row["owner"] = ending.owner
    row["duration_us"] = _duration_us(ending)
    return row


def _closing_row(  # noqa: PLR0917 - a row has as many columns as it has
    run_id: str,
    fence: int,
    status: RunStatus,
    output: str | None,
    usage: Usage | None,
    error: RunError | None,
) -> dict[str, Value]:
    return {
        "id": run_id,
        "fence": fence,
        "status": status,
        "model_calls": usage.model_calls if usage else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cost": usage.cost if usage else None,
        "response_preview": preview(output) if output else None,
        "error_code": None if error is None else error.code,
        "error": None if error is None else error.message,
    }


def _released(run_id: str, fence: int, owner: str, status: RunStatus) -> NewEntry:
    return NewEntry(owner, Action.RELEASE, "run", run_id, fence, _RELEASED[status])


def _fenced(run_id: str, fence: int, owner: str) -> NewEntry:
    return NewEntry(owner, Action.FENCED, "run", run_id, fence, {"refused": "close"})
