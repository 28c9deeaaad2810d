"""Attempts that this process has instances do: written as pushes, given to who has room, waited for (TGT-1).

The process that holds a run's lease writes the push and waits for its end; the one that holds the instance's connection
sends it (``services.delivery``). They meet in the database alone, and wake each other by the signal.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.domain.invocation import Failing, Usage
from gnomon.domain.push import ENDED, PushEnd, PushKey, PushStatus, Withdrawal
from gnomon.ports.wakeup import Wakeup
from gnomon.services.gathering import Gathering
from gnomon.stores import instances, pushes
from gnomon.stores.database import Database, Tx

BATCH = 100
LOOK_SECONDS = 2.0  # where no signal comes
SOON_SECONDS = 0.1
_log = structlog.get_logger()
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(slots=True)  # not frozen: the wait notes how far it is
class _Waiter:
    role: str
    end: asyncio.Future[PushEnd]
    on_usage: Callable[[Usage], None]
    status: PushStatus = PushStatus.WAITING


class Pushing:
    """``ports.push.Hands``. ``tick()`` looks after all that this process waits for, in one read."""

    def __init__(self, database: Database, signal: Wakeup) -> None:
        self._database = database
        self._signal = signal
        self._opening = Gathering(database, self._open, signal.notify)
        self._waiters: dict[PushKey, _Waiter] = {}

    async def do(
        self,
        key: PushKey,
        role: str,
        frame: Mapping[str, Any],
        patience_seconds: float,
        on_usage: Callable[[Usage], None],
    ) -> PushEnd:
        """See ``Hands.do``."""
        waiter = _Waiter(role, asyncio.get_running_loop().create_future(), on_usage)
        self._waiters[key] = waiter
        withdrawal: Withdrawal | None = Withdrawal.CANCEL
        try:
            await self._opening.do((key, role, _encode(frame)))
            end = await self._wait(waiter, patience_seconds)
            withdrawal = Withdrawal.REVOKE if end is None else None
            return end or _nobody(key, role, waiter.status)
        finally:
            del self._waiters[key]
            if withdrawal is not None:
                await asyncio.shield(asyncio.ensure_future(self._withdraw(key, withdrawal)))

    async def tick(self) -> float | None:
        """Tell whoever waits what has ended, give what waits to who has room; seconds until the next look."""
        if not self._waiters:
            return None
        found, roomy = await self._database.read(self._look)
        waiting = []
        for role, end in found:
            waiter = self._waiters.get(end.key)
            if waiter is None:
                continue
            waiter.status = end.status
            if end.usage is not None:
                waiter.on_usage(end.usage)
            if end.status in ENDED and not waiter.end.done():
                waiter.end.set_result(end)
            elif end.status is PushStatus.WAITING and role in roomy:
                waiting.append((end.key, role))
        if not waiting:
            return LOOK_SECONDS
        given = await self._place(waiting[:BATCH])
        if given:
            self._signal.notify()
        # where there was room and nothing was given, others were placing something there at this moment
        return LOOK_SECONDS if given == len(waiting) else SOON_SECONDS

    async def _place(self, waiting: list[tuple[PushKey, str]]) -> int:
        async def work(tx: Tx) -> int:
            return await _give(tx, waiting)

        return await self._database.write_guarded(work)

    async def _look(self, tx: Tx) -> tuple[list[tuple[str, PushEnd]], set[str]]:
        found = await pushes.standing(tx, {key.run_id for key in self._waiters})
        roles = {role for role, end in found if end.status is PushStatus.WAITING}
        return found, await instances.roomy(tx, roles) if roles else set()

    @staticmethod
    async def _open(tx: Tx, new: tuple[PushKey, str, str]) -> None:
        key, role, frame = new
        await pushes.open_push(tx, key, role, frame)
        await _give(tx, [(key, role)])

    async def _wait(self, waiter: _Waiter, patience_seconds: float) -> PushEnd | None:
        """The end; ``None`` where nobody has taken it when patience is at its end."""
        await asyncio.wait({waiter.end}, timeout=max(0.0, patience_seconds))
        if not waiter.end.done():
            await self.tick()  # somebody may have taken it in this moment
        if not waiter.end.done() and waiter.status is not PushStatus.ACKNOWLEDGED:
            return None
        return await waiter.end  # whoever works on it has until the attempt's deadline, which cancels this

    async def _withdraw(self, key: PushKey, withdrawal: Withdrawal) -> None:
        try:
            await self._database.write_guarded(lambda tx: pushes.withdraw(tx, key, withdrawal))
        except Unavailable as error:  # the sweep finds what nobody waits for
            _log.warning("push_not_withdrawn", run_id=key.run_id, fence=key.fence, error=error.message)
        self._signal.notify()


async def _give(tx: Tx, waiting: list[tuple[PushKey, str]]) -> int:
    """Give each push to the least recently used instance with room; how many found one."""
    full: set[str] = set()
    given = 0
    for key, role in waiting:
        taken = None if role in full else await instances.take_place(tx, role)
        if taken is None:
            full.add(role)
        elif await pushes.give(tx, key, *taken):
            given += 1
    return given


def _nobody(key: PushKey, role: str, status: PushStatus) -> PushEnd:
    why = (
        f'No instance of the role "{role}" was connected and had room before the attempt was out of time.'
        if status is PushStatus.WAITING
        else f'No instance of the role "{role}" acknowledged the run before the attempt was out of time.'
    )
    return PushEnd(key, PushStatus.FAILED, error_code=Failing.NO_INSTANCE.value, error=why, retryable=True)
