"""A repeating pattern on whole numbers: days that come back every few days or weeks, months every few months.

Pure integer arithmetic; it must not know what the numbers stand for.
"""

from bisect import bisect_left, bisect_right


class Cycle:
    """The numbers origin + position + k * period for every k; positions are sorted, in [0, period), never empty."""

    __slots__ = ("_first", "_last", "_origin", "_period", "_positions")

    def __init__(self, origin: int, period: int, positions: tuple[int, ...] = (0,)) -> None:
        self._origin = origin
        self._period = period
        self._positions = positions
        self._first = positions[0]
        self._last = positions[-1]

    def at_or_after(self, number: int) -> int:
        """Give the smallest member that is not below `number`."""
        phase = (number - self._origin) % self._period
        if phase > self._last:
            return number - phase + self._period + self._first
        positions = self._positions
        return number - phase + positions[bisect_left(positions, phase)]

    def at_or_before(self, number: int) -> int:
        """Give the largest member that is not above `number`."""
        phase = (number - self._origin) % self._period
        if phase < self._first:
            return number - phase + self._last - self._period
        positions = self._positions
        return number - phase + positions[bisect_right(positions, phase) - 1]

    def count(self, first: int, last: int) -> int:
        """Count the members in [first, last]."""
        return self._rank(last + 1) - self._rank(first) if first <= last else 0

    def holds(self, number: int) -> bool:
        """Tell whether the number is a member."""
        return (number - self._origin) % self._period in self._positions

    def _rank(self, number: int) -> int:
        turns, phase = divmod(number - self._origin, self._period)
        return turns * len(self._positions) + bisect_left(self._positions, phase)
