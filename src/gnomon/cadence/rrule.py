"""Reading a subset of RFC 5545 recurrence rules into dates and times of day (CAD-9).

What can't be said in the civil rule is refused, and the refusal names the part. Times of day come from the
rule's `at`, or from BYHOUR, BYMINUTE and BYSECOND. Phases count from the anchor, which stands for DTSTART.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import product

from gnomon.cadence.faults import ExpressionError, shown
from gnomon.cadence.imported import (
    ALL_MONTHDAYS,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    DateForm,
    DayForm,
    DayPattern,
    Imported,
    MonthForm,
    WeekForm,
)

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BYDAY = re.compile(r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}")
_INTERVALS = {"DAILY": 365, "WEEKLY": 52, "MONTHLY": 24, "YEARLY": 10}
_KNOWN = {
    "FREQ",
    "INTERVAL",
    "WKST",
    "BYDAY",
    "BYMONTHDAY",
    "BYMONTH",
    "BYSETPOS",
    "BYHOUR",
    "BYMINUTE",
    "BYSECOND",
}
_REASONS = {
    "COUNT": "a cadence has no end of its own; use the schedule's max_runs",
    "UNTIL": "a cadence has no end of its own; use the schedule's ends_at",
    "BYYEARDAY": "days of the year have no form here; use BYMONTH and BYMONTHDAY",
    "BYWEEKNO": "weeks of the year have no form here; use FREQ=WEEKLY with INTERVAL",
    "RSCALE": "only the Gregorian calendar is known",
    "SKIP": 'RFC 7529 is not supported; use unit "month" with short_month',
}
_ELAPSED = {"HOURLY": "hour", "MINUTELY": "minute", "SECONDLY": "minute"}

Parts = dict[str, str]


@lru_cache(maxsize=1024)
def read_rrule(text: str, at: tuple[int, ...] = ()) -> Imported:
    """Read an RRULE; `at` are times of day in seconds. ExpressionError with the reason if it has no form here."""
    parts = _parts(text)
    freq = parts.get("FREQ", "")
    if freq in _ELAPSED:
        raise ExpressionError(
            f'FREQ={freq}: elapsed time is not wall-clock time; use unit "{_ELAPSED[freq]}"'
        )
    if freq not in _INTERVALS:
        raise ExpressionError(f"FREQ: must be one of {', '.join(_INTERVALS)}, not {shown(freq)}")
    every = _numbers(parts, "INTERVAL", 1, _INTERVALS[freq])
    if len(every) > 1:
        raise ExpressionError("INTERVAL: is one number")
    times = _times(parts, at)
    form = _FORMS[freq](parts, min(every, default=1))
    if "BYSETPOS" in parts and len(times) > 1:
        raise ExpressionError("BYSETPOS: counts slots, not dates, where there are several times of day")
    return Imported(form, times)


def _parts(text: str) -> Parts:
    parts: Parts = {}
    for piece in text.upper().removeprefix("RRULE:").rstrip(";").split(";"):
        name, equals, value = piece.partition("=")
        if name in _REASONS:
            raise ExpressionError(f"{name}: {_REASONS[name]}")
        if name not in _KNOWN or not equals:
            raise ExpressionError(f"{shown(piece)}: not a part of a recurrence rule that is known here")
        if name in parts:
            raise ExpressionError(f"{name}: stands twice")
        parts[name] = value
    return parts


def _numbers(parts: Parts, name: str, low: int, high: int, *, signed: bool = False) -> frozenset[int]:
    """Read a list of numbers; with `signed`, their negatives count from the end."""
    if name not in parts:
        return frozenset()
    found = set()
    for item in parts[name].split(","):
        number = int(item) if _NUMBER.fullmatch(item) else None
        if number is None or not low <= (abs(number) if signed else number) <= high:
            raise ExpressionError(f"{name}: {shown(item)} is not a number from {low} to {high}")
        found.add(number)
    return frozenset(found)


def _times(parts: Parts, at: tuple[int, ...]) -> tuple[int, ...]:
    hours, minutes, seconds = (
        _numbers(parts, name, 0, high) for name, high in (("BYHOUR", 23), ("BYMINUTE", 59), ("BYSECOND", 59))
    )
    named = [name for name in ("BYHOUR", "BYMINUTE", "BYSECOND") if name in parts]
    if at and named:
        raise ExpressionError(f"{named[0]}: the times of day stand in at already")
    if not at and not hours:
        raise ExpressionError("the times of day are missing: give at, or BYHOUR and BYMINUTE")
    clocks = product(hours, minutes or {0}, seconds or {0})
    return at or tuple(sorted(hour * 3600 + minute * 60 + second for hour, minute, second in clocks))


def _weekdays(parts: Parts, *, ordinals: bool) -> frozenset[tuple[int, int]]:
    if "BYDAY" not in parts:
        return ALL_WEEKDAYS
    found = set()
    for item in parts["BYDAY"].split(","):
        match = _BYDAY.fullmatch(item)
        if match is None:
            raise ExpressionError(
                f"BYDAY: {shown(item)} is not a weekday, with or without a number from 1 to 5"
            )
        if match[1] and not ordinals:
            raise ExpressionError(f"BYDAY: {item} counts inside a month; this FREQ gives it none")
        found.add((_WEEKDAYS.index(match[2]), int(match[1] or 0)))
    return frozenset(found)


def _months(parts: Parts) -> frozenset[int]:
    return frozenset(month - 1 for month in _numbers(parts, "BYMONTH", 1, 12)) or ALL_MONTHS


def _pattern(parts: Parts, *, ordinals: bool) -> DayPattern:
    monthdays = _numbers(parts, "BYMONTHDAY", 1, 31, signed=True) or ALL_MONTHDAYS
    positions = _numbers(parts, "BYSETPOS", 1, 31, signed=True)
    return DayPattern(monthdays, _weekdays(parts, ordinals=ordinals), positions=positions)


def _refuse(parts: Parts, names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if name in parts:
            raise ExpressionError(f"{name}: {reason}")


def _daily(parts: Parts, every: int) -> DateForm:
    _refuse(parts, ("BYSETPOS",), "needs FREQ=MONTHLY")
    narrowing = ("BYDAY", "BYMONTHDAY", "BYMONTH")
    if every > 1:
        _refuse(parts, narrowing, "can't narrow FREQ=DAILY with an INTERVAL above 1")
    if "BYMONTHDAY" in parts or "BYMONTH" in parts:
        return MonthForm(_pattern(parts, ordinals=False), _months(parts))
    if "BYDAY" in parts:
        return _weekly(parts, 1)
    return DayForm(every)


def _weekly(parts: Parts, every: int) -> DateForm:
    _refuse(parts, ("BYSETPOS",), "needs FREQ=MONTHLY")
    _refuse(parts, ("BYMONTHDAY",), "does not go with FREQ=WEEKLY")
    if "BYDAY" not in parts:
        raise ExpressionError("BYDAY: is missing; there is no DTSTART to take the weekday from")
    if every > 1:
        _refuse(parts, ("BYMONTH",), "can't narrow FREQ=WEEKLY with an INTERVAL above 1")
        if parts.get("WKST", "MO") != "MO":
            raise ExpressionError("WKST: weeks start on Monday (MO) here")
    if "BYMONTH" in parts:
        return MonthForm(_pattern(parts, ordinals=False), _months(parts))
    return WeekForm(every, frozenset(weekday for weekday, _ in _weekdays(parts, ordinals=False)))


def _monthly(parts: Parts, every: int) -> DateForm:
    _need_days(parts)
    return MonthForm(_pattern(parts, ordinals=True), _months(parts), every, yearly=False)


def _yearly(parts: Parts, every: int) -> DateForm:
    _need_days(parts)
    months = _months(parts)
    if len(months) > 1:
        _refuse(parts, ("BYSETPOS",), "with FREQ=YEARLY needs exactly one BYMONTH")
    return MonthForm(_pattern(parts, ordinals="BYMONTH" in parts), months, every)


def _need_days(parts: Parts) -> None:
    if "BYDAY" not in parts and "BYMONTHDAY" not in parts:
        raise ExpressionError("BYMONTHDAY or BYDAY: one is needed; there is no DTSTART to take the day from")


_FORMS: dict[str, Callable[[Parts, int], DateForm]] = {
    "DAILY": _daily,
    "WEEKLY": _weekly,
    "MONTHLY": _monthly,
    "YEARLY": _yearly,
}
