"""A second opinion on slots, as slow and as plain as can be: dates one by one, `zoneinfo` alone, no arithmetic of ours.

It must share no code with `gnomon.cadence`. Rules are read in their canonical JSON form.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MINUTE = timedelta(minutes=1)


@cache
def zone(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def offset_at(name: str, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone(name)).utcoffset()
    assert offset is not None
    return offset


def change_between(name: str, low: datetime, high: datetime) -> datetime:
    """The instant in (low, high] at which the offset of `low` ends; to the second."""
    before = offset_at(name, low)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        low, high = (middle, high) if offset_at(name, middle) == before else (low, middle)
    return high


def instant_of(name: str, wall: datetime) -> datetime:
    """PEP 495 gives both readings of a wall time; where neither comes back as itself, the gap's end is sought."""
    readings = [wall.replace(tzinfo=zone(name), fold=fold).astimezone(UTC) for fold in (0, 1)]
    valid = [r for r in readings if r.astimezone(zone(name)).replace(tzinfo=None) == wall]
    if valid:
        return min(valid)
    return change_between(name, min(readings) - timedelta(seconds=1), max(readings))


def exists(name: str, day: date) -> bool:
    """A date exists if any quarter of an hour of it does."""
    quarters = (datetime.combine(day, time()) + timedelta(minutes=15 * k) for k in range(96))
    return any(
        wall.replace(tzinfo=zone(name)).astimezone(UTC).astimezone(zone(name)).replace(tzinfo=None) == wall
        for wall in quarters
    )


def _months(day: date) -> int:
    return day.year * 12 + day.month


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def matches(rule: dict[str, Any], day: date, anchor: date) -> bool:
    """Whether a rule of days, weeks or months names a date."""
    every, length = rule["every"], calendar.monthrange(day.year, day.month)[1]
    if rule["unit"] == "day":
        return bool((day - anchor).days % every == 0)
    if rule["unit"] == "week":
        weeks = (_monday(day) - _monday(anchor)).days // 7
        return WEEKDAYS[day.weekday()] in rule["days"] and weeks % every == 0
    if (_months(day) - _months(anchor)) % every:
        return False
    if "weekday" in rule:
        same = [
            d
            for d in range(1, length + 1)
            if date(day.year, day.month, d).weekday() == WEEKDAYS.index(rule["weekday"])
        ]
        nth = rule["nth"]
        wanted = same[nth if nth < 0 else nth - 1] if nth <= len(same) else None
        return bool(day.day == wanted)
    if rule["day"] == "last":
        return day.day == length
    return bool(day.day == (min(rule["day"], length) if rule["short_month"] == "clamp" else rule["day"]))


def slots(rule: dict[str, Any], first: date, last: date, anchor: datetime) -> list[datetime]:
    """Every slot whose intent lies on a date in [first, last], in order, each once."""
    name = rule["zone"]
    anchor = anchor.replace(second=0, microsecond=0)
    anchor_day = anchor.astimezone(zone(name)).date()
    found = {
        instant_of(name, datetime.combine(day, time.fromisoformat(at)))
        for day in _days(first, last)
        if matches(rule, day, anchor_day)
        and day.isoformat() not in rule.get("exclude", [])
        and exists(name, day)
        for at in rule["at"]
    }
    return sorted(slot for slot in found if slot >= anchor)


def _days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += timedelta(days=1)
