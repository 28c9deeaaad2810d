"""The clock guard: after the wall clock jumps, or the process stood still, nothing that looks expired is taken (RUN-5b).

On SQLite the database's clock is the machine's own, so a jump expires every lease at once; and a watchdog that was
frozen itself wakes up among heartbeats that look overdue. Both give the living the length of a lease to speak up.
"""

from dataclasses import dataclass

from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock

JUMP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump that was seen: by how many seconds, forward or back; ``stalled`` where the process stood still instead."""

    seconds: float
    stalled: bool


class ClockGuard:
    """Compares the database's clock with the process's monotonic one at each tick."""

    def __init__(self, clock: Clock, stall_seconds: float) -> None:
        self._clock = clock
        self._stall_seconds = stall_seconds
        self._last: tuple[int, float] | None = None
        self._jumped_at: float | None = None

    def observe(self, database_now: int) -> Jump | None:
        """Take a reading of the database's clock (microseconds); the jump since the last one, if there was any."""
        now = self._clock.monotonic()
        last, self._last = self._last, (database_now, now)
        if last is None:
            return None
        passed = now - last[1]
        drift = (database_now - last[0]) / SECOND - passed
        if abs(drift) > JUMP_SECONDS:
            self._jumped_at = now
            return Jump(drift, stalled=False)
        if passed > self._stall_seconds:
            self._jumped_at = now
            return Jump(passed, stalled=True)
        return None

    def calm_us(self) -> int | None:
        """Microseconds since the last jump, for the sweep; ``None`` where there has been none."""
        if self._jumped_at is None:
            return None
        return round((self._clock.monotonic() - self._jumped_at) * SECOND)
