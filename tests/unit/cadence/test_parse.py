"""Writing a rule down: every form of the contract, every fault with its field, and the way back to JSON."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from gnomon.cadence import EVERY_RANGES, Cadence, CadenceError, Fault, ShortMonth, Unit

DAY: dict[str, Any] = {"unit": "day", "at": "09:00"}
WEEK: dict[str, Any] = {"unit": "week", "at": "09:00", "days": ["mon"]}
MONTH: dict[str, Any] = {"unit": "month", "at": "09:00"}


def faults(given: Any) -> dict[str, str]:
    with pytest.raises(CadenceError) as caught:
        Cadence.parse(given)
    return {fault.field: fault.message for fault in caught.value.faults}


FORMS: list[dict[str, Any]] = [
    {"unit": "minute", "every": 15},
    {"unit": "hour", "every": 6},
    {"unit": "day", "every": 1, "at": ["09:00"], "zone": "Europe/Berlin"},
    {"unit": "week", "every": 2, "days": ["mon", "wed"], "at": ["09:00"], "zone": "Europe/Berlin"},
    {
        "unit": "month",
        "every": 1,
        "day": 31,
        "short_month": "clamp",
        "at": ["09:00"],
        "zone": "Europe/Berlin",
    },
    {"unit": "month", "every": 1, "day": 31, "short_month": "skip", "at": ["09:00"], "zone": "Europe/Berlin"},
    {"unit": "month", "every": 1, "day": "last", "at": ["18:00"], "zone": "Europe/Berlin"},
    {"unit": "month", "every": 1, "weekday": "fri", "nth": -1, "at": ["09:00"], "zone": "Europe/Berlin"},
    {"unit": "once", "at": "2026-12-24T18:00:00", "zone": "Europe/Berlin"},
    {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"},
    {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "at": ["09:00"], "zone": "Europe/Berlin"},
    {
        **DAY,
        "zone": "Asia/Tokyo",
        "anchor": "2026-01-31T09:30:00Z",
        "exclude": ["2026-12-24"],
        "calendar": "de-by",
    },
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: json.dumps(form)[:40])
def test_every_form_of_the_contract_is_read_and_comes_back(form: dict[str, Any]) -> None:
    rule = Cadence.parse(form)
    canonical = rule.to_json()
    assert Cadence.parse(canonical) == rule
    assert Cadence.parse(json.loads(json.dumps(canonical))).to_json() == canonical
    assert Cadence.from_stored(canonical) == rule
    assert Cadence.from_stored(json.dumps(canonical)) == rule
    given = {key: [value] if key == "at" and isinstance(value, str) else value for key, value in form.items()}
    if rule.unit is Unit.ONCE:
        given["at"] = form["at"]
    assert given.items() <= canonical.items()


def test_defaults_are_filled_in() -> None:
    assert Cadence.parse(DAY).to_json() == {"unit": "day", "every": 1, "at": ["09:00"], "zone": "UTC"}
    rule = Cadence.parse({**MONTH, "day": 30})
    assert rule.short_month is ShortMonth.CLAMP
    assert Cadence.parse({"unit": "hour"}).to_json() == {"unit": "hour", "every": 1, "zone": "UTC"}


def test_times_and_weekdays_are_put_in_order_and_kept_once() -> None:
    """CAD-3, CAD-6."""
    rule = Cadence.parse({**DAY, "at": ["18:30:05", "09:00:00", "09:00", "07:15"]})
    assert rule.at == ("07:15", "09:00", "18:30:05")
    assert Cadence.parse({**WEEK, "days": ["sun", "mon", "mon"]}).days == ("mon", "sun")


@pytest.mark.parametrize("unit", [unit for unit in EVERY_RANGES if unit != "once"])
def test_interval_ranges_hold_at_both_ends(unit: str) -> None:
    """CAD-1."""
    rest: dict[str, Any] = {"day": DAY, "week": WEEK, "month": {**MONTH, "day": 1}}.get(unit, {"unit": unit})
    low, high = EVERY_RANGES[unit]
    for every in (low, high):
        assert Cadence.parse({**rest, "every": every}).every == every
    for every in (low - 1, high + 1, -low, 10**30):
        assert faults({**rest, "every": every})["every"].startswith(
            f"must be a whole number from {low} to {high}"
        )


def test_ranges_are_those_of_the_rules() -> None:
    """CAD-1."""
    assert EVERY_RANGES == {
        "once": (1, 1),
        "minute": (5, 1440),
        "hour": (1, 168),
        "day": (1, 365),
        "week": (1, 52),
        "month": (1, 24),
    }


@pytest.mark.parametrize("every", [True, 1.0, "1", None, [1], float("nan"), {"n": 1}])
def test_only_whole_numbers_are_whole_numbers(every: object) -> None:
    assert set(faults({**DAY, "every": every})) == {"every"}


def test_minute_has_no_default_interval() -> None:
    """CAD-1: one minute, the common default, is below its floor."""
    assert "every" in faults({"unit": "minute"})


def test_all_faults_come_at_once() -> None:
    given = {
        "unit": "week",
        "every": 0,
        "days": ["mon", "moon"],
        "at": ["9:00", "24:00", "10:00"],
        "zone": "Mars/Olympus",
        "hours": 3,
        "exclude": ["2026-02-30", "2026-12-24", 5],
        "calendar": "No Slug",
        "anchor": "yesterday",
    }
    with pytest.raises(CadenceError) as caught:
        Cadence.parse(given)
    assert {fault.field for fault in caught.value.faults} == {
        "every", "days.1", "at.0", "at.1", "zone", "hours", "exclude.0", "exclude.2", "calendar", "anchor",
    }  # fmt: skip
    assert "days.1: must be one of mon" in str(caught.value)


def test_an_unknown_unit_hides_no_fault_of_what_every_cadence_has() -> None:
    """CAD-11: only the fields that hang on the unit can't be judged without one."""
    given = {"unit": "fortnight", "every": 0, "zone": "Mars/Olympus", "anchor": "yesterday"}
    with pytest.raises(CadenceError) as caught:
        Cadence.parse(given)
    assert {fault.field for fault in caught.value.faults} == {"unit", "zone", "anchor"}


