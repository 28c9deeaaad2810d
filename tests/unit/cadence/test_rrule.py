"""The RFC 5545 subset in the civil rule, and what is refused with the name of its part (CAD-9)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gnomon.cadence import Cadence, CadenceError, preview


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slots(rrule: str, after: str, count: int, *, anchor: str = "2026-01-01T00:00", **more: Any) -> list[str]:
    rule = Cadence.parse({"rrule": rrule, **({} if "BYHOUR" in rrule else {"at": "09:00"}), **more})
    found = preview(rule, utc(after), count, anchor=utc(anchor))
    return [slot.at.strftime("%Y-%m-%dT%H:%M") for slot in found]


@pytest.mark.parametrize(
    ("rrule", "expected"),
    [
        ("FREQ=DAILY", ["2026-01-01T09:00", "2026-01-02T09:00"]),
        ("FREQ=DAILY;INTERVAL=3", ["2026-01-01T09:00", "2026-01-04T09:00"]),
        ("RRULE:FREQ=DAILY;BYDAY=MO,WE;", ["2026-01-05T09:00", "2026-01-07T09:00"]),
        ("FREQ=DAILY;BYMONTHDAY=29;BYMONTH=2", ["2028-02-29T09:00", "2032-02-29T09:00"]),
        ("FREQ=DAILY;BYMONTH=1;BYDAY=FR", ["2026-01-02T09:00", "2026-01-09T09:00"]),
        ("FREQ=DAILY;BYHOUR=18,9;BYMINUTE=30", ["2026-01-01T09:30", "2026-01-01T18:30"]),
        ("FREQ=DAILY;BYHOUR=9", ["2026-01-01T09:00", "2026-01-02T09:00"]),
        ("freq=weekly;byday=th;wkst=su", ["2026-01-01T09:00", "2026-01-08T09:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;WKST=MO", ["2026-01-12T09:00", "2026-01-26T09:00"]),
        ("FREQ=WEEKLY;BYDAY=TU;BYMONTH=3", ["2026-03-03T09:00", "2026-03-10T09:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2026-01-30T09:00", "2026-02-27T09:00"]),
        ("FREQ=MONTHLY;BYDAY=+2MO,-5SU", ["2026-01-12T09:00", "2026-02-09T09:00", "2026-03-01T09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["2026-01-31T09:00", "2026-03-31T09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["2026-01-31T09:00", "2026-02-28T09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", ["2026-02-13T09:00", "2026-03-13T09:00"]),
        (
            "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=1",
            ["2026-01-01T09:00", "2026-06-01T09:00", "2026-11-01T09:00"],
        ),
        ("FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=1;BYMONTH=6,4", ["2026-06-01T09:00", "2027-04-01T09:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-01-30T09:00", "2026-02-27T09:00"]),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1,-1",
            ["2026-01-05T09:00", "2026-01-27T09:00", "2026-02-02T09:00"],
        ),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", ["2026-11-26T09:00", "2027-11-25T09:00"]),
        (
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
            ["2026-11-03T09:00", "2030-11-05T09:00"],
        ),
        ("FREQ=YEARLY;BYMONTH=5;BYDAY=MO;BYSETPOS=-1", ["2026-05-25T09:00", "2027-05-31T09:00"]),
        ("FREQ=YEARLY;BYMONTHDAY=1", ["2026-01-01T09:00", "2026-02-01T09:00"]),
    ],
)
def test_rrule_is_read(rrule: str, expected: list[str]) -> None:
    """CAD-9, CAD-6."""
    assert slots(rrule, "2026-01-01T00:00", len(expected)) == expected


def test_phase_of_an_rrule_counts_from_the_anchor() -> None:
    """CAD-5, CAD-9: the anchor stands for DTSTART."""
    assert slots("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2026-01-01T00:00", 1, anchor="2026-01-08T00:00") == [
        "2026-01-19T09:00"
    ]
    found = slots(
        "FREQ=YEARLY;INTERVAL=2;BYMONTH=3;BYMONTHDAY=1", "2026-01-01T00:00", 2, anchor="2025-12-31T00:00"
    )
    assert found == ["2027-03-01T09:00", "2029-03-01T09:00"]


def test_rrule_follows_the_civil_rule() -> None:
    """CAD-4, CAD-9."""
    rule = Cadence.parse({"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "zone": "America/New_York"})
    found = preview(rule, utc("2026-03-07T12:00"), 1)[0]
    assert found.local_time == "2026-03-08T03:00:00"
    assert slots("FREQ=DAILY", "2026-01-01T00:00", 1, exclude=["2026-01-01"]) == ["2026-01-02T09:00"]


@pytest.mark.parametrize(
    ("rrule", "at", "reason"),
    [
        ("FREQ=DAILY;COUNT=3", "09:00", "COUNT: "),
        ("FREQ=DAILY;UNTIL=20270101T000000Z", "09:00", "UNTIL: "),
        ("FREQ=YEARLY;BYYEARDAY=100", "09:00", "BYYEARDAY: "),
        ("FREQ=YEARLY;BYWEEKNO=20", "09:00", "BYWEEKNO: "),
        ("RSCALE=CHINESE;FREQ=YEARLY", "09:00", "RSCALE: "),
        ("FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD", "09:00", "SKIP: "),
        ("FREQ=HOURLY;INTERVAL=6", None, 'use unit "hour"'),
        ("FREQ=MINUTELY", None, 'use unit "minute"'),
        ("FREQ=FORTNIGHTLY", "09:00", "FREQ: must be one of DAILY, WEEKLY, MONTHLY, YEARLY"),
        ("BYDAY=MO", "09:00", "FREQ: must be one of"),
        ("FREQ=DAILY;FREQ=DAILY", "09:00", "FREQ: stands twice"),
        ("FREQ=DAILY;X-THING=1", "09:00", "'X-THING=1': not a part"),
        ("FREQ=DAILY;BYDAY", "09:00", "'BYDAY': not a part"),
        ("DTSTART:20260101T090000 RRULE:FREQ=DAILY", None, "not a part"),
        ("FREQ=DAILY;INTERVAL=0", "09:00", "INTERVAL: '0' is not a number from 1 to 365"),
        ("FREQ=DAILY;INTERVAL=366", "09:00", "INTERVAL: "),
        ("FREQ=DAILY;INTERVAL=1,2", "09:00", "INTERVAL: is one number"),
        ("FREQ=WEEKLY;INTERVAL=53;BYDAY=MO", "09:00", "INTERVAL: "),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=MO", "09:00", "BYDAY: can't narrow"),
        ("FREQ=DAILY;BYSETPOS=1", "09:00", "BYSETPOS: needs FREQ=MONTHLY"),
        ("FREQ=DAILY;BYDAY=1MO", "09:00", "BYDAY: 1MO counts inside a month"),
        ("FREQ=DAILY;BYDAY=XX", "09:00", "BYDAY: 'XX' is not a weekday"),
        ("FREQ=MONTHLY;BYDAY=6MO", "09:00", "BYDAY: '6MO' is not a weekday"),
        ("FREQ=WEEKLY", "09:00", "BYDAY: is missing"),
        ("FREQ=WEEKLY;BYDAY=MO;BYMONTHDAY=1", "09:00", "BYMONTHDAY: does not go with FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=1", "09:00", "BYSETPOS: needs"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYMONTH=3", "09:00", "BYMONTH: can't narrow"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;WKST=SU", "09:00", "WKST: weeks start on Monday"),
        ("FREQ=MONTHLY", "09:00", "BYMONTHDAY or BYDAY: one is needed"),
        ("FREQ=YEARLY;BYMONTH=3", "09:00", "BYMONTHDAY or BYDAY: one is needed"),
        ("FREQ=YEARLY;BYDAY=20MO", "09:00", "BYDAY: '20MO' is not a weekday"),
        ("FREQ=YEARLY;BYDAY=2MO", "09:00", "BYDAY: 2MO counts inside a month"),
        ("FREQ=YEARLY;BYMONTH=3,4;BYMONTHDAY=1,2;BYSETPOS=1", "09:00", "BYSETPOS: with FREQ=YEARLY needs"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "09:00", "BYMONTHDAY: '0' is not a number from 1 to 31"),
        ("FREQ=MONTHLY;BYMONTHDAY=-32", "09:00", "BYMONTHDAY: '-32' is not a number"),
        ("FREQ=MONTHLY;BYMONTHDAY=X", "09:00", "BYMONTHDAY: 'X' is not a number"),
        ("FREQ=MONTHLY;BYMONTHDAY=1;BYMONTH=13", "09:00", "BYMONTH: "),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;BYHOUR=9,18", None, "BYSETPOS: counts slots"),
        ("FREQ=DAILY", None, "the times of day are missing"),
        ("FREQ=DAILY;BYMINUTE=30", None, "the times of day are missing"),
        ("FREQ=DAILY;BYHOUR=9", "09:00", "BYHOUR: the times of day stand in at already"),
        ("FREQ=DAILY;BYSECOND=5", "09:00", "BYSECOND: the times of day stand in at already"),
        ("FREQ=DAILY;BYHOUR=24", None, "BYHOUR: '24' is not a number from 0 to 23"),
        ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,4", None, "two slots would lie 240 seconds apart"),
        ("FREQ=DAILY;BYHOUR=9;BYSECOND=0,30", None, "two slots would lie 30 seconds apart"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_name_of_its_part(
    rrule: str, at: str | None, reason: str
) -> None:
    """CAD-9."""
    with pytest.raises(CadenceError) as caught:
        Cadence.parse({"rrule": rrule, **({} if at is None else {"at": at})})
    (fault,) = caught.value.faults
    assert fault.field == "rrule"
    assert reason in fault.message


@pytest.mark.parametrize(
    ("rrule", "refused"),
    [
        ("FREQ=DAILY", True),
        ("FREQ=DAILY;INTERVAL=2", False),
        ("FREQ=WEEKLY;BYDAY=SU,MO", True),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO", False),  # Monday to Sunday is one week
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU", True),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", True),
        ("FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1,-1", False),
        ("FREQ=YEARLY;BYMONTH=1,12;BYMONTHDAY=1,-1", True),
        ("FREQ=YEARLY;INTERVAL=2;BYMONTH=1,12;BYMONTHDAY=1,-1", False),
        ("FREQ=YEARLY;INTERVAL=2;BYMONTH=3,4;BYMONTHDAY=1,-1", True),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=28,-1", True),  # in leap years alone
    ],
)
def test_floor_over_midnight_needs_two_dates_in_a_row(rrule: str, refused: bool) -> None:
    """CAD-9."""
    given = {"rrule": rrule, "at": ["00:01", "23:59"]}
    if refused:
        with pytest.raises(CadenceError, match="120 seconds apart"):
            Cadence.parse(given)
    else:
        assert Cadence.parse(given).at == ("00:01", "23:59")
