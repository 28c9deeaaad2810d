"""The watchdog's tick: runs whose holder is gone are closed or resumed, pauses that are over end, old rows go (RUN-7).

Locks come back by themselves when their lease ends; the sweep writes down what became of the runs. It takes nothing
while the clock guard is alert (RUN-5b), and whatever it takes it takes by fence, so that two sweeps close a run once.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND, from_micros
from gnomon.domain.invocation import Failing
from gnomon.domain.retry import RetryPolicy, backoff_seconds
from gnomon.domain.run import RunError, RunStatus
from gnomon.ports import failpoints
from gnomon.ports.wakeup import Wakeup
from gnomon.services.clock_guard import ClockGuard, Jump
from gnomon.services.renewal import Renewal
from gnomon.services.settling import Closed, settle
from gnomon.stores import audit, processes, runs
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Database, Row, Tx

ACTOR = "watchdog"
BATCH = 100
_FORGET_PROCESSES_US = 30 * 24 * 3_600 * SECOND
_CLEAN_EVERY = 60  # ticks
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did."""

    lost: int = 0
    resumed: int = 0
    stopped: int = 0  # by their timeout or a cancel, for want of the process that would have done it

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(self.lost + other.lost, self.resumed + other.resumed, self.stopped + other.stopped)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """How many runs other processes hold, and by when what the dead among those held is closed or queued again."""

    runs: int
    by: datetime


class Watchdog:
    """Sweeps one database; any number of them may run at once."""

    def __init__(
        self,
        *,
        database: Database,
        wakeup: Wakeup,
        guard: ClockGuard,
        heartbeat_timeout_seconds: float,
        sweep_seconds: float,
        on_jump: Callable[[Jump], Awaitable[None]],
        renewal: Renewal,
        process_id: str,
        boot: str | None = None,
        chores: tuple[Callable[[], Awaitable[object]], ...] = (),
    ) -> None:
        self._database = database
        self._wakeup = wakeup
        self._guard = guard
        self._heartbeat_timeout_us = round(heartbeat_timeout_seconds * SECOND)
        self._sweep_seconds = sweep_seconds
        self._on_jump = on_jump
        self._renewal, self._process_id, self._boot = renewal, process_id, boot
        self._chores = chores
        self._ticks = 0
        self._jumps: list[Jump] = []  # seen in the middle of a sweep: the next tick acts on them

    async def tick(self, *, quiet: bool = False) -> float:
        """One sweep and the chores; seconds until the next, by the first chore that gives fewer of them.

        ``quiet`` says that nothing is held by anybody, so that there is nothing to look at.
        """
        if quiet and self._ticks:  # the first tick hears what other heartbeats say of the clock
            due = False
            self._jumps += self._guard.ask()
        else:
            due = await self._database.look(self._look)
        jumps, self._jumps = self._jumps, []
        for jump in jumps:
            _log.warning("clock_jumped", seconds=jump.seconds, stalled=jump.stalled)
            await self._on_jump(jump)
        abandoned = self._renewal.abandoned()
        if due or abandoned:
            self._tell(await self._give_up(abandoned) + await self.sweep())
        if self._ticks % _CLEAN_EVERY == 0:
            await self._database.write_guarded(lambda tx: processes.clean(tx, _FORGET_PROCESSES_US))
        self._ticks += 1
        waits = [await chore() for chore in self._chores]
        return min([self._sweep_seconds, *(wait for wait in waits if isinstance(wait, float))])

    async def first_sweep(self) -> None:
        """What can be closed or given back at a start, before anything else is done."""
        self._tell(await self.sweep())

    def _tell(self, swept: Swept) -> None:
        if swept != Swept():
            _log.warning("swept", lost=swept.lost, resumed=swept.resumed, stopped=swept.stopped)
            self._wakeup.notify()

    async def elsewhere(self) -> Elsewhere | None:
        """What is held by others, who may be gone: for the first word of a process that starts (RUN-7).

        Raises:
            Unavailable: the database can't be read.
        """
        timeout = self._heartbeat_timeout_us
        count, until = await self._database.read(lambda tx: runs.elsewhere(tx, self._process_id, timeout))
        if until is None:
            return None
        return Elsewhere(count, from_micros(until) + timedelta(seconds=self._sweep_seconds))

    async def _give_up(self, abandoned: set[tuple[str, int]]) -> Swept:
        """What this process could not renew and has stopped is written down at once, by the hand that held it (RUN-5)."""
        if not abandoned:
            return Swept()

        async def work(tx: Tx) -> Swept:
            held = await processes.holds(tx, self._process_id)
            return await _take(tx, [row for row in held if (row["id"], row["fence"]) in abandoned])

        swept = await failpoints.through("sweep", self._database.write_guarded, work)
        self._renewal.settled(abandoned)
        return swept

    async def _look(self, tx: Tx) -> bool:
        """Ask the clock guard, and whether anything looks expired at all: the common sweep writes nothing."""
        await self.ask_guard(tx)
        return bool(await runs.expired(tx, self._heartbeat_timeout_us, None, 1))

    async def ask_guard(self, tx: Tx) -> bool:
        """Whether the guard, given the machine's readings, has seen a jump that nobody has acted on yet."""
        now, readings = await processes.readings(tx, self._boot)
        self._jumps += self._guard.observe(now, readings)
        return bool(self._jumps)

    async def sweep(self) -> Swept:
        """Close or resume every expired run, in bounded batches."""
        swept = Swept()
        while True:
            batch, found = await failpoints.through("sweep", self._database.write_guarded, self._sweep_batch)
            swept += batch
            if found < BATCH or batch == Swept():
                return swept

    async def _sweep_batch(self, tx: Tx) -> tuple[Swept, int]:
        rows = await runs.expired(tx, self._heartbeat_timeout_us, self._guard.calm_us(), BATCH)
        # this process may have stood still since the tick looked, and the clock been set: asked after the rows were read
        if await self.ask_guard(tx):
            return Swept(), 0
        return await _take(tx, rows), len(rows)