@pytest.mark.parametrize("given", [None, 5, "day", [], [DAY], True])
def test_only_an_object_is_a_cadence(given: object) -> None:
    assert list(faults(given)) == [""]


@pytest.mark.parametrize(
    "given", [{}, {"at": "09:00"}, {**DAY, "cron": "0 9 * * *"}, {"cron": "", "rrule": ""}]
)
def test_exactly_one_form_is_needed(given: Mapping[str, Any]) -> None:
    assert "exactly one of unit, cron and rrule" in faults(given)[""]


@pytest.mark.parametrize("unit", ["second", "year", "Day", "cron", "rrule", 5, None, ["day"], True])
def test_unknown_units_are_refused(unit: object) -> None:
    """CAD-1."""
    said = "is required:" if unit is None else "must be"
    assert faults({"unit": unit})["unit"].startswith(f"{said} one of once, minute, hour, day, week, month")


@pytest.mark.parametrize("none", [{}, {"at": None, "days": None, "day": None}])
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"unit": "day"}, {"at": "a time of day, HH:MM or HH:MM:SS"}),
        ({"unit": "week", "at": "09:00"}, {"days": "a non-empty list of weekdays such as mon"}),
        ({"unit": "month", "at": "09:00"}, {"day": "a whole number from 1 to 31 or last"}),
        ({"unit": "once"}, {"at": "a local date and time, YYYY-MM-DDTHH:MM:SS without offset"}),
        (
            {"unit": "week"},
            {"days": "a non-empty list of weekdays such as mon", "at": "a time of day, HH:MM or HH:MM:SS"},
        ),
    ],
)
def test_what_is_missing_is_not_called_wrong(
    given: dict[str, str], missing: dict[str, str], none: dict[str, None]
) -> None:
    """CAD-11."""
    nothing = {name: value for name, value in none.items() if name in missing}
    assert faults({**given, **nothing}) == {name: f"is required: {what}" for name, what in missing.items()}


