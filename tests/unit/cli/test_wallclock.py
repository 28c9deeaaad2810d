"""Times of the wall clock as people type them: which instant they mean, and that a clock change is told (CAD-4)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gnomon.cadence import Cadence, preview
from gnomon.cli.command import Usage
from gnomon.cli.wallclock import moved, once, read, wall, with_local

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize("text", ["2027-01-05T09:00", "2027-01-05 09:00:00", " 2027-01-05 09:00 "])
def test_a_date_with_a_time_is_a_wall_clock_time(text: str) -> None:
    assert wall(text) == datetime(2027, 1, 5, 9)  # noqa: DTZ001 - a wall-clock time has no zone


@pytest.mark.parametrize("text", ["2027-01-05T09:00Z", "2027-01-05", "09:00", "2027-02-30T09:00", "soon", ""])
def test_nothing_else_is(text: str) -> None:
    assert wall(text) is None


@pytest.mark.parametrize(
    ("text", "zone", "cadence"),
    [
        ("2027-01-05T09:00", BERLIN, {"at": "2027-01-05T09:00:00", "zone": BERLIN}),
        ("2027-01-05 09:00:30", None, {"at": "2027-01-05T09:00:30"}),
        ("2027-01-05T09:00:00+01:00", None, {"at": "2027-01-05T08:00:00", "zone": "UTC"}),
        ("2027-01-05 09:00:00Z", None, {"at": "2027-01-05T09:00:00", "zone": "UTC"}),
    ],
)
def test_one_slot_is_a_cadence(text: str, zone: str | None, cadence: dict[str, Any]) -> None:
    """CAD-3."""
    assert once(text, zone) == {"unit": "once", **cadence}
    assert Cadence.parse(once(text, zone)).at == (cadence["at"],)


@pytest.mark.parametrize(
    ("text", "zone", "says"),
    [
        ("09:00", None, '"09:00" is no date with a time'),
        ("2027-01-05", BERLIN, "Write it as 2027-01-05T09:00"),
        ("2027-01-05T09:00:00.5Z", None, "is no date with a time"),
        ("2027-01-05T09:00:00+01:00", BERLIN, "has an offset already"),
    ],
)
def test_what_is_no_slot_is_refused_in_a_sentence(text: str, zone: str | None, says: str) -> None:
    with pytest.raises(Usage, match=says):
        once(text, zone)


@pytest.mark.parametrize(
    ("text", "zone", "at", "says"),
    [
        (
            "2027-01-05T09:00",
            BERLIN,
            "2027-01-05T08:00",
            "09:00:00 in Europe/Berlin is 2027-01-05 08:00:00Z.",
        ),
        ("2027-03-28T02:30", BERLIN, "2027-03-28T01:00", "does not exist on 2027-03-28"),
        ("2027-10-31T02:30", BERLIN, "2027-10-31T00:30", "the later one is 2027-10-31 01:30:00Z"),
        (
            "2027-04-04T01:45",
            "Australia/Lord_Howe",
            "2027-04-03T14:45",
            "the later one is 2027-04-03 15:15:00Z",
        ),
        ("2027-01-05T09:00", "UTC", "2027-01-05T09:00", "in UTC is 2027-01-05 09:00:00Z"),
    ],
)
def test_a_wall_clock_time_means_what_a_cadence_means_by_it(text: str, zone: str, at: str, says: str) -> None:
    """CAD-4: the earlier of two readings, the first instant after a gap; either is told."""
    local = datetime.fromisoformat(text)
    found = read(local, zone)
    assert found.at == datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert says in found.sentence
    rule = Cadence.parse({"unit": "once", "at": local.isoformat(), "zone": zone})
    [slot] = preview(rule, datetime(2026, 12, 1, tzinfo=UTC), 1)
    assert (slot.at, slot.note is not None) == (found.at, found.moved)
    assert (found.as_json()["note"] is not None) == found.moved
    assert (moved(rule.to_json()) is not None) == found.moved


def test_a_rule_that_is_no_single_slot_was_not_moved() -> None:
    assert moved({"cron": "30 2 28 3 *", "zone": BERLIN}) is None


@pytest.mark.parametrize(
    ("instant", "zone", "told"),
    [
        ("2027-01-05T08:00:00Z", BERLIN, "2027-01-05 08:00:00Z (2027-01-05 09:00:00 in Europe/Berlin)"),
        ("2027-07-05T23:00:00Z", BERLIN, "2027-07-05 23:00:00Z (2027-07-06 01:00:00 in Europe/Berlin)"),
        ("2027-01-05T08:00:00Z", "UTC", "2027-01-05T08:00:00Z"),
        ("2027-01-05T08:00:00Z", "Mars/Base", "2027-01-05T08:00:00Z"),
        (None, BERLIN, None),
    ],
)
def test_an_instant_is_told_by_the_clock_of_its_rule_too(
    instant: str | None, zone: str, told: str | None
) -> None:
    assert with_local(instant, {"zone": zone}) == told
