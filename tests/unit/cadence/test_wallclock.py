"""Slots that hold wall-clock intent: edges of the zone, phases, left-out dates, bounds, notes."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from gnomon.cadence import Cadence, SlotRange, between, count_between, is_slot, latest_at, next_after, preview


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slots(rule: dict[str, Any], after: str, count: int, **more: Any) -> list[str]:
    found = preview(Cadence.parse(rule), utc(after), count, **more)
    return [slot.at.strftime("%Y-%m-%dT%H:%M") for slot in found]


def daily(at: str | list[str], zone: str) -> dict[str, Any]:
    return {"unit": "day", "at": at, "zone": zone}


def test_wall_clock_time_stays_over_a_change() -> None:
    """CAD-3."""
    found = preview(Cadence.parse(daily("09:00", "Europe/Berlin")), utc("2026-03-27T12:00"), 3)
    assert {slot.local_time[11:] for slot in found} == {"09:00:00"}
    assert [slot.offset for slot in found] == ["+01:00", "+02:00", "+02:00"]
    assert [slot.at.hour for slot in found] == [8, 7, 7]


def test_times_with_seconds() -> None:
    """CAD-3."""
    rule = Cadence.parse(daily(["09:00:30", "09:00"], "Asia/Kolkata"))
    found = [slot.local_time for slot in preview(rule, utc("2026-01-01T00:00"), 3)]
    assert found == ["2026-01-01T09:00:00", "2026-01-01T09:00:30", "2026-01-02T09:00:00"]


def test_gap_moves_to_its_end_and_collapses() -> None:
    """CAD-4: three intents in and at the end of one gap are one slot, and slots stay in order."""
    rule = daily(["01:45", "02:00", "02:30", "03:00", "03:10"], "America/New_York")
    assert slots(rule, "2026-03-08T05:00", 5) == [
        "2026-03-08T06:45", "2026-03-08T07:00", "2026-03-08T07:10", "2026-03-09T05:45", "2026-03-09T06:00",
    ]  # fmt: skip


def test_overlap_takes_the_earlier_and_keeps_order() -> None:
    """CAD-4: asked inside the second pass, the slots of the first are over."""
    rule = daily(["00:30", "01:15", "01:45", "02:10"], "America/New_York")
    expected = ["2026-11-01T04:30", "2026-11-01T05:15", "2026-11-01T05:45", "2026-11-01T07:10"]
    assert slots(rule, "2026-11-01T04:00", 4) == expected
    for minute in range(60):
        assert slots(rule, f"2026-11-01T06:{minute:02}", 1) == expected[3:]
        asked = utc(f"2026-11-01T06:{minute:02}")
        assert latest_at(Cadence.parse(rule), asked) == utc(expected[2])


def test_gap_to_the_end_of_the_date() -> None:
    """CAD-4: the slot of the 28th is the first instant of the 29th, and that of the 29th at midnight is the same."""
    assert slots(daily(["23:30", "00:00"], "America/Nuuk"), "2026-03-28T03:00", 3) == [
        "2026-03-29T01:00", "2026-03-30T00:30", "2026-03-30T01:00",
    ]  # fmt: skip


def test_date_that_does_not_exist_has_no_slot() -> None:
    """CAD-4."""
    assert slots(daily("12:00", "Pacific/Apia"), "2011-12-29T00:00", 3) == [
        "2011-12-29T22:00", "2011-12-30T22:00", "2011-12-31T22:00",
    ]  # fmt: skip
    gone = {"unit": "once", "at": "2011-12-30T12:00", "zone": "Pacific/Apia"}
    assert slots(gone, "2011-01-01T00:00", 1) == []
    assert latest_at(Cadence.parse(gone), utc("2026-01-01T00:00")) is None


def test_once_has_one_slot_and_no_anchor() -> None:
    """CAD-2, CAD-3: an anchor after it takes nothing away."""
    rule = Cadence.parse({"unit": "once", "at": "2026-12-24T18:00", "zone": "Europe/Berlin"})
    slot = utc("2026-12-24T17:00")
    late = utc("2027-06-01T00:00")
    assert next_after(rule, slot - timedelta(microseconds=1), anchor=late) == slot
    assert next_after(rule, slot, anchor=late) is None
    assert latest_at(rule, late, anchor=late) == slot
    assert latest_at(rule, slot - timedelta(microseconds=1)) is None
    assert count_between(rule, utc("2026-01-01T00:00"), late) == SlotRange(slot, slot, 1)
    assert (
        slots({"unit": "once", "at": "2026-12-24T18:00", "exclude": ["2026-12-24"]}, "2026-01-01T00:00", 1)
        == []
    )


def test_no_slot_lies_before_the_anchor() -> None:
    """CAD-2."""
    rule = Cadence.parse(daily("09:00", "UTC"))
    anchor = utc("2026-11-29T09:00:59")
    first = utc("2026-11-29T09:00")
    assert next_after(rule, utc("2020-01-01T00:00"), anchor=anchor) == first
    assert latest_at(rule, first - timedelta(seconds=1), anchor=anchor) is None
    assert latest_at(rule, first + timedelta(hours=1), anchor=first + timedelta(minutes=30)) is None
    assert next_after(
        rule, utc("2020-01-01T00:00"), anchor=anchor + timedelta(minutes=1)
    ) == first + timedelta(days=1)


def test_phase_of_days_counts_from_the_local_date_of_the_anchor() -> None:
    """CAD-5: 23:30 UTC is the next date in Berlin."""
    rule = {"unit": "day", "every": 3, "at": "09:00", "zone": "Europe/Berlin"}
    assert slots(rule, "2026-01-01T00:00", 2, anchor=utc("2026-01-01T23:30")) == [
        "2026-01-02T08:00",
        "2026-01-05T08:00",
    ]
    assert slots(rule, "2026-01-01T00:00", 2, anchor=utc("2026-01-01T22:30")) == [
        "2026-01-04T08:00",
        "2026-01-07T08:00",
    ]


@pytest.mark.parametrize("day", range(7))
def test_phase_of_weeks_counts_from_the_iso_week_of_the_anchor(day: int) -> None:
    """CAD-5: any day of a week that starts on Monday gives the same phase, over the 53rd week of 2026."""
    rule = {"unit": "week", "every": 2, "days": ["mon", "sun"], "at": "09:00"}
    anchor = utc("2026-12-14T00:00") + timedelta(days=day)
    assert slots(rule, "2026-12-20T00:00", 4, anchor=anchor) == [
        "2026-12-20T09:00", "2026-12-28T09:00", "2027-01-03T09:00", "2027-01-11T09:00",
    ]  # fmt: skip


def test_phase_of_months_counts_from_the_month_of_the_anchor() -> None:
    """CAD-5."""
    rule = {"unit": "month", "every": 5, "day": 10, "at": "00:00"}
    assert slots(rule, "2026-01-01T00:00", 3, anchor=utc("2025-11-30T00:00")) == [
        "2026-04-10T00:00", "2026-09-10T00:00", "2027-02-10T00:00",
    ]  # fmt: skip


def test_month_ends() -> None:
    """CAD-6."""
    month = {"unit": "month", "at": "09:00"}
    assert slots({**month, "day": 31}, "2027-01-31T10:00", 3) == [
        "2027-02-28T09:00", "2027-03-31T09:00", "2027-04-30T09:00",
    ]  # fmt: skip
    assert slots({**month, "day": 31, "short_month": "skip"}, "2027-01-31T10:00", 2) == [
        "2027-03-31T09:00", "2027-05-31T09:00",
    ]  # fmt: skip
    assert slots({**month, "day": "last"}, "2028-01-31T10:00", 2) == ["2028-02-29T09:00", "2028-03-31T09:00"]
    assert slots({**month, "day": 29}, "2100-02-01T00:00", 1) == ["2100-02-28T09:00"]
    assert slots({**month, "day": 29}, "2000-02-01T00:00", 1) == ["2000-02-29T09:00"]


def test_weekdays_of_the_month() -> None:
    """CAD-6: a month without a fifth Friday is passed over."""
    month = {"unit": "month", "at": "09:00", "weekday": "fri"}
    assert slots({**month, "nth": -1}, "2026-01-01T00:00", 2) == ["2026-01-30T09:00", "2026-02-27T09:00"]
    assert slots({**month, "nth": 5}, "2026-01-01T00:00", 2) == ["2026-01-30T09:00", "2026-05-29T09:00"]
    assert slots({**month, "nth": 1}, "2026-01-01T00:00", 2) == ["2026-01-02T09:00", "2026-02-06T09:00"]


LEAP = {"unit": "month", "every": 12, "day": 29, "short_month": "skip", "at": "09:00"}


def test_leap_day_is_found_over_a_century_without_one() -> None:
    """CAD-7: 26 months that match the phase reach over the eight years around 2100."""
    assert slots(LEAP, "2096-03-01T00:00", 1, anchor=utc("2024-02-01T00:00")) == ["2104-02-29T09:00"]


def test_walk_over_months_ends_after_26_candidates() -> None:
    """CAD-7: the 26th candidate is still tried, the 27th is not."""
    left_out = [f"{2026 + m // 12}-{m % 12 + 1:02}-01" for m in range(26)]
    rule = {"unit": "month", "day": 1, "at": "09:00", "exclude": left_out[:25]}
    assert slots(rule, "2025-12-31T00:00", 1) == ["2028-02-01T09:00"]
    assert slots({**rule, "exclude": left_out}, "2025-12-31T00:00", 1) == []
    backwards = Cadence.parse({**rule, "exclude": left_out})
    assert latest_at(backwards, utc("2028-02-01T10:00")) is None
    assert latest_at(backwards, utc("2028-01-31T10:00")) == utc("2025-12-01T09:00")


def test_walk_over_days_ends_after_400_candidates() -> None:
    """CAD-7: the 400th candidate is still tried, the 401st is not."""
    left_out = [date(2026, 1, 1) + timedelta(days=day) for day in range(400)]
    rule = Cadence.parse(daily("09:00", "UTC"))
    asked = utc("2025-12-31T10:00")
    assert next_after(rule, asked, holidays=frozenset(left_out[:399])) == utc("2027-02-04T09:00")
    assert next_after(rule, asked, holidays=frozenset(left_out)) is None
    late = utc("2027-02-04T10:00")
    assert latest_at(rule, late, holidays=frozenset(left_out)) is None
    assert latest_at(rule, late, holidays=frozenset(left_out[1:])) == utc("2026-01-01T09:00")


@pytest.mark.parametrize(
    "rule",
    [
        {**LEAP, "day": 30},
        {**LEAP, "every": 24, "anchor": "2025-02-01T00:00:00Z"},
        {"rrule": "FREQ=MONTHLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=1", "at": "09:00"},
        {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "at": "09:00"},
        {"rrule": "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=2MO", "at": "09:00"},
    ],
)
def test_rule_that_never_fires_says_so(rule: dict[str, Any]) -> None:
    """CAD-7."""
    anchor = utc("2026-02-01T00:00")
    cadence = Cadence.parse(rule)
    assert next_after(cadence, anchor, anchor=anchor) is None
    assert latest_at(cadence, utc("2126-01-01T00:00"), anchor=anchor) is None
    assert count_between(cadence, anchor, utc("2126-01-01T00:00"), anchor=anchor) is None


def test_left_out_dates_and_holidays() -> None:
    """CAD-9: the date that counts is the local one."""
    rule = {**daily("23:30", "America/Los_Angeles"), "exclude": ["2026-12-25"], "calendar": "us"}
    assert slots(rule, "2026-12-24T12:00", 2, holidays=frozenset({date(2026, 12, 26)})) == [
        "2026-12-25T07:30", "2026-12-28T07:30",
    ]  # fmt: skip


def test_order_is_strict_and_ranges_are_half_open() -> None:
    """CAD-8."""
    rule = Cadence.parse(daily(["09:00", "18:00"], "UTC"))
    slot = utc("2026-11-29T09:00")
    assert next_after(rule, slot) == utc("2026-11-29T18:00")
    assert next_after(rule, slot - timedelta(microseconds=1)) == slot
    assert list(between(rule, slot, utc("2026-11-30T09:00"))) == [slot, utc("2026-11-29T18:00")]
    assert list(between(rule, slot, slot)) == []
    assert is_slot(rule, slot)
    assert not is_slot(rule, slot + timedelta(seconds=1))


def test_counting_agrees_with_walking_over_a_gap_and_left_out_dates() -> None:
    """DSP-7, CAD-4."""
    rule = Cadence.parse(
        {**daily(["01:30", "02:00", "02:45", "03:00"], "Europe/Berlin"), "exclude": ["2026-03-27"]}
    )
    for start, end in (("2026-03-26T00:00", "2026-03-31T00:00"), ("2026-03-29T01:00", "2026-03-29T01:01"),
                       ("2026-03-29T00:31", "2026-03-29T01:00"), ("2026-10-24T00:00", "2026-10-26T00:30")):  # fmt: skip
        walked = list(between(rule, utc(start), utc(end)))
        counted = count_between(rule, utc(start), utc(end))
        assert counted == (SlotRange(walked[0], walked[-1], len(walked)) if walked else None)


def test_counting_a_century_does_not_walk() -> None:
    """DSP-7: 288 slots a day for a hundred years; a walk would take half a minute."""
    times = [f"{minute // 60:02}:{minute % 60:02}" for minute in range(0, 1440, 5)]
    found = count_between(
        Cadence.parse(daily(times, "UTC")), utc("2000-01-01T00:00"), utc("2100-01-01T00:00")
    )
    assert found is not None
    assert found.count == 36525 * 288


def test_notes_say_where_a_rule_moved_a_slot() -> None:
    """CAD-8."""

    def note(rule: dict[str, Any], after: str) -> str | None:
        return preview(Cadence.parse(rule), utc(after), 1)[0].note

    york = daily("02:30", "America/New_York")
    gap = note(york, "2026-03-07T12:00")
    assert gap is not None
    assert gap.startswith("gap: 02:30 does not exist on 2026-03-08")
    overlap = note({**york, "at": "01:30:15"}, "2026-10-31T12:00")
    assert overlap is not None
    assert overlap.startswith("overlap: 01:30:15 comes twice on 2026-11-01")
    month = {"unit": "month", "day": 31, "at": "09:00"}
    assert note(month, "2027-02-01T00:00") == "clamp: the month has no day 31, so its last day, 28, is used"
    assert note({**month, "at": "23:30", "zone": "America/Nuuk"}, "2026-03-01T12:00") is None
    both = note({**month, "at": "02:30", "zone": "Africa/Casablanca"}, "2030-01-31T12:00")
    assert both == "clamp: the month has no day 31, so its last day, 28, is used"
    for untouched in (york, {**month, "day": "last"}, {**month, "short_month": "skip"}):
        assert note(untouched, "2026-05-01T12:00") is None
    assert note({**york, "at": "03:00"}, "2026-03-07T12:00") is None


def test_a_clamp_and_a_gap_in_one_note() -> None:
    """CAD-8: in Auckland the last day of September 2029 has a gap."""
    rule = Cadence.parse({"unit": "month", "day": 31, "at": "02:30", "zone": "Pacific/Auckland"})
    slot = preview(rule, utc("2029-09-01T00:00"), 1)[0]
    assert slot.local_time == "2029-09-30T03:00:00"
    assert slot.note is not None
    clamp, gap = slot.note.split("; ")
    assert clamp == "clamp: the month has no day 31, so its last day, 30, is used"
    assert gap.startswith("gap: 02:30 does not exist on 2029-09-30")


def test_offsets_with_seconds_are_shown() -> None:
    """CAD-8."""
    slot = preview(Cadence.parse(daily("12:00", "Europe/Amsterdam")), utc("1850-01-01T00:00"), 1)[0]
    assert slot.offset == "+00:17:30"
    assert (
        preview(Cadence.parse(daily("12:00", "America/St_Johns")), utc("2026-01-01T00:00"), 1)[0].offset
        == "-03:30"
    )


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"])
@pytest.mark.parametrize(
    "rule",
    [{"unit": "day", "at": ["00:00", "23:59:59"]}, {"unit": "week", "days": ["sat", "mon"], "at": "12:00"},
     {"unit": "month", "day": "last", "at": "23:00"}, {"cron": "0 0,23 * * *"}, {"cron": "0 12 1,L 1,12 *"},
     {"unit": "once", "at": "0001-01-01T00:00"}, {"unit": "once", "at": "9999-12-31T23:59:59"}],
)  # fmt: skip
def test_range_of_datetime_is_never_left(rule: dict[str, Any], zone: str) -> None:
    cadence = Cadence.parse({**rule, "zone": zone})
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for moment in (first, first + timedelta(days=1), last - timedelta(days=1), last):
        for found in (next_after(cadence, moment), latest_at(cadence, moment)):
            assert found is None or first <= found <= last
        preview(cadence, moment, 5)
    assert next_after(cadence, last) is None
    assert latest_at(cadence, last) is not None or rule["unit"] == "once"
    assert next_after(cadence, first - timedelta(0)) is not None or rule["unit"] == "once"
