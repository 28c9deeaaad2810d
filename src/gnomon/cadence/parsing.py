"""From a written rule to the fields of the record: which fields each form has, and how they go together.

Gives back plain keyword arguments or raises `CadenceError` with every fault; the record itself is built in `rule`.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from gnomon.cadence.cron import read_cron
from gnomon.cadence.daily import WEEKDAYS
from gnomon.cadence.faults import CadenceError, ExpressionError, Fault, shown
from gnomon.cadence.fields import Reader, seconds_of
from gnomon.cadence.imported import Imported
from gnomon.cadence.rrule import read_rrule

Fields = dict[str, Any]


class Unit(StrEnum):
    """What a rule counts in; the two imported forms, `cron` and `rrule`, count as units of their own."""

    ONCE = "once"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    CRON = "cron"
    RRULE = "rrule"


class ShortMonth(StrEnum):
    """What a day of the month does in a month that is too short for it (CAD-6)."""

    CLAMP = "clamp"
    SKIP = "skip"


EVERY_RANGES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        Unit.ONCE.value: (1, 1),
        Unit.MINUTE.value: (5, 1440),
        Unit.HOUR.value: (1, 168),
        Unit.DAY.value: (1, 365),
        Unit.WEEK.value: (1, 52),
        Unit.MONTH.value: (1, 24),
    }
)
"""The smallest and the largest interval of each unit (CAD-1)."""

_ALWAYS = ("anchor", "zone")
_CIVIL = (*_ALWAYS, "at", "exclude", "calendar")


def read(given: Any) -> Fields:
    """Check a written rule whole and give the fields of its record; CadenceError with all faults."""
    if not isinstance(given, Mapping):
        raise CadenceError(
            (Fault("", f'a cadence is an object, as {{"cron": "0 9 * * *"}}, not {shown(given)}'),)
        )
    reader = Reader(given)
    forms = [form for form in ("unit", "cron", "rrule") if form in given]
    if len(forms) != 1:
        what = f"has {' and '.join(forms)}" if forms else "has none of them"
        raise CadenceError(
            (Fault("", f"a cadence has exactly one of unit, cron and rrule; this one {what}"),)
        )
    unit = reader.choice("unit", EVERY_RANGES) if forms == ["unit"] else forms[0]
    found: Fields = {"zone": reader.zone(), "anchor": reader.anchor()}
    if unit is not None:  # which other fields there are hangs on it
        found |= {"unit": Unit(unit)} | _UNITS[Unit(unit)](reader)
    if reader.faults:
        raise CadenceError(tuple(reader.faults))
    return found


def _every(reader: Reader, unit: Unit) -> Fields:
    low, high = EVERY_RANGES[unit]
    return {"every": reader.integer("every", low, high, 1)}


def _left_out(reader: Reader) -> Fields:
    return {"exclude": reader.excluded(), "calendar": reader.calendar()}


def _rolling(unit: Unit) -> Callable[[Reader], Fields]:
    def fields(reader: Reader) -> Fields:
        for key in ("exclude", "calendar"):
            if key in reader.given:
                reader.fault(key, f"only calendar cadences leave dates out; unit {unit} counts elapsed time")
        reader.only(("unit", "every", *_ALWAYS, "exclude", "calendar"), f"unit {unit}")
        return _every(reader, unit)

    return fields


def _once(reader: Reader) -> Fields:
    reader.only(("unit", "every", *_CIVIL), "unit once")
    return _every(reader, Unit.ONCE) | {"at": reader.moment()} | _left_out(reader)


def _day(reader: Reader) -> Fields:
    reader.only(("unit", "every", *_CIVIL), "unit day")
    return _every(reader, Unit.DAY) | {"at": reader.times()} | _left_out(reader)


def _week(reader: Reader) -> Fields:
    reader.only(("unit", "every", "days", *_CIVIL), "unit week")
    return _every(reader, Unit.WEEK) | {"days": reader.weekdays(), "at": reader.times()} | _left_out(reader)


def _month(reader: Reader) -> Fields:
    reader.only(("unit", "every", "day", "short_month", "weekday", "nth", *_CIVIL), "unit month")
    found = _every(reader, Unit.MONTH) | {"at": reader.times()} | _left_out(reader)
    given = reader.given
    if "weekday" in given or "nth" in given:
        for key in ("day", "short_month"):
            if key in given:
                reader.fault(key, "does not go with weekday and nth")
        found["weekday"] = reader.choice("weekday", WEEKDAYS)
        found["nth"] = reader.choice("nth", (1, 2, 3, 4, 5, -1))
    elif given.get("day") == "last":
        found["day"] = "last"
        if "short_month" in given:
            reader.fault("short_month", "does not go with day last: every month has a last day")
    else:
        found["day"] = _day_number(reader)
        found["short_month"] = ShortMonth(
            reader.choice("short_month", (kind.value for kind in ShortMonth), "clamp") or "clamp"
        )
    return found


def _day_number(reader: Reader) -> int | None:
    value = reader.given.get("day")
    if type(value) is int and 1 <= value <= 31:
        return value
    reader.refuse("day", "a whole number from 1 to 31 or last", value)
    return None


def _cron(reader: Reader) -> Fields:
    reader.only(("cron", "exclude", "calendar", *_ALWAYS), "a cron cadence")
    return {"text": _expression(reader, Unit.CRON, ())} | _left_out(reader)


def _rrule(reader: Reader) -> Fields:
    reader.only(("rrule", *_CIVIL), "an RRULE cadence")
    times = reader.times() if "at" in reader.given else ()
    return {"text": _expression(reader, Unit.RRULE, times), "at": times} | _left_out(reader)


def _expression(reader: Reader, unit: Unit, times: tuple[str, ...]) -> str | None:
    text = reader.text(unit.value)
    if text is not None:
        try:
            read_expression(unit, text, times)
        except ExpressionError as error:
            reader.fault(unit.value, str(error))
    return text


def read_expression(unit: Unit, text: str, times: tuple[str, ...]) -> Imported:
    """Read a cron or RRULE text; ExpressionError with the reason if it has no form here (CAD-9)."""
    if unit is Unit.CRON:
        return read_cron(text)
    return read_rrule(text, tuple(seconds_of(clock) for clock in times))


_UNITS: dict[Unit, Callable[[Reader], Fields]] = {
    Unit.ONCE: _once,
    Unit.MINUTE: _rolling(Unit.MINUTE),
    Unit.HOUR: _rolling(Unit.HOUR),
    Unit.DAY: _day,
    Unit.WEEK: _week,
    Unit.MONTH: _month,
    Unit.CRON: _cron,
    Unit.RRULE: _rrule,
}
