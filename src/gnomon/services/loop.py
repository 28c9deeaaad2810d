"""The loop around a tick: when it is called again, and what happens when it fails.

A tick says how long it may be left alone; the loop waits that long, but for a moment before the end in which it is up and
ticks once more, never longer than its bound, and not at all when the signal comes. At its bound it may ask what lies ahead
(``agenda``) instead of ticking. Waits are measured on the monotonic clock and short enough that a wall clock that jumps, or
a laptop that slept, is noticed within one bound (DSP-1).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Ear
from gnomon.stores.agenda import Ahead

_log = structlog.get_logger()
# A machine that has slept wakes late, and its server answers the first question late. So a loop is up and has looked when
# what it waits for comes.
AWAKE_SECONDS = 0.03
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
Tick = Callable[[], Awaitable[float | None]]
DueAt = Callable[[Ahead], int | None]


@dataclass(frozen=True, slots=True)
class Errand:
    """A tick that an engine drives beside its own, at least every ``most_seconds``.

    One that ``begins`` new work stops when the process begins to stop; any other runs until the runs in flight are over.
    ``due_at`` is when it has something to do, by the agenda; without it, it looks for itself.
    """

    name: str
    tick: Tick
    most_seconds: float
    begins: bool = False
    due_at: DueAt | None = None


class Loop:
    """Calls one ``tick`` for ever, until it is stopped."""

    def __init__(
        self,
        name: str,
        tick: Tick,
        *,
        clock: Clock,
        wakeup: Ear,
        most_seconds: float,
        listens: bool = True,
        ahead: Callable[[], Awaitable[float]] | None = None,
    ) -> None:
        self.name = name
        self._tick = tick
        self._clock = clock
        self._wakeup = wakeup
        self._most = most_seconds
        self._listens = listens
        self._ahead = ahead
        self._wanted_at = float("-inf")  # when the last tick wanted the next one (monotonic)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.ticked_at: float | None = None  # monotonic, of the last tick that ended well
        self.ticked_at_us: int | None = None

    def start(self) -> None:
        """Start ticking, at once."""
        self._task = asyncio.create_task(self._run(), name=f"gnomon-{self.name}")

    async def stop(self) -> None:
        """Let a tick that is under way end, and stop."""
        self._stopping.set()
        self._wakeup.wake()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        pause, seen = _FIRST_PAUSE, self._wakeup.version
        while not self._stopping.is_set():
            woken, seen = self._wakeup.version != seen, self._wakeup.version
            try:
                wait = await self._turn(woken=woken)
            except Exception as error:
                if isinstance(error, Unavailable):
                    _log.warning("tick_failed", loop=self.name, error=error.message, retry_in=pause)
                else:
                    _log.exception("tick_failed", loop=self.name, retry_in=pause)
                self._wanted_at = float("-inf")
                seen = self._wakeup.version
                await self._wait(seen, pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            self.ticked_at, self.ticked_at_us = self._clock.monotonic(), self._clock.micros()
            await self._wait(seen, wait)

    async def _turn(self, *, woken: bool) -> float:
        """Tick, unless nothing lies ahead; seconds until the next turn."""
        left = self._wanted_at - self._clock.monotonic()
        if self._ahead is not None and left > 0 and not woken:
            wait = min(await self._ahead(), left)
            if wait > 0:
                return min(wait, self._most)
        wanted = await self._tick()
        if wanted is not None and wanted > 2 * AWAKE_SECONDS:
            wanted -= AWAKE_SECONDS
        self._wanted_at = float("inf") if wanted is None else self._clock.monotonic() + wanted
        return self._most if wanted is None else min(max(wanted, 0.0), self._most)

    async def _wait(self, seen: int, seconds: float) -> None:
        if self._stopping.is_set():
            return
        if self._listens:
            await self._wakeup.wait(seen, seconds)
        else:
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({stopping}, timeout=seconds)
            stopping.cancel()
