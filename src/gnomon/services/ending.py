"""How claimed runs ended, as the rows of one fenced write: records, answers, counters, locks, audit.

When it is written, and what is done when it can't be, is ``closing``'s affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gnomon.domain.audit import Action
from gnomon.domain.grant import Grant
from gnomon.domain.invocation import Usage
from gnomon.domain.run import RunError, RunStatus, preview
from gnomon.services.settling import Closed, settle
from gnomon.stores import audit, history, processes, runs
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Landed, Tx, Value
from gnomon.stores.run_rows import Closing

_RELEASED = {status: f'{{"status":"{status.value}"}}' for status in RunStatus}


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

    @property
    def is_plain(self) -> bool:
        """Whether it ends well, once and for all, and its schedule learns nothing from it."""
        return self.status is RunStatus.SUCCEEDED and self.retry_in_us is None and not self.grant.tells


async def close_in_doubt(tx: Tx, endings: Sequence[Ending], first: Ending | None = None) -> Landed:
    """Read back what a write whose answer was lost may have written, and write the rest (RUN-5a).

    Without that a close that had landed would be told as one that was fenced off. ``first`` is what was to be written
    before the endings were reduced.
    """
    before = await _landed_before(tx, endings, first)
    rest = [ending for ending in endings if ending.grant.run_id not in before]
    return Landed(before | (await _close_in_full(tx, rest)).ids)


async def close_or_tell(tx: Tx, endings: Sequence[Ending]) -> Landed:
    """Write ends that ``close`` left, in full; those that change nothing are told, since somebody else holds them (RUN-6).

    The lost write of an end may have landed only while this one waited: that is none of somebody else's.
    """
    landed = (await _close_in_full(tx, endings)).ids
    left = [ending for ending in endings if ending.grant.run_id not in landed]
    before = await _landed_before(tx, left)
    await audit.append_many(
        tx,
        [
            fenced(ending.grant.run_id, ending.grant.fence, ending.owner)
            for ending in left
            if ending.grant.run_id not in before
        ],
    )
    return Landed(landed | before)


async def _landed_before(tx: Tx, endings: Sequence[Ending], first: Ending | None = None) -> frozenset[str]:
    return frozenset([ending.grant.run_id for ending in endings if await _has_landed(tx, first or ending)])


async def _has_landed(tx: Tx, ending: Ending) -> bool:
    grant = ending.grant
    if ending.retry_in_us is not None:
        return await history.tried_as(tx, grant.run_id, grant.attempt, grant.fence, ending.status)
    return await history.closed_as(
        tx, grant.run_id, ending.owner, grant.fence, ending.status, _duration_us(ending)
    )


def _duration_us(ending: Ending) -> int:
    return round(ending.duration_seconds * 1_000_000)


async def close(tx: Tx, endings: Sequence[Ending]) -> Landed:
    """Write how runs ended; those that it could. The others are for ``close_or_tell``."""
    plain = [ending for ending in endings if ending.is_plain]
    if len(plain) == len(endings):
        return await _close_plain(tx, endings)
    first = await _close_plain(tx, plain)
    rest = await _close_in_full(tx, [ending for ending in endings if not ending.is_plain])
    return Landed(first.ids | rest.ids)


async def _close_in_full(tx: Tx, endings: Sequence[Ending]) -> Landed:
    final = [ending for ending in endings if ending.retry_in_us is None]
    closed = await runs.close(tx, [_row(ending) for ending in final])
    await (
        tx.send()
    )  # what schedules learn is written by a statement that sees all that was committed to them before
    landed = set(closed.ids)
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
            for ending in final
            if ending.grant.run_id in landed
        ],
    )
    again = [ending for ending in endings if ending.retry_in_us is not None]
    if again:
        now = await processes.now(tx)  # the clock that the claim goes by, not this host's
        landed.update([ending.grant.run_id for ending in again if await _retry(tx, ending, now)])
    everything = Landed(landed)
    await _tell(tx, endings, everything)
    return everything


async def _close_plain(tx: Tx, endings: Sequence[Ending]) -> Landed:
    """The common end, which moves no streak and nobody waits for: one statement where the engine can."""
    landed = await runs.close(tx, [_row(ending) for ending in endings], plain=True)
    await _tell(tx, endings, landed)
    return landed


async def _tell(tx: Tx, endings: Sequence[Ending], landed: Landed) -> None:
    await audit.append_many(
        tx,
        [
            released(
                ending.grant.run_id,
                ending.grant.fence,
                ending.owner,
                ending.status if ending.retry_in_us is None else RunStatus.QUEUED,
            )
            for ending in endings
        ],
        landed,
        [ending.grant.run_id for ending in endings],
    )


async def _retry(tx: Tx, ending: Ending, now: int) -> bool:
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
    at = now + ending.retry_in_us
    return await runs.requeue(tx, grant.run_id, grant.fence, at, owner=ending.owner, half_done=False)


def _row(ending: Ending) -> Closing:
    grant, output, usage, error = ending.grant, ending.output, ending.usage, ending.error
    spent: tuple[int | None, int | None, int | None, float | None] = (None, None, None, None)
    if usage is not None:
        spent = (usage.model_calls, usage.input_tokens, usage.output_tokens, usage.cost)
    shown = preview(output) if output else None
    code, message = (None, None) if error is None else (error.code, error.message)
    return Closing(
        grant.run_id,
        ending.owner,
        grant.fence,
        ending.status,
        _duration_us(ending),
        *spent,
        shown,
        code,
        message,
        output,
    )


def closing_row(  # noqa: PLR0917 - a row has as many columns as it has
    run_id: str,
    fence: int,
    status: RunStatus,
    output: str | None,
    usage: Usage | None,
    error: RunError | None,
) -> dict[str, Value]:
    """What a close writes into a run, for whoever shows its fence alone."""
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
        "output": output,
    }


def released(run_id: str, fence: int, owner: str, status: RunStatus) -> NewEntry:
    """The audit of a claim that ended by its holder."""
    return owner, Action.RELEASE, "run", f'["{run_id}",{fence},{_RELEASED[status]}]'


def fenced(run_id: str, fence: int, owner: str) -> NewEntry:
    """The audit of a close that changed nothing."""
    return new_entry(owner, Action.FENCED, "run", run_id, fence, {"refused": "close"})
