"""Zones as windows: where they come from, what they know, and the one rule from wall clock to instant."""

import itertools
import os
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module, resources
from pathlib import Path
from typing import NoReturn

import pytest

from gnomon.cadence import civil, zone_data_version, zone_names
from gnomon.cadence.civil import DAY, FIRST_SECOND, LAST_SECOND, MICRO, zone_named
from gnomon.cadence.cycle import Cycle
from gnomon.cadence.daily import CycleDates
from gnomon.cadence.wallclock import CivilSlots


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Zone data found anew in the test, and again after it."""
    zone_named.cache_clear()
    zone_names.cache_clear()
    yield
    zone_named.cache_clear()
    zone_names.cache_clear()


@pytest.mark.parametrize(
    ("zone", "wall", "instant"),
    [
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00"),  # gap: its end, not half past
        ("America/New_York", "2026-03-08T03:00", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"),  # overlap: the earlier
        ("America/New_York", "2026-11-01T02:00", "2026-11-01T07:00"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45"),  # overlap of half an hour
        ("America/Nuuk", "2026-03-28T23:30", "2026-03-29T01:00"),  # gap up to the end of the date
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00"),  # gap of a whole date
        ("Pacific/Kwajalein", "1969-09-30T12:00", "1969-09-30T01:00"),  # overlap of 23 hours
        ("Europe/Berlin", "2500-06-30T12:00", "2500-06-30T10:00"),  # far beyond any listed change
    ],
)
def test_wall_time_becomes_the_instant_of_the_civil_rule(zone: str, wall: str, instant: str) -> None:
    """CAD-4."""
    assert zone_named(zone).resolve(second(wall)) == second(instant)


def test_repeated_wall_time_is_known() -> None:
    """CAD-8: what the overlap note stands on."""
    york = zone_named("America/New_York")
    assert york.repeats(second("2026-11-01T01:30"))
    assert not york.repeats(second("2026-11-01T00:59"))
    assert not york.repeats(second("2026-11-01T02:00"))
    assert zone_named("Pacific/Kwajalein").repeats(second("1969-09-30T12:00"))


def test_every_reading_of_a_wall_time_is_given_in_order() -> None:
    """CAD-4: two in an overlap, none in a gap."""
    york = zone_named("America/New_York")
    told = {
        wall: york.readings(second(wall))
        for wall in ("2026-11-01T01:30", "2026-03-08T02:30", "2026-03-08T03:00")
    }
    assert list(told.values()) == [
        [second("2026-11-01T05:30"), second("2026-11-01T06:30")],
        [],
        [second("2026-03-08T07:00")],
    ]


def test_dates_that_do_not_exist_are_known() -> None:
    """CAD-4."""
    assert zone_named("Pacific/Apia").missing == {second("2011-12-30") // DAY}
    assert zone_named("Pacific/Kwajalein").missing == {second("1993-08-21") // DAY}
    assert zone_named("America/Nuuk").missing == frozenset()


def test_windows_join_without_a_seam_over_all_years() -> None:
    berlin = zone_named("Europe/Berlin")
    windows = list(berlin.windows(second("1890-01-01"), second("2110-01-01")))
    for window, following in itertools.pairwise(windows):
        assert window.end == following.start
        assert following.peak == max(window.peak, window.end + window.offset)
    assert {window.offset for window in windows if window.start > second("1990-01-01")} == {3600, 7200}


def test_two_changes_close_together_are_one_overlap() -> None:
    """CAD-4: no zone has done it yet: ten hours back, and an hour later one forward; slots stay in order."""
    changes, kinds = [1_000_000, 1_003_600], [(36_000, 0), (0, 0), (3_600, 0)]
    header = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 2, 3, 1)
    block = struct.pack(">2q2B", *changes, 1, 2) + b"".join(
        struct.pack(">lBB", offset, *more, 0) for offset, *more in kinds
    )
    empty = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 0, 0)
    zone = civil.Zone("Made/Up", empty + header + block + b"\0" + b"\n<+01>-1\n")
    assert zone.window(1_003_600).peak == 1_036_000
    resolved = [zone.resolve(wall) for wall in range(990_000, 1_060_000, 450)]
    assert resolved == sorted(resolved)
    slots = CivilSlots(zone, CycleDates(Cycle(0, 1)), tuple(range(0, DAY, 450)), 0)
    found = [1_002_000 * MICRO]
    for _ in range(100):
        following = slots.next_after(found[-1])
        assert following is not None
        assert following > found[-1]
        assert slots.latest_at(following) == following
        found.append(following)
    assert found[1] == 1_032_750 * MICRO


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "America/New_York", "UTC"])
def test_zones_answer_at_the_ends_of_datetime(zone: str) -> None:
    for moment in (FIRST_SECOND - 1, FIRST_SECOND, LAST_SECOND, LAST_SECOND + 1):
        window = zone_named(zone).window(moment)
        assert window.start <= moment < window.end


def test_tables_of_a_zone_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(civil, "_CHUNKS_KEPT", 3)
    zone = civil.Zone("Europe/Berlin", civil._zone_data("Europe/Berlin"))
    for year in range(2000, 2012):
        zone.window(second(f"{year}-07-01"))
        assert len(zone._chunks) <= 3


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "localtime", "../UTC", "utc"])
def test_what_is_no_zone_is_a_key_error(name: str) -> None:
    """CAD-11."""
    with pytest.raises(KeyError):
        zone_named(name)


def test_pinned_package_wins_over_the_system(
    forgotten: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAD-11, casebook tzd-07: an old copy of the system does not bend Berlin."""
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes(civil._zone_data("Asia/Tokyo"))
    monkeypatch.setattr(civil, "TZPATH", (str(tmp_path),))
    assert zone_named("Europe/Berlin").window(second("2026-01-01")).offset == 3600
    assert zone_data_version() == import_module("tzdata").IANA_VERSION


