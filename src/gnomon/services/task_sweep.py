"""The sweep over the board: a chore of the watchdog that takes tasks from holders who are gone (BRD-4 to BRD-6).

A claim whose window is over goes, and so does one whose instance has been silent for too long, whatever its window. The
task is put back possibly half done; that the instance is offline, ``instance_sweep`` writes down. Nothing is taken
while the clock guard is alert (RUN-5b), and what is taken is taken as it was seen, so that two sweeps take a claim once.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND
from gnomon.domain.task import TaskStatus
from gnomon.ports.wakeup import Wakeup
from gnomon.stores import audit, tasks
from gnomon.stores.agenda import Ahead
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Database, Row, Tx

ACTOR = "watchdog"
BATCH = 100
_SOONEST_SECONDS = 1.0
_log = structlog.get_logger()


class _Batch(NamedTuple):
    found: int = 0
    taken: int = 0


async def _steady(_tx: Tx) -> bool:
    """Where nobody watches the clock."""
    return False


class TaskSweep:
    """Sweeps one database; any number of them may run at once.

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did; ``jumped`` asks inside a transaction
    whether it has since. ``depths`` is how many tasks could be claimed at the last tick, by role.
    """

    def __init__(
        self,
        database: Database,
        wakeup: Wakeup,
        *,
        heartbeat_timeout_seconds: float,
        calm_us: Callable[[], int | None] = lambda: None,
        jumped: Callable[[Tx], Awaitable[bool]] = _steady,
    ) -> None:
        self._database = database
        self._wakeup = wakeup
        self._timeout_us = round(heartbeat_timeout_seconds * SECOND)
        self._calm_us = calm_us
        self._jumped = jumped
        self.depths: dict[str, int] = {}

    def needed(self, ahead: Ahead) -> bool:
        """Whether there is a claim to look at, or a depth that is not zero or was not."""
        return ahead.lock_until is not None or ahead.claimable_role is not None or bool(self.depths)

    async def tick(self) -> float | None:
        """One sweep, and in how many seconds the next claim ends that nobody renews; ``None`` where none is held."""
        await self.sweep()
        self.depths, wait_us = await self._database.look(self._look_ahead)
        return None if wait_us is None else max(wait_us / SECOND, _SOONEST_SECONDS)

    async def sweep(self) -> int:
        """Take what is over, in bounded batches; how many claims were taken. The common sweep writes nothing."""
        swept = 0
        while await self._database.look(self._look):
            batch = await self._database.write_guarded(self._sweep_batch)
            swept += batch.taken
            if batch.taken:
                _log.warning("tasks_swept", tasks=batch.taken)
                self._wakeup.notify()
            if batch.found < BATCH or not batch.taken:
                break
        return swept

    async def _look(self, tx: Tx) -> bool:
        return bool(await tasks.expired(tx, self._timeout_us, self._calm_us(), 1))

    async def _look_ahead(self, tx: Tx) -> tuple[dict[str, int], int | None]:
        return await tasks.depths(tx), await tasks.next_end(tx)

    async def _sweep_batch(self, tx: Tx) -> _Batch:
        rows = await tasks.expired(tx, self._timeout_us, self._calm_us(), BATCH)
        # this process may have stood still since it looked, and the clock been set: asked after the rows were read
        if await self._jumped(tx):
            return _Batch()
        taken = await tasks.expire(tx, rows)
        await audit.append_many(tx, [_expired(row) for row in rows if row["task_id"] in taken])
        return _Batch(len(rows), len(taken))


def _expired(row: Row) -> NewEntry:
    detail: dict[str, object] = {
        "instance": row["instance"],
        "why": row["why"],
        "outcome": TaskStatus.BACKLOG.value,
    }
    return new_entry(ACTOR, Action.EXPIRE, "task", row["task_id"], row["fence"], detail)
