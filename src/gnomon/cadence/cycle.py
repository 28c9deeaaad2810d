"""A repeating pattern on whole numbers: days that come back every few days or weeks, months every few months.

Pure integer arithmetic; it must not know what the numbers stand for.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cycle:
    """The numbers origin + position + k * period for every k; positions are sorted, in [0, period), never empty."""

    origin: int
    period: int
    positions: tuple[int, ...] = (0,)

    def at_or_after(self, number: int) -> int:
        """Give the smallest member that is not below `number`."""
        phase = (number - self.origin) % self.period
        index = bisect_left(self.positions, phase)
        if index < len(self.positions):
            return number - phase + self.positions[index]
        return number - phase + self.period + self.positions[0]

    def at_or_before(self, number: int) -> int:
        """Give the largest member that is not above `number`."""
        phase = (number - self.origin) % self.period
        index = bisect_right(self.positions, phase)
        return number - phase + (self.positions[index - 1] if index else self.positions[-1] - self.period)

    def count(self, first: int, last: int) -> int:
        """Count the members in [first, last]."""
        return self._rank(last + 1) - self._rank(first) if first <= last else 0

    def holds(self, number: int) -> bool:
        """Tell whether the number is a member."""
        return (number - self.origin) % self.period in self.positions

    def _rank(self, number: int) -> int:
        turns, phase = divmod(number - self.origin, self.period)
        return turns * len(self.positions) + bisect_left(self.positions, phase)