def test_unknown_fields_are_refused_with_a_near_name() -> None:
    assert faults({**DAY, "zones": "UTC"})["zones"] == "not a field of unit day; did you mean 'zone'?"
    assert faults({**DAY, "days": ["mon"]})["days"].startswith("not a field of unit day")
    assert set(faults({**DAY, 7: 1, "bad key": 2, "\ud800": 3})) == {"7", "'bad key'", "'\\ud800'"}


@pytest.mark.parametrize(
    "at",
    [
        None,
        "",
        "9:00",
        "24:00",
        "09:60",
        "09:00:60",
        "09:00Z",
        "09:00:00.5",
        "٠٩:٠٠",
        900,
        [],
        ["09:00", None],
    ],
)
def test_times_of_day_are_strict(at: object) -> None:
    """CAD-3."""
    assert all(field.startswith("at") for field in faults({**DAY, "at": at}))


def test_times_of_day_are_bounded() -> None:
    times = [f"{minute // 60:02}:{minute % 60:02}" for minute in range(289)]
    assert len(Cadence.parse({**DAY, "at": times[:288]}).at) == 288
    assert set(faults({**DAY, "at": times})) == {"at"}


@pytest.mark.parametrize("days", [None, [], "mon", {"mon": 1}, ["Mon"], [0], [["mon"]]])
def test_weekdays_are_strict(days: object) -> None:
    """CAD-6."""
    assert all(field.startswith("days") for field in faults({**WEEK, "days": days}))


@pytest.mark.parametrize("day", [0, 32, -1, "31", "Last", 1.0, True, None])
def test_day_of_month_is_a_number_or_last(day: object) -> None:
    """CAD-6."""
    assert set(faults({**MONTH, "day": day})) == {"day"}


def test_day_selectors_do_not_mix() -> None:
    """CAD-6."""
    assert set(faults({**MONTH, "day": "last", "short_month": "clamp"})) == {"short_month"}
    assert set(faults({**MONTH, "day": 5, "weekday": "fri", "nth": 1})) == {"day"}
    assert set(faults({**MONTH, "short_month": "skip", "weekday": "fri", "nth": 1})) == {"short_month"}
    assert set(faults({**MONTH, "weekday": "fri"})) == {"nth"}
    assert set(faults({**MONTH, "nth": 2})) == {"weekday"}
    assert set(faults({**MONTH, "day": 31, "short_month": "wrap"})) == {"short_month"}
    for nth in (0, 6, -2, True, "1"):
        assert set(faults({**MONTH, "weekday": "fri", "nth": nth})) == {"nth"}


def test_rolling_rules_leave_no_dates_out() -> None:
    """CAD-9: dates and calendars go with calendar cadences alone."""
    found = faults({"unit": "hour", "exclude": [], "calendar": "de"})
    assert set(found) == {"exclude", "calendar"}
    assert "elapsed time" in found["exclude"]


@pytest.mark.parametrize(
    "at",
    [None, "2026-12-24", "18:00", "2026-12-24T18:00Z", "2026-12-24T18:00+01:00", "2026-02-30T00:00", 5, [],
     ["2026-12-24T18:00", "2026-12-25T18:00"], datetime(2026, 12, 24, 18, tzinfo=UTC), "0000-01-01T00:00"],
)  # fmt: skip
def test_once_takes_one_local_date_and_time(at: object) -> None:
    """CAD-3."""
    assert set(faults({"unit": "once", "at": at})) == {"at"}


def test_values_that_yaml_makes_are_read() -> None:
    once = Cadence.parse({"unit": "once", "at": datetime(2026, 12, 24, 18)})  # noqa: DTZ001 - local by intent
    assert once == Cadence.parse({"unit": "once", "at": ["2026-12-24T18:00"]})
    rule = Cadence.parse(
        {
            **DAY,
            "exclude": (date(2026, 5, 1),),
            "anchor": datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        }
    )
    assert rule == Cadence.parse({**DAY, "exclude": ["2026-05-01"], "anchor": "2026-01-01T00:00:00Z"})


def test_anchor_is_cut_to_the_whole_minute() -> None:
    """CAD-2."""
    rule = Cadence.parse({"unit": "minute", "every": 5, "anchor": "2026-01-31T09:30:59.25+02:00"})
    assert rule.to_json()["anchor"] == "2026-01-31T07:30:00Z"


