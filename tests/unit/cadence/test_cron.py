"""Five-field cron in the civil rule, its floor, and what is refused (CAD-9)."""

from datetime import UTC, datetime

import pytest

from gnomon.cadence import Cadence, CadenceError, next_after, preview


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slots(cron: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    found = preview(Cadence.parse({"cron": cron, "zone": zone}), utc(after), count)
    return [slot.at.strftime("%Y-%m-%dT%H:%M") for slot in found]


def refusal(cron: str) -> str:
    with pytest.raises(CadenceError) as caught:
        Cadence.parse({"cron": cron})
    (fault,) = caught.value.faults
    assert fault.field == "cron"
    return fault.message


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 9 * * *", ["2026-01-01T09:00", "2026-01-02T09:00"]),
        ("0 9 * * 1-5", ["2026-01-01T09:00", "2026-01-02T09:00", "2026-01-05T09:00"]),
        ("0 9 * * MON,wed", ["2026-01-05T09:00", "2026-01-07T09:00"]),
        ("0 9 * * 7", ["2026-01-04T09:00", "2026-01-11T09:00"]),
        ("*/20 8-9 * * *", ["2026-01-01T08:00", "2026-01-01T08:20", "2026-01-01T08:40", "2026-01-01T09:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 12 L * *", ["2026-01-31T12:00", "2026-02-28T12:00"]),
        ("0 12 LW * *", ["2026-01-30T12:00", "2026-02-27T12:00", "2026-03-31T12:00"]),
        ("0 12 * * 5L", ["2026-01-30T12:00", "2026-02-27T12:00"]),
        ("0 12 * * MON#2", ["2026-01-12T12:00", "2026-02-09T12:00"]),
        ("0 12 * * SUN#5", ["2026-03-29T12:00", "2026-05-31T12:00"]),
        ("0 12 1 JAN,jul *", ["2026-01-01T12:00", "2026-07-01T12:00"]),
        ("0 12 1-31 * 1", ["2026-01-01T12:00", "2026-01-02T12:00"]),
    ],
)
def test_cron_is_read(cron: str, expected: list[str]) -> None:
    """CAD-9."""
    assert slots(cron, "2026-01-01T00:00", len(expected)) == expected


def test_two_day_fields_keep_the_rule_of_cron() -> None:
    """CAD-9: either is enough, unless one of them begins with a star."""
    assert slots("0 0 13 * 5", "2026-02-01T00:00", 3) == [
        "2026-02-06T00:00",
        "2026-02-13T00:00",
        "2026-02-20T00:00",
    ]
    assert slots("0 0 */2 * 5", "2026-02-01T00:00", 2) == ["2026-02-13T00:00", "2026-02-27T00:00"]
    assert slots("0 0 13 * */5", "2026-02-01T00:00", 2) == ["2026-02-13T00:00", "2026-03-13T00:00"]


def test_cron_follows_the_civil_rule() -> None:
    """CAD-4, CAD-9: a frequent cron fires once in the repeated hour, and once at the end of a gap."""
    assert slots("*/30 * * * *", "2026-11-01T04:00", 4, "America/New_York") == [
        "2026-11-01T04:30", "2026-11-01T05:00", "2026-11-01T05:30", "2026-11-01T07:00",
    ]  # fmt: skip
    assert slots("*/30 * * * *", "2026-03-08T06:00", 3, "America/New_York") == [
        "2026-03-08T06:30", "2026-03-08T07:00", "2026-03-08T07:30",
    ]  # fmt: skip
    late = preview(
        Cadence.parse({"cron": "30 2 * * *", "zone": "America/New_York"}), utc("2026-03-07T12:00"), 1
    )
    assert late[0].note is not None
    assert late[0].note.startswith("gap")


@pytest.mark.parametrize(
    ("cron", "seconds"),
    [
        ("* * * * *", 60),
        ("*/4 * * * *", 240),
        ("0,58 * * * *", 120),  # over the hour
        ("0,58 0,23 * * *", 120),  # over midnight, every day
        ("0,58 0,23 * * 6,7", 120),  # Saturday to Sunday
        ("0,58 0,23 * * 1,7", 120),  # Sunday to Monday
        ("0,58 0,23 1,L * *", 120),  # over the end of a month
        ("0,58 0,23 29 2 7L", 120),  # Monday to Tuesday 29 February, in some years alone
        ("0,58 0,23 31 12 1", 120),
        ("2,58 0,23 13 * 5", 240),
    ],
)
def test_floor_of_five_minutes_is_decided_over_the_whole_pattern(cron: str, seconds: int) -> None:
    """CAD-9."""
    assert refusal(cron).startswith(f"two slots would lie {seconds} seconds apart; the floor is 300")


@pytest.mark.parametrize(
    "cron",
    [
        "*/5 * * * *",
        "0,55 * * * *",
        "0,58 0,23 1 * *",  # never two dates in a row
        "0,58 0,23 * * 1,3,5",
        "0,58 0,23 1,30 4,6 *",
        "0,58 0,23 L 1,3 *",
        "0,58 0,23 * * 5L",
        "0,58 0,23 28 2 *",
        "0,58 0,23 31 1,7 *",
    ],
)
def test_floor_refuses_nothing_that_keeps_it(cron: str) -> None:
    """CAD-9."""
    assert next_after(Cadence.parse({"cron": cron}), utc("2026-01-01T00:00")) is not None


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("0 0 9 * * *", "seconds are not supported"),
        ("0 9 * *", "five fields"),
        ("@daily", "five fields"),
        ("0 9 * * * * *", "five fields"),
        ("60 9 * * *", "Bad minute"),
        ("0 24 * * *", "Bad hour"),
        ("0 9 0 * *", "Bad day-of-month"),
        ("0 9 31 2 *", "Bad day-of-month"),
        ("0 9 * 13 *", "Bad month"),
        ("0 9 * * 8", "Bad day-of-week"),
        ("0 9 * * 5-2", "Bad day-of-week"),
        ("0 0 L * FRIL", "Bad day-of-week"),
        ("*/0 9 * * *", "Bad minute"),
        ("0 9 ? * 1", "Bad day-of-month"),
    ],
)
def test_what_cron_cannot_say_is_refused_with_the_reason(cron: str, reason: str) -> None:
    """CAD-9."""
    assert reason in refusal(cron)


def test_spaces_do_not_matter() -> None:
    assert Cadence.parse({"cron": "  0   9 * *\t* "}).to_json() == {"cron": "0 9 * * *", "zone": "UTC"}