RESUMES = 3  # a run that kills whoever works on it is not resumed for ever


async def _take(tx: Tx, rows: Iterable[Row]) -> Swept:
    lost = resumed = stopped = 0
    for row in rows:
        if row["why"] in ("cancel", "deadline"):
            stopped += await _stop_unwatched(tx, row)
        elif (
            row["on_lost"] == "resume"
            and row["cancel_at"] is None
            and row["attempt"] < row["max_attempts"] + RESUMES
        ):
            resumed += await _resume(tx, row)
        else:
            lost += await _lose(tx, row)
    return Swept(lost, resumed, stopped)


def _why(row: Row) -> str:
    if row["why"] == "given_up":
        return "The process that held it could not renew its lease in time, and stopped it."
    if row["why"] == "lease":
        return "Its lease ended without a word from the process that held it."
    return "The process that held it has been silent for too long."


async def _lose(tx: Tx, row: Row) -> int:
    error = RunError("lost", f"{_why(row)} It may be half done; it is not repeated.")
    await _bill(tx, row)
    return await _end(tx, row, RunStatus.LOST, error)


async def _stop_unwatched(tx: Tx, row: Row) -> int:
    """What the process would have done that sent a run to its target and is gone: cancel it, or end it in time."""
    if row["why"] == "cancel":
        error = RunError("cancelled", f"Cancelled by {row['cancel_by'] or 'a person'}.")
        return await _end(tx, row, RunStatus.CANCELLED, error)
    error = RunError(
        Failing.TIMEOUT.value, "The run was stopped after its timeout; its target had not completed it."
    )
    if row["attempt"] >= row["max_attempts"]:
        return await _end(tx, row, RunStatus.TIMED_OUT, error)
    if not await _attempted(tx, row, RunStatus.TIMED_OUT, error):
        return 0
    policy = RetryPolicy(row["max_attempts"], row["backoff_seconds"], row["backoff_max_seconds"])
    again_at = await processes.now(tx) + backoff_seconds(policy, row["attempt"]) * SECOND
    await runs.requeue(tx, row["id"], row["fence"], again_at, owner=None, half_done=False)
    await audit.append_many(tx, [_expired(row, "retried")])
    return 1


async def _end(tx: Tx, row: Row, status: RunStatus, error: RunError) -> int:
    if not await runs.lose(tx, row["id"], row["fence"], status, error):
        return 0
    await audit.append_many(tx, [_expired(row, status)])
    await settle(tx, [Closed(row["id"], row["schedule_id"], row["trigger_kind"], status, error)])
    return 1


async def _resume(tx: Tx, row: Row) -> int:
    """Back to the queue from its last checkpoint, with the next fence at its next claim (RUN-8)."""
    if not await _attempted(tx, row, RunStatus.LOST, RunError("lost", _why(row))):
        return 0
    await _bill(tx, row)
    now = await processes.now(tx)
    await runs.requeue(tx, row["id"], row["fence"], now, owner=None, half_done=True)
    await audit.append_many(tx, [_expired(row, "resumed")])
    return 1


async def _attempted(tx: Tx, row: Row, outcome: RunStatus, error: RunError) -> bool:
    return await runs.insert_attempt(
        tx,
        run_id=row["id"],
        fence=row["fence"],
        owner=None,
        outcome=outcome,
        error_code=error.code,
        error=error.message,
    )


async def _bill(tx: Tx, row: Row) -> None:
    """What finished nodes cost is known although the attempt was lost, and stays on the run's account (RUN-9)."""
    for usage in await runs.spent_on_nodes(tx, row["id"], row["fence"]):
        await runs.spend(tx, row["id"], row["fence"], usage)


def _expired(row: Row, outcome: str) -> NewEntry:
    detail: dict[str, object] = {"owner": row["owner"], "why": row["why"], "outcome": outcome}
    return new_entry(ACTOR, Action.EXPIRE, "run", row["id"], row["fence"], detail)
