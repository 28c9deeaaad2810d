"""What an imported rule becomes: dates and times of day under the same civil rule as every other (CAD-9).

Cron and RRULE differ in how they are written; both end here. Also the floor of five minutes, decided over the
whole pattern. Weekdays are 0 (Monday) to 6, months 0 (January) to 11.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import lcm
from typing import Protocol

from gnomon.cadence.civil import DAY
from gnomon.cadence.cycle import Cycle
from gnomon.cadence.daily import CycleDates, Dates, OneDate, every_days, every_weeks, weekday_of
from gnomon.cadence.faults import ExpressionError
from gnomon.cadence.monthly import MonthDates, month_of, month_span

FLOOR_SECONDS = 300
ALL_MONTHS = frozenset(range(12))
ALL_MONTHDAYS = frozenset(range(1, 32))
ALL_WEEKDAYS = frozenset((weekday, 0) for weekday in range(7))
LAST_WORKDAY = 99
"""A day of the month that stands for the last Monday to Friday of it."""

# Any 28 years in a row without a skipped leap year hold each kind of year on each weekday.
_YEARS = range(2001 * 12, 2029 * 12)


class DateForm(Protocol):
    """Which dates a rule names, before it has an anchor."""

    def dates(self, anchor_day: int, left_out: frozenset[int]) -> Dates:
        """Bind the dates to the anchor's local date (CAD-5)."""
        ...

    def neighbours(self) -> bool:
        """Tell whether two dates in a row can both belong to the rule."""
        ...


@dataclass(frozen=True, slots=True)
class DayForm:
    """Every so many days."""

    every: int

    def dates(self, anchor_day: int, left_out: frozenset[int]) -> Dates:
        """Bind to the anchor."""
        return CycleDates(every_days(self.every, anchor_day), left_out)

    def neighbours(self) -> bool:
        """Tell whether every date belongs."""
        return self.every == 1


@dataclass(frozen=True, slots=True)
class WeekForm:
    """Chosen weekdays, every so many weeks."""

    every: int
    weekdays: frozenset[int]

    def dates(self, anchor_day: int, left_out: frozenset[int]) -> Dates:
        """Bind to the anchor."""
        return CycleDates(every_weeks(self.every, tuple(sorted(self.weekdays)), anchor_day), left_out)

    def neighbours(self) -> bool:
        """Tell whether two weekdays in a row are chosen; Sunday and Monday are, in a rule of every week."""
        over_border = self.every == 1 and {6, 0} <= self.weekdays
        return over_border or any(day + 1 in self.weekdays for day in self.weekdays)


@dataclass(frozen=True, slots=True)
class DayPattern:
    """Which days of a month belong: by number (negative from the end), by weekday with an ordinal (0 for each).

    With `both` a day must match number and weekday, without it one of them does. `positions` then keep only the
    n-th of the days found (negative from the end), as BYSETPOS does.
    """

    monthdays: frozenset[int] = ALL_MONTHDAYS
    weekdays: frozenset[tuple[int, int]] = ALL_WEEKDAYS
    both: bool = True
    positions: frozenset[int] = frozenset()

    def pick(self, first: int, length: int) -> tuple[int, ...]:
        """Pick the days of the month that begins with day `first` and has `length` days."""
        by_number, by_weekday = self._by_number(first, length), self._by_weekday(first, length)
        numbers = sorted(by_number & by_weekday if self.both else by_number | by_weekday)
        days = [first + number - 1 for number in numbers if 1 <= number <= length]
        if not self.positions:
            return tuple(days)
        count = len(days)
        return tuple(
            day
            for index, day in enumerate(days)
            if index + 1 in self.positions or index - count in self.positions
        )

    def _by_number(self, first: int, length: int) -> set[int]:
        if self.monthdays is ALL_MONTHDAYS:
            return set(range(1, length + 1))
        numbers = {number if number > 0 else length + 1 + number for number in self.monthdays}
        if LAST_WORKDAY in numbers:
            numbers.add(length - max(weekday_of(first + length - 1) - 4, 0))
        return numbers

    def _by_weekday(self, first: int, length: int) -> set[int]:
        if self.weekdays is ALL_WEEKDAYS:
            return set(range(1, length + 1))
        start = weekday_of(first)
        numbers: set[int] = set()
        for weekday, ordinal in self.weekdays:
            same = range((weekday - start) % 7 + 1, length + 1, 7)
            if ordinal == 0:
                numbers.update(same)
            elif -len(same) <= ordinal <= len(same):
                numbers.add(same[ordinal - (ordinal > 0)])
        return numbers


@dataclass(frozen=True, slots=True)
class MonthForm:
    """Days of a pattern, in the chosen months of every so many months, or years if `yearly`."""

    pattern: DayPattern
    months: frozenset[int] = ALL_MONTHS
    every: int = 1
    yearly: bool = True

    def dates(self, anchor_day: int, left_out: frozenset[int]) -> Dates:
        """Bind to the anchor; months that the phase never meets leave no date."""
        origin = month_of(anchor_day)
        if self.yearly:
            origin -= origin % 12
            period, positions = 12 * self.every, tuple(sorted(self.months))
        else:
            period = lcm(self.every, 12)
            positions = tuple(at for at in range(0, period, self.every) if (origin + at) % 12 in self.months)
        if not positions:
            return OneDate(None)
        return MonthDates(Cycle(origin, period, positions), self.pattern.pick, left_out)

    def neighbours(self) -> bool:
        """Tell whether two dates in a row belong, in whatever year and for whatever anchor."""
        previous = None
        for month in _YEARS:
            if month % 12 not in self.months:
                continue
            days = self.pattern.pick(*month_span(month))
            if any(later - day == 1 for day, later in pairwise(days)):
                return True
            if self._follows(month) and days and days[0] - 1 == previous:
                return True
            previous = days[-1] if days else None
        return False

    def _follows(self, month: int) -> bool:
        """Tell whether a month and the one before it can both be among the chosen."""
        return self.every == 1 or (self.yearly and month % 12 != 0)


@dataclass(frozen=True, slots=True)
class Imported:
    """A cron or RRULE text, understood: dates, and times of day in seconds, sorted."""

    form: DateForm
    times: tuple[int, ...]

    def __post_init__(self) -> None:
        """Hold the floor of five minutes between slots, read off the wall clock (CAD-9)."""
        closest = min((later - time for time, later in pairwise(self.times)), default=DAY)
        over_midnight = DAY - self.times[-1] + self.times[0]
        if over_midnight < FLOOR_SECONDS and self.form.neighbours():
            closest = min(closest, over_midnight)
        if closest < FLOOR_SECONDS:
            raise ExpressionError(
                f"two slots would lie {closest} seconds apart; the floor is {FLOOR_SECONDS} (five minutes)"
            )
