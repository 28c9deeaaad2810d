"""The machine's clocks and its randomness: the only module that reads them."""

import asyncio
import os
import secrets
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock

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

    def boot(self) -> str | None:
        """This boot of the machine, and the time namespace (a container may have its own); ``None`` where unknown."""
        return _boot()

    async def wait(self, seconds: float) -> None:
        """Return after ``seconds``."""
        await asyncio.sleep(seconds)


@cache
def _boot() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/time').readlink()}"
    except (OSError, UnicodeError):
        return None


_DRAWN_BYTES = 4_096


class SystemEntropy:
    """``ports.clock.Entropy`` over the operating system's generator. Safe from any thread; no bit is given twice.

    It is drawn in large pieces: a system call for each id would let go of the interpreter each time.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pid = 0
        self._drawn = b""
        self._used = 0

    def bits(self, count: int) -> int:
        """``count`` random bits as an integer, fit for secrets."""
        size = (count + 7) // 8
        with self._lock:
            end = self._used + size
            if (
                end > len(self._drawn) or self._pid != os.getpid()
            ):  # a forked child must not repeat its parent's
                self._drawn, self._pid, end = secrets.token_bytes(max(size, _DRAWN_BYTES)), os.getpid(), size
            piece, self._used = self._drawn[end - size : end], end
        return int.from_bytes(piece) >> (size * 8 - count)
