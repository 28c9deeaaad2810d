"""The clock guard: after the wall clock jumps, or the process stood still, nothing that looks expired is taken (RUN-5b).

On SQLite the database's clock is the machine's own, so a jump expires every lease at once; and a watchdog that was
frozen itself wakes up among heartbeats that look overdue. Both give the living the length of a lease to speak up.

It compares the database's clock with the process's monotonic one at each tick and at each heartbeat, and with what the
heartbeats of its machine say: so a process that is born after a jump has readings from before it, and two jumps that
undo each other are seen in the heartbeats written between them. Safe from any thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock
from gnomon.stores.processes import Reading

JUMP_SECONDS = 5.0
# A clock that a time server pulls runs off by half a millisecond in a second at most: no jump, however long ago.
PULL = 0.001


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump that was seen: by how many seconds, forward or back; ``stalled`` where the process stood still instead."""

    seconds: float
    stalled: bool


class ClockGuard:
    """What one process knows of the clock's jumps."""

    def __init__(self, clock: Clock, stall_seconds: float) -> None:
        self._clock = clock
        self._born_at = clock.monotonic()
        self._stall_seconds = stall_seconds
        self._lock = Lock()
        self._last: tuple[float, float] | None = None  # offset of the database's clock, and when it was read
        self._ticked_at: float | None = None
        self._jumped_at: float | None = None
        self._untold: list[Jump] = []

    def began(self) -> None:
        """The loops begin: from here on a standstill is one, before the first tick too."""
        self._ticked_at = self._clock.monotonic()

    def note(self, database_now: int, asked_at: float) -> None:
        """A heartbeat has read the database's clock (microseconds); it was asked at ``asked_at`` (monotonic)."""
        now = self._clock.monotonic()
        with self._lock:
            if now - asked_at < JUMP_SECONDS / 2:  # else it is not known when it was read
                self._compare(database_now, now)

    def observe(self, database_now: int, readings: Iterable[Reading] = ()) -> list[Jump]:
        """Take a reading at a tick, beside those of the machine's heartbeats; every jump that was not told yet."""
        now = self._clock.monotonic()
        with self._lock:
            seen = self._compare(database_now, now)
            self._compare_others(database_now / SECOND - now, now, readings)
            return self._tell(now, seen=seen)

    def ask(self) -> list[Jump]:
        """As ``observe`` at a tick that takes nothing, and so takes no reading beyond those of the agenda."""
        with self._lock:
            return self._tell(self._clock.monotonic(), seen=False)

    def calm_us(self) -> int | None:
        """Microseconds since the last jump, for the sweep; ``None`` where there has been none."""
        jumped_at = self._jumped_at
        return None if jumped_at is None else round((self._clock.monotonic() - jumped_at) * SECOND)

    def _tell(self, now: float, *, seen: bool) -> list[Jump]:
        """What is to be told at a tick, a standstill before it included."""
        ticked_at, self._ticked_at = self._ticked_at, now
        if not seen and ticked_at is not None and now - ticked_at > self._stall_seconds:
            self._jumped(now, Jump(now - ticked_at, stalled=True))
        told, self._untold = self._untold, []
        return told

    def _compare(self, database_now: int, now: float) -> bool:
        """Against this process's own reading before; whether the clock has jumped since."""
        offset = database_now / SECOND - now
        last, self._last = self._last, (offset, now)
        if last is None or abs(offset - last[0]) <= JUMP_SECONDS:
            return False
        self._jumped(now, Jump(offset - last[0], stalled=False))
        return True

    def _compare_others(self, offset: float, now: float, readings: Iterable[Reading]) -> None:
        """Against what heartbeats say that are younger than the last jump this process knows of."""
        agreeing = now  # the earliest reading after the jump: it was before that
        for reading in sorted(readings, key=lambda each: -each.boot_us):
            at = reading.boot_us / SECOND
            moved = offset - (reading.database_us / SECOND - at)
            if abs(moved) <= JUMP_SECONDS + PULL * max(0.0, now - at):
                agreeing = min(agreeing, at)
            elif self._jumped_at is None or at > self._jumped_at:
                # whoever was here right after it has told it
                self._jumped(agreeing, Jump(moved, stalled=False), tell=agreeing >= self._born_at)
            else:
                return

    def _jumped(self, at: float, jump: Jump, *, tell: bool = True) -> None:
        self._jumped_at = at if self._jumped_at is None else max(at, self._jumped_at)
        if tell:
            self._untold.append(jump)
