"""What a process's heartbeat is about: the runs that it holds, and what it tells of itself."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Hold:
    """One held run, as this thread sees it. Instants are monotonic seconds."""

    run_id: str
    fence: int
    lease_seconds: float
    sent_at: float  # before the claim or the last renewal that landed was sent
    on_lost: Callable[[str], object]
    groups: frozenset[int] = frozenset()
    closing: bool = False  # its last write is under way: not to be found any more is no loss

    def ends_at(self, margin: float) -> float:
        """When this process must have stopped working on the run."""
        return self.sent_at + self.lease_seconds - min(margin, self.lease_seconds / 4)


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a process tells with its heartbeat: its last tick and how late it was (OPS-5a)."""

    ticked_at: int | None
    lag_us: int | None
