"""The dates of rules as day numbers: both directions, counting, and the ends of the calendar."""

from datetime import date, timedelta

import pytest

from gnomon.cadence import Cadence
from gnomon.cadence.civil import EPOCH_ORDINAL, FIRST_DAY, LAST_DAY
from gnomon.cadence.cycle import Cycle
from gnomon.cadence.daily import CycleDates, Dates, OneDate, every_weeks, weekday_of
from gnomon.cadence.monthly import MonthDates, day_of_month, last_day, nth_weekday


def number(text: str) -> int:
    return date.fromisoformat(text).toordinal() - EPOCH_ORDINAL


LEFT_OUT = frozenset({number("2026-05-31"), number("2026-01-04")})
DATES: list[Dates] = [
    CycleDates(Cycle(5, 3)),
    CycleDates(every_weeks(2, (0, 6), number("2026-01-07")), LEFT_OUT),
    MonthDates(Cycle(0, 1), day_of_month(31, "clamp"), LEFT_OUT),
    MonthDates(Cycle(2, 5), day_of_month(31, "skip")),
    MonthDates(Cycle(0, 12, (1, 4)), nth_weekday(6, -1), LEFT_OUT),
    MonthDates(Cycle(0, 1), nth_weekday(0, 5)),
    OneDate(number("2026-05-31")),
]


@pytest.mark.parametrize("dates", DATES)
def test_both_directions_and_the_count_agree(dates: Dates) -> None:
    """CAD-5, CAD-6, CAD-8."""
    first, last = number("2025-11-03"), number("2027-06-20")
    forward = []
    day = dates.at_or_after(first)
    while day is not None and day <= last:
        forward.append(day)
        assert dates.at_or_before(day) == day
        day = dates.at_or_after(day + 1)
    backward = []
    day = dates.at_or_before(last)
    while day is not None and day >= first:
        backward.append(day)
        day = dates.at_or_before(day - 1)
    assert forward == backward[::-1]
    assert not LEFT_OUT & set(forward) or isinstance(dates, OneDate)
    for low in range(first, last, 17):
        for high in (low - 1, low, low + 9, last):
            assert dates.count(low, high) == sum(low <= day <= high for day in forward)


@pytest.mark.parametrize(
    "dates",
    [CycleDates(Cycle(0, 1)), MonthDates(Cycle(0, 1), last_day), MonthDates(Cycle(0, 1), nth_weekday(0, 1))],
)
def test_the_calendar_has_ends(dates: Dates) -> None:
    """CAD-7: no search leaves the years 1 to 9999."""
    assert dates.at_or_after(LAST_DAY + 1) is None
    assert dates.at_or_before(FIRST_DAY - 1) is None
    first, last = dates.at_or_after(FIRST_DAY - 1), dates.at_or_before(LAST_DAY + 1)
    assert first is not None
    assert last is not None
    assert FIRST_DAY <= first < last <= LAST_DAY
    assert dates.at_or_before(first - 1) is None
    assert dates.at_or_after(last + 1) is None
    assert dates.count(FIRST_DAY - 99, FIRST_DAY - 1) == 0
    assert dates.count(LAST_DAY + 1, LAST_DAY + 99) == 0


def test_one_date_may_be_none() -> None:
    assert OneDate(None).at_or_after(FIRST_DAY) is None
    assert OneDate(None).at_or_before(LAST_DAY) is None
    assert OneDate(None).count(FIRST_DAY, LAST_DAY) == 0


@pytest.mark.parametrize(
    ("origin", "period", "positions"), [(0, 1, (0,)), (-7, 10, (2, 5)), (100, 7, (0, 6))]
)
def test_cycles_are_their_definition(origin: int, period: int, positions: tuple[int, ...]) -> None:
    """CAD-5."""
    cycle = Cycle(origin, period, positions)
    members = sorted(origin + at + k * period for k in range(-60, 60) for at in positions)
    for value in range(-40, 40):
        assert cycle.at_or_after(value) == min(member for member in members if member >= value)
        assert cycle.at_or_before(value) == max(member for member in members if member <= value)
        assert cycle.holds(value) == (value in members)
        assert cycle.count(-40, value) == sum(-40 <= member <= value for member in members)
    assert cycle.count(5, 4) == 0


def test_weekdays_of_day_numbers() -> None:
    for offset in range(20):
        day = date(1969, 12, 25) + timedelta(days=offset)
        assert weekday_of(day.toordinal() - EPOCH_ORDINAL) == day.weekday()


def test_a_rule_knows_whether_it_rolls() -> None:
    """CAD-2, CAD-3."""
    assert Cadence.parse({"unit": "hour"}).rolling
    assert not Cadence.parse({"cron": "0 9 * * *"}).rolling
