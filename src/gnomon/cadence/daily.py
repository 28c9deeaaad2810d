"""The dates of `day`, `week` and `once`: every few days, chosen weekdays every few weeks, one date.

Days are numbers since 1970-01-01 in the zone of the rule. Nothing here knows times, zones or instants.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gnomon.cadence.civil import FIRST_DAY, LAST_DAY
from gnomon.cadence.cycle import Cycle

CANDIDATE_DAYS = 400
WEEKDAYS: tuple[str, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Dates(Protocol):
    """The dates that a rule names, left-out dates taken out; every search is bounded (CAD-7)."""

    def at_or_after(self, day: int) -> int | None:
        """Give the first date that is not before `day`, or None within the bound."""
        ...

    def at_or_before(self, day: int) -> int | None:
        """Give the last date that is not after `day`, or None within the bound."""
        ...

    def count(self, first: int, last: int) -> int:
        """Count the dates in [first, last]."""
        ...


class CycleDates:
    """Dates that a cycle names, at most 400 candidates a search (CAD-7)."""

    __slots__ = ("_excluded", "cycle")

    def __init__(self, cycle: Cycle, excluded: frozenset[int] = frozenset()) -> None:
        self.cycle = cycle
        self._excluded = excluded

    def at_or_after(self, day: int) -> int | None:
        """Give the first date that is not before `day`."""
        found = self.cycle.at_or_after(day)
        if found in self._excluded or not FIRST_DAY <= found <= LAST_DAY:
            return self._step(found, self.cycle.at_or_after, 1)
        return found

    def at_or_before(self, day: int) -> int | None:
        """Give the last date that is not after `day`."""
        found = self.cycle.at_or_before(day)
        if found in self._excluded or not FIRST_DAY <= found <= LAST_DAY:
            return self._step(found, self.cycle.at_or_before, -1)
        return found

    def count(self, first: int, last: int) -> int:
        """Count the dates in [first, last]."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        left_out = sum(first <= day <= last and self.cycle.holds(day) for day in self._excluded)
        return self.cycle.count(first, last) - left_out

    def _step(self, day: int, find: Callable[[int], int], direction: int) -> int | None:
        """Go on from a date that is left out; it was the first candidate."""
        for _ in range(CANDIDATE_DAYS - 1):
            day = find(day + direction)
            if day not in self._excluded and FIRST_DAY <= day <= LAST_DAY:
                return day
        return None


@dataclass(frozen=True, slots=True)
class OneDate:
    """The single date of `once`; None where the zone or the calendar has no such date."""

    day: int | None

    def at_or_after(self, day: int) -> int | None:
        """Give the date unless it lies before `day`."""
        return self.day if self.day is not None and self.day >= day else None

    def at_or_before(self, day: int) -> int | None:
        """Give the date unless it lies after `day`."""
        return self.day if self.day is not None and self.day <= day else None

    def count(self, first: int, last: int) -> int:
        """Count the dates in [first, last]: none or one."""
        return int(self.day is not None and first <= self.day <= last)


def every_days(every: int, anchor_day: int) -> Cycle:
    """Count days from the anchor's date (CAD-5)."""
    return Cycle(anchor_day, every)


def every_weeks(every: int, weekdays: tuple[int, ...], anchor_day: int) -> Cycle:
    """Count weeks from the anchor's ISO week, which starts on Monday; weekdays are sorted, 0 (Monday) to 6 (CAD-5, CAD-6)."""
    return Cycle(anchor_day - weekday_of(anchor_day), 7 * every, weekdays)


def weekday_of(day: int) -> int:
    """Give the weekday of a day number, Monday being 0."""
    return (day + 3) % 7
