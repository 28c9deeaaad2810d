"""Time and chance, the two things a program can't compute; both are passed in, never imported.

The machine's own are in ``adapters/clock.py``, a hand-driven clock in ``testing/clock.py``.
"""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what people read, monotonic time for durations and for a runner's own deadlines (RUN-5)."""

    def now(self) -> datetime:
        """The wall clock: aware, UTC."""
        ...

    def micros(self) -> int:
        """The wall clock as microseconds since 1970 (UTC)."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back and counts a suspended machine's sleep as passed."""
        ...

    def boot(self) -> str | None:
        """What ``monotonic`` counts from: processes that give the same can compare readings; ``None`` if none can."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return after ``seconds`` of this clock's time."""
        ...


class Entropy(Protocol):
    """The source of random bits for ids and keys."""

    def bits(self, count: int) -> int:
        """``count`` random bits as an integer, fit for secrets."""
        ...
