"""Every zone, every change from 1970 to 2040: windows and the civil rule against libraries that share no code."""

import warnings
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import whenever

from gnomon.cadence.civil import EPOCH, Window, zone_named, zone_names
from support import cadence_oracle as oracle

FIRST, LAST = 0, 2_240_000_000  # 1970 to the end of 2040
STEP = 11 * 86_400 + 3_607
GROUPS = [sorted(zone_names())[start::8] for start in range(8)]


def windows(name: str) -> list[Window]:
    """The windows of a zone with those that a chunk's border cut put together again."""
    found: list[Window] = []
    for window in zone_named(name).windows(FIRST, LAST):
        if found and found[-1].offset == window.offset:
            found[-1] = found[-1]._replace(end=window.end)
        else:
            found.append(window)
    return found


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_windows_agree_with_whenever(names: list[str]) -> None:
    """CAD-11: at both sides of every change, and every eleven days between."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whenever.reset_tzpath([])
        whenever.clear_tzcache()
    for name in names:
        found = windows(name)
        for window in found:
            moments = [
                max(window.start, FIRST),
                window.end - 1,
                *range(max(window.start, FIRST), window.end, STEP),
            ]
            for moment in moments:
                if moment > LAST:
                    continue
                theirs = whenever.Instant.from_timestamp(moment).to_tz(name).offset.to_stdlib()
                assert theirs == timedelta(seconds=window.offset), (name, moment)


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_wall_times_around_every_change_resolve_as_the_oracle_says(names: list[str]) -> None:
    """CAD-4: in the gap, in the overlap, on their borders, and a second beside them."""
    for name in names:
        zone = zone_named(name)
        for before, after in pairwise(windows(name)):
            low, high = sorted((after.start + before.offset, after.start + after.offset))
            if after.start > LAST - 86_400:
                continue
            walls = [low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1]
            resolved = [zone.resolve(wall) for wall in walls]
            assert resolved == sorted(resolved), name
            for wall, instant in zip(walls, resolved, strict=True):
                shown = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=None)
                expected = oracle.instant_of(name, shown)
                assert EPOCH + timedelta(seconds=instant) == expected, (name, shown)


def test_offsets_of_other_centuries_agree_with_zoneinfo() -> None:
    """CAD-11: before any listed change, and by the footer's rule far after the last."""
    for name in sorted(zone_names()):
        zone = zone_named(name)
        for year in (1, 1700, 1883, 1911, 1945, 2100, 2399, 8000):
            for month in (1, 7):
                moment = datetime(year, month, 17, 5, tzinfo=UTC)
                second = (moment - EPOCH).days * 86_400 + 5 * 3600
                assert timedelta(seconds=zone.window(second).offset) == oracle.offset_at(name, moment), name
