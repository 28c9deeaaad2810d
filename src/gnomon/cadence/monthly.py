"""The dates of monthly rules: a day of the month, its last day, an n-th weekday, or any pattern a month can tell.

Months are numbers year * 12 + month - 1. Nothing here knows times, zones or instants.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from gnomon.cadence.civil import EPOCH_ORDINAL, FIRST_DAY, LAST_DAY
from gnomon.cadence.cycle import Cycle
from gnomon.cadence.daily import weekday_of

CANDIDATE_MONTHS = 26
EVERY_MONTH = Cycle(0, 1)
FIRST_MONTH = 12
LAST_MONTH = 9999 * 12 + 11
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

DaysOfMonth = Callable[[int, int], tuple[int, ...]]


def month_of(day: int) -> int:
    """Give the month that holds a day; an anchor's may lie a little outside of the calendar, by its zone."""
    if not FIRST_DAY <= day <= LAST_DAY:
        return FIRST_MONTH - 1 if day < FIRST_DAY else LAST_MONTH + 1
    found = date.fromordinal(day + EPOCH_ORDINAL)
    return found.year * 12 + found.month - 1


@lru_cache(maxsize=4096)
def month_span(month: int) -> tuple[int, int]:
    """Give the first day of a month and the number of its days."""
    year, index = divmod(month, 12)
    first = date(year, index + 1, 1).toordinal() - EPOCH_ORDINAL
    if index == 1 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return first, 29
    return first, _LENGTHS[index]


class MonthDates:
    """Dates picked inside the months of a cycle; at most 26 months that match the phase a search (CAD-7)."""

    __slots__ = ("_cycle", "_excluded", "_memo", "_pick")

    def __init__(self, cycle: Cycle, pick: DaysOfMonth, excluded: frozenset[int] = frozenset()) -> None:
        self._cycle = cycle
        self._pick = pick
        self._excluded = excluded
        self._memo: tuple[int, tuple[int, ...]] = (-1, ())

    def at_or_after(self, day: int) -> int | None:
        """Give the first date that is not before `day`."""
        if day > LAST_DAY:
            return None
        month = month_of(day) if day >= FIRST_DAY else FIRST_MONTH
        left = CANDIDATE_MONTHS
        while left:
            month = self._cycle.at_or_after(month)
            if month > LAST_MONTH:
                return None
            days = self._days(month)
            if days and days[-1] >= day:
                return days[bisect_left(days, day)]
            left -= not days  # a month whose dates are over was no candidate
            month += 1
        return None

    def at_or_before(self, day: int) -> int | None:
        """Give the last date that is not after `day`."""
        if day < FIRST_DAY:
            return None
        month = month_of(day) if day <= LAST_DAY else LAST_MONTH
        left = CANDIDATE_MONTHS
        while left:
            month = self._cycle.at_or_before(month)
            if month < FIRST_MONTH:
                return None
            days = self._days(month)
            if days and days[0] <= day:
                return days[bisect_right(days, day) - 1]
            left -= not days
            month -= 1
        return None

    def count(self, first: int, last: int) -> int:
        """Count the dates in [first, last]; the cost grows with the number of months."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        if first > last:
            return 0
        total = 0
        month, end = self._cycle.at_or_after(month_of(first)), month_of(last)
        while month <= end:
            total += sum(first <= day <= last for day in self._days(month))
            month = self._cycle.at_or_after(month + 1)
        return total

    def _days(self, month: int) -> tuple[int, ...]:
        seen, days = self._memo
        if seen != month:
            days = self._pick(*month_span(month))
            if self._excluded:
                days = tuple(day for day in days if day not in self._excluded)
            self._memo = month, days
        return days


@lru_cache(maxsize=64)
def day_of_month(number: int, short_month: str | None) -> DaysOfMonth:
    """Pick one day of the month; in a month too short for it the last day (`clamp`), or none (CAD-6)."""
    clamp = short_month == "clamp"

    def pick(first: int, length: int) -> tuple[int, ...]:
        if number <= length:
            return (first + number - 1,)
        return (first + length - 1,) if clamp else ()

    return pick


def last_day(first: int, length: int) -> tuple[int, ...]:
    """Pick the last day of the month (CAD-6)."""
    return (first + length - 1,)


@lru_cache(maxsize=64)
def nth_weekday(weekday: int, nth: int) -> DaysOfMonth:
    """Pick the n-th weekday (1 to 5) or the last one (-1); a month without a fifth has none (CAD-6)."""

    def pick(first: int, length: int) -> tuple[int, ...]:
        if nth < 0:
            final = first + length - 1
            return (final - (weekday_of(final) - weekday) % 7,)
        found = first + (weekday - weekday_of(first)) % 7 + 7 * (nth - 1)
        return (found,) if found < first + length else ()

    return pick
