"""The slots of `minute` and `hour`: anchor + k * interval on the UTC line, whatever the zone does (CAD-2).

The zone is here for labels alone. Nothing here knows wall clocks.
"""

from gnomon.cadence.civil import FIRST_SECOND, LAST_SECOND, MICRO, Zone


class RollingSlots:
    """Compiled `minute` or `hour`; works on integers of microseconds, UTC."""

    __slots__ = ("_first", "_step", "zone")

    def __init__(self, zone: Zone, step: int, anchor: int | None) -> None:
        self.zone = zone
        self._step = step
        # Without an anchor the grid runs through 1970-01-01T00:00Z in both directions.
        self._first = -(-FIRST_SECOND // step) * step if anchor is None else anchor

    def next_after(self, micros: int) -> int | None:
        """Give the first slot strictly after an instant (CAD-8), None beyond the range of datetime."""
        second = micros // MICRO
        if second < self._first:
            return self._first * MICRO
        found = second + self._step - (second - self._first) % self._step
        return found * MICRO if found <= LAST_SECOND else None

    def latest_at(self, micros: int) -> int | None:
        """Give the last slot at or before an instant, None before the anchor."""
        second = min(micros // MICRO, LAST_SECOND)
        return (second - (second - self._first) % self._step) * MICRO if second >= self._first else None

    def count_between(self, start: int, end: int) -> tuple[int, int, int] | None:
        """Give (first, last, count) of the slots in [start, end) without walking, None where there are none."""
        first, last = self.next_after(start - 1), self.latest_at(end - 1)
        if first is None or last is None or first > last:
            return None
        return first, last, (last - first) // (self._step * MICRO) + 1
