"""A clock driven by hand and randomness from a seed: ``ports.clock`` for tests, ours and yours."""

import asyncio
import heapq
import random
from datetime import datetime, timedelta

from gnomon.domain.instants import from_micros, to_micros


class FrozenClock:
    """Stands still until ``advance`` or ``jump``; sleepers wake in order as their instant passes."""

    def __init__(self, start: datetime) -> None:
        self._micros = to_micros(start)
        self._monotonic = 1_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        """The wall clock."""
        return from_micros(self._micros)

    def micros(self) -> int:
        """The wall clock in microseconds."""
        return self._micros

    def monotonic(self) -> float:
        """Seconds that only ``advance`` moves."""
        return self._monotonic

    def boot(self) -> str | None:
        """The same for all who share this clock."""
        return f"frozen-{id(self)}"

    async def wait(self, seconds: float) -> None:
        """Return once the clock was advanced by ``seconds``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._monotonic + seconds, self._count, future))
        await future

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move, sleepers whose time has come wake up."""
        self._micros += round(seconds * 1_000_000)
        self._monotonic += seconds
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back while no time passes: what an operator or a bad time server does."""
        self._micros += round(seconds * 1_000_000)

    def set(self, instant: datetime) -> None:
        """Advance to ``instant``, which must not lie in the past."""
        self.advance((instant - self.now()) / timedelta(seconds=1))


class SeededEntropy:
    """Random bits that are the same in every run of a test."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable is the point

    def bits(self, count: int) -> int:
        """``count`` bits."""
        return self._random.getrandbits(count)
