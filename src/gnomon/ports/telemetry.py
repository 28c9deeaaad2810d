"""What a process tells of itself in numbers: counted where it happens, shown where somebody asks (OPS-6)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of one process since its start.

    Slots by (disposition, reason), ended runs by status, runs in work now, the last tick (microseconds) and how late
    the latest slot was recorded (microseconds).
    """

    slots: dict[tuple[str, str], int]
    runs: dict[str, int]
    in_work: int
    ticked_at_us: int | None
    lag_us: int


@dataclass(frozen=True, slots=True)
class TriggerCounts:
    """Counters of one process's triggers since its start, each by a word.

    ``made`` are what this process decided (given, waiting, missed), ``pushed`` what it sent (first, redelivered),
    ``ended`` what instances told it of their ends (succeeded, failed).
    """

    made: dict[str, int]
    pushed: dict[str, int]
    ended: dict[str, int]
