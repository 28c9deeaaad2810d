"""From the record of a rule to something that can be asked for slots, in integers of microseconds UTC."""

from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol

from gnomon.cadence.civil import DAY, EPOCH, EPOCH_ORDINAL, FIRST_SECOND, MICRO, Zone, zone_named
from gnomon.cadence.cycle import Cycle
from gnomon.cadence.daily import WEEKDAYS, CycleDates, Dates, OneDate, every_days, every_weeks
from gnomon.cadence.faults import CadenceError, ExpressionError, Fault
from gnomon.cadence.fields import seconds_of
from gnomon.cadence.imported import Imported
from gnomon.cadence.monthly import EVERY_MONTH, MonthDates, day_of_month, last_day, month_of, nth_weekday
from gnomon.cadence.parsing import Unit, read_expression
from gnomon.cadence.rolling import RollingSlots
from gnomon.cadence.wallclock import CivilSlots

if TYPE_CHECKING:
    from gnomon.cadence.rule import Cadence

_MINUTE = 60
_WEEKDAY_NUMBERS = {day: number for number, day in enumerate(WEEKDAYS)}
_STEPS = {Unit.MINUTE: _MINUTE, Unit.HOUR: 3600}


class Compiled(Protocol):
    """A rule with its anchor and its holidays; every number is an instant in microseconds since 1970, UTC."""

    zone: Zone

    def next_after(self, micros: int) -> int | None:
        """Give the first slot strictly after an instant, None where there is none."""
        ...

    def latest_at(self, micros: int) -> int | None:
        """Give the last slot at or before an instant, None where there is none."""
        ...

    def count_between(self, start: int, end: int) -> tuple[int, int, int] | None:
        """Give (first, last, count) of the slots in [start, end), None where there are none."""
        ...


def compiled(rule: "Cadence", anchor_us: int | None, holidays: frozenset[date]) -> Compiled:
    """Compile a rule; CadenceError if its zone is gone from the zone data (CAD-11)."""
    try:
        zone = zone_named(rule.zone)
    except KeyError:
        raise CadenceError((Fault("zone", f"{rule.zone} is not in the zone data in use"),)) from None
    if rule.anchor is not None:
        anchor_us = micros_of(rule.anchor)
    anchor = None if anchor_us is None else anchor_us // (_MINUTE * MICRO) * _MINUTE
    if rule.unit in _STEPS:
        return RollingSlots(zone, rule.every * _STEPS[rule.unit], anchor)
    left_out = zone.missing
    if rule.exclude or holidays:
        left_out = left_out.union(day.toordinal() - EPOCH_ORDINAL for day in (*rule.exclude, *holidays))
    # Without an anchor, phases count from 1970-01-01 and there is no first slot.
    anchor_day = 0
    if anchor is not None and (rule.every > 1 or rule.text is not None):
        anchor_day = (anchor + zone.window(anchor).offset) // DAY
    floor = FIRST_SECOND if anchor is None else anchor
    bind = _DATES.get(rule.unit)
    if bind is not None:
        return CivilSlots(zone, bind(rule, anchor_day, left_out), tuple(map(seconds_of, rule.at)), floor)
    if rule.text is None:
        return _once(rule, zone, left_out)
    imported = _imported(rule, rule.text)
    return CivilSlots(zone, imported.form.dates(anchor_day, left_out), imported.times, floor)


def micros_of(instant: datetime) -> int:
    """Turn an aware datetime into microseconds since 1970, UTC; ValueError for a naive one."""
    if instant.tzinfo is None:
        raise ValueError(
            f"an instant needs a zone, and {instant.isoformat()} is naive: use datetime(…, tzinfo=UTC)"
        )
    since = instant - EPOCH
    return (since.days * DAY + since.seconds) * MICRO + since.microseconds


def _once(rule: "Cadence", zone: Zone, left_out: frozenset[int]) -> CivilSlots:
    day = date.fromisoformat(rule.at[0][:10]).toordinal() - EPOCH_ORDINAL
    dates = OneDate(None if day in left_out else day)
    return CivilSlots(zone, dates, (seconds_of(rule.at[0][11:]),), FIRST_SECOND)


def _imported(rule: "Cadence", text: str) -> Imported:
    try:
        return read_expression(rule.unit, text, rule.at)
    except ExpressionError as error:
        raise CadenceError((Fault(rule.unit.value, str(error)),)) from None


def _day_dates(rule: "Cadence", anchor_day: int, left_out: frozenset[int]) -> Dates:
    return CycleDates(every_days(rule.every, anchor_day), left_out)


def _week_dates(rule: "Cadence", anchor_day: int, left_out: frozenset[int]) -> Dates:
    weekdays = tuple(map(_WEEKDAY_NUMBERS.__getitem__, rule.days))
    return CycleDates(every_weeks(rule.every, weekdays, anchor_day), left_out)


def _month_dates(rule: "Cadence", anchor_day: int, left_out: frozenset[int]) -> Dates:
    cycle = Cycle(month_of(anchor_day), rule.every) if rule.every > 1 else EVERY_MONTH
    if rule.nth is not None and rule.weekday is not None:
        return MonthDates(cycle, nth_weekday(_WEEKDAY_NUMBERS[rule.weekday], rule.nth), left_out)
    if isinstance(rule.day, int):
        return MonthDates(cycle, day_of_month(rule.day, rule.short_month), left_out)
    return MonthDates(cycle, last_day, left_out)


_DATES: dict[Unit, Callable[["Cadence", int, frozenset[int]], Dates]] = {
    Unit.DAY: _day_dates,
    Unit.WEEK: _week_dates,
    Unit.MONTH: _month_dates,
}