def test_system_serves_where_the_package_lacks_a_zone(
    forgotten: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAD-11."""
    (tmp_path / "Here").write_bytes(civil._zone_data("Asia/Tokyo"))
    (tmp_path / "Nowhere").mkdir()
    monkeypatch.setattr(civil, "TZPATH", (str(tmp_path),))
    monkeypatch.setattr(civil, "zone_names", lambda: frozenset({"Here", "Nowhere"}))
    assert zone_named("Here").window(0).offset == 9 * 3600
    with pytest.raises(KeyError):
        zone_named("Nowhere")


def test_system_serves_where_there_is_no_package(
    forgotten: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAD-11."""
    (tmp_path / "Here").write_bytes(civil._zone_data("Asia/Tokyo"))

    def missing(*_: object) -> NoReturn:
        raise ModuleNotFoundError

    monkeypatch.setattr(resources, "files", missing)
    monkeypatch.setattr(civil, "import_module", missing)
    monkeypatch.setattr(civil, "available_timezones", lambda: {"Here", "localtime", "Factory"})
    monkeypatch.setattr(civil, "TZPATH", (str(tmp_path),))
    assert zone_names() == {"Here"}
    assert zone_named("Here").window(0).offset == 9 * 3600
    assert zone_data_version() == "system"


def test_zone_of_the_host_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """CAD-11."""
    moments = [second(f"2025-{month:02}-05T02:30") for month in range(1, 13)]

    def answers() -> list[int]:
        zone = civil.Zone("Europe/Berlin", civil._zone_data("Europe/Berlin"))
        return [zone.resolve(moment) for moment in moments]

    before = answers()
    try:
        for host in ("Australia/Sydney", "America/Nuuk", "UTC"):
            monkeypatch.setitem(os.environ, "TZ", host)
            time.tzset()
            assert answers() == before
    finally:
        monkeypatch.undo()
        time.tzset()