@pytest.mark.parametrize(
    "anchor",
    [None, 0, "2026-01-31", "2026-01-31T09:30:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00", [],
     "9999-12-31T23:00:00-14:00", "2026-01-31T09:30:00+25:00", datetime(2026, 1, 1)],  # noqa: DTZ001 - naive on purpose
)  # fmt: skip
def test_anchor_is_an_instant(anchor: object) -> None:
    """CAD-5."""
    assert set(faults({**DAY, "anchor": anchor})) == {"anchor"}


def test_left_out_dates_are_put_in_order_and_bounded() -> None:
    """CAD-9."""
    rule = Cadence.parse({**DAY, "exclude": ["2026-12-25", "2026-12-24", "2026-12-25"]})
    assert rule.to_json()["exclude"] == ["2026-12-24", "2026-12-25"]
    assert set(faults({**DAY, "exclude": "2026-12-24"})) == {"exclude"}
    assert set(faults({**DAY, "exclude": ["2026-12-24"] * 1001})) == {"exclude"}
    assert set(faults({**DAY, "exclude": ["20261224", datetime(2026, 1, 1, tzinfo=UTC)]})) == {
        "exclude.0",
        "exclude.1",
    }


@pytest.mark.parametrize("calendar", ["", "De", "-de", "a" * 65, "de/by", "dé", 5, None, ["de"]])
def test_calendar_is_a_slug(calendar: object) -> None:
    """CAD-9."""
    assert set(faults({**DAY, "calendar": calendar})) == {"calendar"}


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("utc", "UTC"),
        ("America/Buenos_Aires ", "America/Buenos_Aires"),
    ],
)
def test_unknown_zone_suggests_near_names(zone: str, near: str) -> None:
    """CAD-11."""
    assert near in faults({**DAY, "zone": zone})["zone"]


@pytest.mark.parametrize(
    "zone",
    ["", "localtime", "posixrules", "Factory", "../../etc/passwd", "/usr/share/zoneinfo/UTC", "posix/UTC", "GMT+2",
     "UTC+1", "Europe", "Europe/Berlin\x00", "Europe/../Europe/Berlin", "zone.tab", "x" * 5000, "\ud800", "İ", 5, None,
     ["UTC"], True],
)  # fmt: skip
def test_what_is_no_zone_is_refused(zone: object) -> None:
    """CAD-11."""
    message = faults({**DAY, "zone": zone})["zone"]
    assert message.isascii() or "…" in message
    assert len(message) < 200
    assert "Etc/GMT+2" not in message


@pytest.mark.parametrize(
    "zone", ["EST5EDT", "Europe/Kiev", "Asia/Calcutta", "Etc/GMT+2", "Africa/Casablanca"]
)
def test_links_are_kept_as_typed(zone: str) -> None:
    """CAD-11."""
    assert Cadence.parse({**DAY, "zone": zone}).to_json()["zone"] == zone


@pytest.mark.parametrize(
    "text", [None, 5, "", "   ", "0 9 * * *" + " " * 500 + "x" * 600, "0 9 * * ١", ["0 9 * * *"]]
)
def test_cron_and_rrule_are_plain_text(text: object) -> None:
    """CAD-9."""
    assert set(faults({"cron": text})) == {"cron"}
    assert set(faults({"rrule": text, "at": "09:00"})) == {"rrule"}


def test_faults_of_cron_and_rrule_come_with_all_others() -> None:
    """CAD-9."""
    assert set(faults({"cron": "* * * * *", "zone": "x", "at": "09:00"})) == {"cron", "zone", "at"}
    assert set(faults({"rrule": "FREQ=DAILY;COUNT=3", "at": ["9"], "every": 2})) == {
        "rrule",
        "at.0",
        "every",
    }


def test_long_values_are_cut_in_messages() -> None:
    values: list[object] = ["x" * 10_000, 10**5000, [[[]]], {"a": 1}, -(10**20)]
    for value in values:
        assert len(faults({**DAY, "every": value})["every"]) < 200


def test_error_shows_each_field_and_is_a_value_error() -> None:
    error = CadenceError((Fault("", "whole"), Fault("at", "part")))
    assert isinstance(error, ValueError)
    assert str(error) == "whole; at: part"
