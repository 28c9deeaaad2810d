"""The sweep over triggers whose instance is gone: a chore of every process, and done at once when a connection ends.

Whether an instance is gone is not judged here: its row says so, by the hand of the server that held its connection, or
of the watchdog that marked it offline.
"""

from collections.abc import Callable

import structlog

from gnomon.domain.instants import SECOND
from gnomon.domain.trigger import TriggerReason
from gnomon.ports.wakeup import Wakeup
from gnomon.services.trigger_returns import Returned, fail, let_go
from gnomon.stores import triggers
from gnomon.stores.agenda import Ahead
from gnomon.stores.database import Database, Tx
from gnomon.stores.triggers import Held

BATCH = 100
HELLO_SECONDS = 5  # a connection that has just begun says within that what its instance still has
_log = structlog.get_logger()


class TriggerSweep:
    """Sweeps one database; any number of them may run at once.

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did (RUN-5b).
    """

    def __init__(
        self,
        database: Database,
        wakeup: Wakeup,
        *,
        heartbeat_timeout_seconds: float,
        calm_us: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._database = database
        self._wakeup = wakeup
        self._lost_us = round(heartbeat_timeout_seconds * SECOND)
        self._calm_us = calm_us

    @staticmethod
    def needed(ahead: Ahead) -> bool:
        """Whether an instance has a trigger at all."""
        return ahead.trigger_held is not None

    async def tick(self) -> Returned:
        """One sweep, in bounded batches; the common one reads twice and writes nothing."""
        swept = Returned()
        while True:
            adrift, forlorn = await self._database.look(self._look)
            if not adrift and not forlorn:
                return swept
            batch = await self._database.write_guarded(lambda tx: self._sweep(tx, adrift, forlorn))  # noqa: B023
            swept += batch
            if batch != Returned():
                _log.warning("triggers_swept", taken_back=batch.taken_back, failed=batch.failed)
                self._wakeup.notify()
            if max(len(adrift), len(forlorn)) < BATCH or batch == Returned():
                return swept

    async def _look(self, tx: Tx) -> tuple[list[Held], list[Held]]:
        return (
            await triggers.adrift(tx, HELLO_SECONDS * SECOND, self._lost_us, BATCH),
            await triggers.forlorn(tx, self._lost_us, self._calm_us(), BATCH),
        )

    async def _sweep(self, tx: Tx, adrift: list[Held], forlorn: list[Held]) -> Returned:
        swept = await let_go(tx, adrift, "instance_gone", self._lost_us)
        for held in forlorn:
            swept += await fail(tx, held, TriggerReason.INSTANCE_LOST)
        return swept
