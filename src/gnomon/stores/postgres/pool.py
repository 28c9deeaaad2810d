"""The few connections that a database holds, made when they are needed and made again when they were lost.

Written for one event loop. asyncpg's own pool resets a session at each release, which costs a trip for state that we
never leave behind.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

from gnomon.domain.errors import GnomonError, Unavailable
from gnomon.ports.clock import Clock
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.connection import Raw, connect
from gnomon.stores.postgres.failures import FAILURES, translated

WAIT_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Pool:
    """At most ``size`` connections to one address; ``cached`` says how many prepared statements each may keep."""

    def __init__(self, address: Address, clock: Clock, size: int, cached: Callable[[], int]) -> None:
        self._address = address
        self._clock = clock
        self._cached = cached
        self.size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[Raw] = []
        self._closed = False
        self._failed: GnomonError | None = None
        self._pause = _FIRST_PAUSE
        self._not_before = 0.0

    async def take(self) -> Raw:
        """A connection, the one used last if any is idle; it goes back by ``give``.

        Raises:
            Unavailable: the program is stopping, all are in use for too long, or none can be made; after a failure
                the next try is made only after a pause, and until then the failure is told again.
        """
        if self._closed:
            raise _stopping()
        await self._place()
        try:
            while self._idle:
                raw = self._idle.pop()
                if not raw.is_closed():
                    return raw
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, raw: Raw) -> None:
        """Take a connection back, broken or whole."""
        if self._closed:
            raw.terminate()
        elif not raw.is_closed():
            self._idle.append(raw)
        self._free.release()

    def drop_idle(self) -> None:
        """Cut off every idle connection: one of them was found dead, so the others probably are."""
        idle, self._idle = self._idle, []
        for raw in idle:
            raw.terminate()

    async def close(self) -> None:
        """Wait a moment for what is under way, then close every connection."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                for _ in range(self.size):
                    await self._free.acquire()
        idle, self._idle = self._idle, []
        for raw in idle:
            try:
                await raw.close(timeout=_CLOSE_SECONDS)
            except FAILURES:
                raw.terminate()

    async def _place(self) -> None:
        if not self._free.locked():
            await self._free.acquire()  # at once
            return
        try:
            await asyncio.wait_for(self._free.acquire(), WAIT_SECONDS)
        except TimeoutError:
            raise Unavailable(
                "The database is busy: every connection of this process is in use. Try again.", code="busy"
            ) from None

    async def _connect(self) -> Raw:
        if self._closed:
            raise _stopping()
        now = self._clock.monotonic()
        if self._failed is not None and now < self._not_before:
            failed = self._failed
            raise type(failed)(failed.message, code=failed.code)
        try:
            raw = await connect(self._address, cached=self._cached())
        except FAILURES as error:
            found = translated(error)
            if isinstance(found, GnomonError):
                self._failed = found
                # spread out, so that the processes of a house don't all come back in the same instant
                self._not_before = now + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - guards nothing
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            raise found from error
        self._failed, self._pause = None, _FIRST_PAUSE
        return raw


def _stopping() -> Unavailable:
    return Unavailable("The database is closed: the program is stopping.", code="stopping")
