"""The questions in datetimes: what they take and what they refuse."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from gnomon.cadence import (
    Cadence,
    Slot,
    between,
    count_between,
    describe,
    is_slot,
    latest_at,
    next_after,
    preview,
)

RULE = Cadence.parse({"unit": "day", "at": "09:00", "zone": "Europe/Berlin"})
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NAIVE = datetime(2026, 11, 29, 12)  # noqa: DTZ001 - naive on purpose

ASKED: list[Callable[[Any], Any]] = [
    lambda moment: next_after(RULE, moment),
    lambda moment: next_after(RULE, NOON, anchor=moment),
    lambda moment: latest_at(RULE, moment),
    lambda moment: is_slot(RULE, moment),
    lambda moment: describe(RULE, moment),
    lambda moment: between(RULE, moment, NOON),
    lambda moment: between(RULE, NOON, moment),
    lambda moment: count_between(RULE, moment, NOON),
    lambda moment: preview(RULE, moment, 1),
]


@pytest.mark.parametrize("ask", ASKED)
def test_naive_datetimes_are_refused_at_once(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="is naive"):
        ask(NAIVE)


def test_any_zone_is_taken_and_utc_is_given() -> None:
    asked = NOON.astimezone(timezone(timedelta(hours=-9)))
    found = next_after(RULE, asked)
    assert found == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert found.tzinfo is UTC
    assert next(iter(between(RULE, asked, found + timedelta(days=1)))).tzinfo is UTC


def test_preview_gives_what_people_read() -> None:
    """CAD-8."""
    assert preview(RULE, NOON, 1) == [
        Slot(datetime(2026, 11, 30, 8, tzinfo=UTC), "2026-11-30T09:00:00", "+01:00", None)
    ]
    assert preview(RULE, NOON, 0) == []
    assert preview(RULE, NOON, -1) == []


def test_one_slot_is_told_as_in_a_preview() -> None:
    """CAD-8: and what is no slot is not told."""
    york = Cadence.parse({"unit": "day", "at": "02:30", "zone": "America/New_York"})
    for slot in preview(york, datetime(2026, 3, 6, tzinfo=UTC), 4):
        assert describe(york, slot.at) == slot
        assert describe(york, slot.at + timedelta(microseconds=1)) is None
        assert describe(york, slot.at, anchor=slot.at + timedelta(minutes=1)) is None


def test_holidays_may_be_any_set() -> None:
    """CAD-9."""
    assert next_after(RULE, NOON, holidays={date(2026, 11, 30)}) == datetime(2026, 12, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "rule",
    [
        {"unit": "month", "every": 24, "day": 31, "at": "12:00"},
        {"cron": "0 12 31 12 *"},
        {"rrule": "FREQ=MONTHLY;INTERVAL=24;BYMONTHDAY=31", "at": "12:00"},
    ],
)
def test_an_anchor_s_local_date_may_lie_outside_of_the_calendar(rule: dict[str, Any]) -> None:
    """CAD-5: its month is the one beside the calendar's last or first; phases count on."""
    late = Cadence.parse({**rule, "zone": "Asia/Kolkata", "anchor": "9999-12-31T23:59:00Z"})
    assert next_after(late, NOON) is None
    early = Cadence.parse({**rule, "zone": "America/New_York", "anchor": "0001-01-01T00:00:00Z"})
    assert next_after(early, NOON) == datetime(2026, 12, 31, 17, tzinfo=UTC), (
        "December of the year 0, and every second"
    )


def test_between_is_lazy() -> None:
    endless = between(RULE, NOON, datetime.max.replace(tzinfo=UTC))
    assert next(endless) < next(endless)


def test_integers_and_datetimes_are_one_answer() -> None:
    compiled = RULE.compile(0)
    micros = int(NOON.timestamp()) * 1_000_000
    assert compiled.next_after(micros) == int(datetime(2026, 11, 30, 8, tzinfo=UTC).timestamp()) * 1_000_000
    assert compiled.latest_at(micros) == int(datetime(2026, 11, 29, 8, tzinfo=UTC).timestamp()) * 1_000_000
    assert compiled.next_after(10**30) is None
    assert compiled.latest_at(-(10**30)) is None
    day = 86_400 * 1_000_000
    assert compiled.count_between(micros, micros + 3 * day) == (
        micros + 20 * day // 24, micros + 20 * day // 24 + 2 * day, 3,
    )  # fmt: skip
