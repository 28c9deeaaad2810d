"""Reading five-field cron with cronsim into dates and times of day (CAD-9).

cronsim reads the fields (names, L, LW, #, steps) and keeps cron's own rule for days: where neither day field
begins with a star, either of them is enough. It is never asked to walk: the civil rule does that (CAD-4).
"""

from datetime import UTC, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from gnomon.cadence.faults import ExpressionError
from gnomon.cadence.imported import (
    ALL_MONTHDAYS,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    LAST_WORKDAY,
    DateForm,
    DayForm,
    DayPattern,
    Imported,
    MonthForm,
    WeekForm,
)

_ANY = datetime(2001, 1, 1, tzinfo=UTC)
_WEEK = frozenset(range(7))


@lru_cache(maxsize=1024)
def read_cron(text: str) -> Imported:
    """Read a cron text; ExpressionError with the reason if it has no form here."""
    fields = len(text.split())
    if fields != 5:
        more = "; seconds are not supported" if fields == 6 else ""
        raise ExpressionError(f"cron has five fields (minute hour day month weekday), not {fields}{more}")
    try:
        cron = CronSim(text, _ANY)
    except CronSimError as error:
        raise ExpressionError(f"{error} field: cron can't read it, or no month has such a day") from None
    times = tuple(sorted(hour * 3600 + minute * 60 for hour in cron.hours for minute in cron.minutes))
    return Imported(_form(cron), times)


def _form(cron: CronSim) -> DateForm:
    weekdays = frozenset(_weekday(item) for item in cron.weekdays)
    plain = frozenset(weekday for weekday, ordinal in weekdays if ordinal == 0)
    months = frozenset(month - 1 for month in cron.months)
    if months == ALL_MONTHS and cron.day_and and cron.days == ALL_MONTHDAYS and len(plain) == len(weekdays):
        return DayForm(1) if plain == _WEEK else WeekForm(1, plain)
    monthdays = frozenset(map(_monthday, cron.days))
    pattern = DayPattern(
        ALL_MONTHDAYS if monthdays == ALL_MONTHDAYS else monthdays,
        ALL_WEEKDAYS if plain == _WEEK else weekdays,
        both=cron.day_and,
    )
    return MonthForm(pattern, months)


def _monthday(item: int) -> int:
    return {CronSim.LAST: -1, CronSim.LAST_WEEKDAY: LAST_WORKDAY}.get(item, item)


def _weekday(item: int | tuple[int, int]) -> tuple[int, int]:
    """Turn cron's weekday (Sunday is 0 and 7) into ours, with its ordinal (0 for each)."""
    weekday, ordinal = item if isinstance(item, tuple) else (item, 0)
    return (weekday - 1) % 7, -1 if ordinal == CronSim.LAST else ordinal
