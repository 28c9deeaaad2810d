"""The dates of `day`, `week` and `once`: every few days, chosen weekdays every few weeks, one date.

Days are numbers since 1970-01-01 in the zone of the rule. Nothing here knows times, zones or instants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gnomon.cadence.civil import FIRST_DAY, LAST_DAY
from gnomon.cadence.cycle import Cycle

CANDIDATE_DAYS = 400
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


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


@dataclass(frozen=True, slots=True)
class CycleDates:
    """Dates that a cycle names, at most 400 candidates a search (CAD-7)."""

    cycle: Cycle
    excluded: frozenset[int] = frozenset()

    def at_or_after(self, day: int) -> int | None:
        """Give the first date that is not before `day`."""
        day = max(day, FIRST_DAY)
        for _ in range(CANDIDATE_DAYS):
            day = self.cycle.at_or_after(day)
            if day not in self.excluded:
                return day if day <= LAST_DAY else None
            day += 1
        return None

    def at_or_before(self, day: int) -> int | None:
        """Give the last date that is not after `day`."""
        day = min(day, LAST_DAY)
        for _ in range(CANDIDATE_DAYS):
            day = self.cycle.at_or_before(day)
            if day not in self.excluded:
                return day if day >= FIRST_DAY else None
            day -= 1
        return None

    def count(self, first: int, last: int) -> int:
        """Count the dates in [first, last]."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        left_out = sum(first <= day <= last and self.cycle.holds(day) for day in self.excluded)
        return self.cycle.count(first, last) - left_out


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


def every_weeks(every: int, weekdays: Sequence[int], anchor_day: int) -> Cycle:
    """Count weeks from the anchor's ISO week, which starts on Monday; weekdays are 0 (Monday) to 6 (CAD-5, CAD-6)."""
    return Cycle(anchor_day - weekday_of(anchor_day), 7 * every, tuple(sorted(weekdays)))


def weekday_of(day: int) -> int:
    """Give the weekday of a day number, Monday being 0."""
    return (day + 3) % 7
