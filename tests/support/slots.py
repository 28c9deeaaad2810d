"""A walk over a plain list of slots: the simplest thing that can stand where a compiled cadence stands."""

from collections.abc import Iterable


class ListedSlots:
    """Answers by looking through a list; shares no code with the cadence module."""

    def __init__(self, slots: Iterable[int]) -> None:
        self.slots = sorted(set(slots))

    def next_after(self, micros: int, /) -> int | None:
        return min((slot for slot in self.slots if slot > micros), default=None)

    def latest_at(self, micros: int, /) -> int | None:
        return max((slot for slot in self.slots if slot <= micros), default=None)

    def count_between(self, start: int, end: int, /) -> tuple[int, int, int] | None:
        found = [slot for slot in self.slots if start <= slot < end]
        return (found[0], found[-1], len(found)) if found else None
