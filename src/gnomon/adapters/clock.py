"""The machine's clocks and its randomness: the only module that reads them."""

import asyncio
import secrets
import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME goes on while a laptop sleeps, so that a lease can't look young after an hour with the lid closed.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """``ports.clock.Clock`` over the operating system."""

    def now(self) -> datetime:
        """The wall clock: aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the one door

    def micros(self) -> int:
        """The wall clock as microseconds since 1970 (UTC)."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds since boot, sleep included."""
        return time.clock_gettime(_BOOT_CLOCK)

    async def wait(self, seconds: float) -> None:
        """Return after ``seconds``."""
        await asyncio.sleep(seconds)


class SystemEntropy:
    """``ports.clock.Entropy`` over the operating system's generator."""

    def bits(self, count: int) -> int:
        """``count`` random bits as an integer, fit for secrets."""
        return secrets.randbits(count)
