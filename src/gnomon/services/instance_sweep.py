"""The watchdog's look at instances: the silent go offline, what dead servers held is freed, nobody's pushes end (BRD-4).

It takes nothing for the length of the heartbeat's timeout after the clock has jumped (RUN-5b).
"""

from collections.abc import Callable

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND
from gnomon.ports.wakeup import Wakeup
from gnomon.services.connections import Connections
from gnomon.services.instances import part
from gnomon.stores import audit, instances, pushes
from gnomon.stores.database import Database, Tx

ACTOR = "watchdog"
BATCH = 100
GONE = "The instance that had acknowledged the run has been silent for too long. It may be half done."
_FORGET_PUSHES_US = 24 * 3_600 * SECOND
_FORGET_INSTANCES_US = 30 * 24 * 3_600 * SECOND
_CLEAN_EVERY = 60  # ticks
_log = structlog.get_logger()

Ended = list[tuple[str, int]]


class InstanceSweep:
    """Sweeps one database; any number of them may run at once. ``needed``: whether there is anything to look at."""

    def __init__(
        self,
        database: Database,
        signal: Wakeup,
        connections: Connections,
        heartbeat_timeout_seconds: float,
        calm_us: Callable[[], int | None],
        *,
        needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._signal = signal
        self._connections = connections
        self._timeout_us = round(heartbeat_timeout_seconds * SECOND)
        self._calm_us = calm_us
        self._needed = needed
        self._ticks = 0

    async def tick(self) -> None:
        """One sweep."""
        if self._ticks % _CLEAN_EVERY == 0:
            await self._database.write_guarded(lambda tx: instances.clean(tx, _FORGET_INSTANCES_US, BATCH))
        self._ticks += 1
        if not self._needed() or not await self._database.look(self._look):
            return
        ended, changed = await self._database.write_guarded(self._sweep)
        for instance_id, epoch in ended:
            await self._connections.tell_gone(instance_id, epoch)
        if changed or ended:
            _log.warning("instances_swept", ended=len(ended), pushes=changed)
            self._signal.notify()

    async def _look(self, tx: Tx) -> bool:
        """Whether there may be anything to do: the common sweep writes nothing."""
        return (
            bool(await instances.overdue(tx, self._timeout_us, None, 1))
            or bool(await instances.stranded(tx, self._timeout_us, None, 1))
            or await pushes.to_sweep(tx, _FORGET_PUSHES_US)
        )

    async def _sweep(self, tx: Tx) -> tuple[Ended, int]:
        ended: Ended = []
        for row in await instances.stranded(tx, self._timeout_us, self._calm_us(), BATCH):
            if await part(tx, row["server"], row["id"], row["epoch"], {"why": "server"}):
                ended.append((row["id"], row["epoch"]))
        for row in await instances.overdue(tx, self._timeout_us, self._calm_us(), BATCH):
            epoch = await instances.mark_offline(tx, row["id"], self._timeout_us)
            if epoch is not None:
                await self._off(tx, row["id"], epoch)
                ended.append((row["id"], epoch))
        changed = await pushes.abandon(tx)
        for instance_id, epoch in await pushes.forsaken(tx, self._timeout_us, BATCH):
            changed += await pushes.lose(tx, instance_id, epoch, GONE)
        await pushes.blank(tx)
        await pushes.clean(tx, _FORGET_PUSHES_US, BATCH)
        return ended, changed

    @staticmethod
    async def _off(tx: Tx, instance_id: str, epoch: int) -> None:
        await pushes.release(tx, instance_id, epoch)
        await audit.append(
            tx,
            actor=ACTOR,
            action=Action.OFFLINE,
            subject_kind="instance",
            subject_id=instance_id,
            fence=epoch,
        )
