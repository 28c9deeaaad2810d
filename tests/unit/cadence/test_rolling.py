"""Rolling cadences: the grid of an anchor on the UTC line."""

from datetime import UTC, datetime, timedelta

import pytest

from gnomon.cadence import Cadence, SlotRange, between, count_between, is_slot, latest_at, next_after, preview

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
QUARTER = Cadence.parse({"unit": "minute", "every": 15, "zone": "Europe/Berlin"})


def test_slots_are_anchor_plus_multiples() -> None:
    """CAD-2."""
    rule = Cadence.parse({"unit": "hour", "every": 7})
    slots = [slot.at for slot in preview(rule, NOON, 50, anchor=NOON)]
    assert slots == [NOON + timedelta(hours=7 * k) for k in range(1, 51)]


def test_first_slot_is_the_anchor_and_none_lies_before() -> None:
    """CAD-2."""
    assert next_after(QUARTER, NOON - timedelta(days=9), anchor=NOON) == NOON
    assert latest_at(QUARTER, NOON, anchor=NOON) == NOON
    assert latest_at(QUARTER, NOON - timedelta(microseconds=1), anchor=NOON) is None
    assert not list(between(QUARTER, NOON - timedelta(days=9), NOON, anchor=NOON))


def test_anchor_is_cut_to_the_whole_minute() -> None:
    """CAD-2."""
    anchor = NOON + timedelta(seconds=59, microseconds=999_999)
    assert next_after(QUARTER, anchor, anchor=anchor) == NOON + timedelta(minutes=15)
    assert latest_at(QUARTER, anchor, anchor=anchor) == NOON


def test_anchor_of_the_rule_wins() -> None:
    """CAD-5."""
    rule = Cadence.parse({"unit": "minute", "every": 15, "anchor": "2026-11-29T11:58:00Z"})
    assert next_after(rule, NOON, anchor=NOON) == NOON + timedelta(minutes=13)


def test_without_an_anchor_the_grid_runs_through_1970_both_ways() -> None:
    assert next_after(QUARTER, NOON + timedelta(minutes=1)) == NOON + timedelta(minutes=15)
    before = datetime(1969, 12, 31, 23, 50, tzinfo=UTC)
    assert latest_at(QUARTER, before) == datetime(1969, 12, 31, 23, 45, tzinfo=UTC)


def test_zone_is_a_label_alone() -> None:
    """CAD-2: a change of the clock moves nothing, and is no note."""
    start = datetime(2026, 10, 25, 0, tzinfo=UTC)
    slots = preview(QUARTER, start, 8, anchor=start)
    assert [slot.at - start for slot in slots] == [timedelta(minutes=15 * k) for k in range(1, 9)]
    assert slots[0].local_time == "2026-10-25T02:15:00"
    assert [slot.offset for slot in slots] == ["+02:00"] * 3 + ["+01:00"] * 5
    assert {slot.note for slot in slots} == {None}


def test_count_is_arithmetic() -> None:
    """DSP-7 stands on it: a year of five-minute slots costs no walk."""
    rule = Cadence.parse({"unit": "minute", "every": 5})
    end = NOON + timedelta(days=3650)
    found = count_between(rule, NOON, end, anchor=NOON)
    assert found == SlotRange(NOON, end - timedelta(minutes=5), 3650 * 288)
    assert count_between(rule, NOON, NOON, anchor=NOON) is None
    assert count_between(rule, NOON - timedelta(days=2), NOON, anchor=NOON) is None
    assert count_between(rule, NOON + timedelta(seconds=1), NOON + timedelta(minutes=5), anchor=NOON) is None


def test_is_slot_is_exact_to_the_microsecond() -> None:
    assert is_slot(QUARTER, NOON, anchor=NOON)
    assert not is_slot(QUARTER, NOON + timedelta(microseconds=1), anchor=NOON)
    assert not is_slot(QUARTER, NOON + timedelta(minutes=5), anchor=NOON)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_range_of_datetime_is_never_left(zone: str) -> None:
    rule = Cadence.parse({"unit": "hour", "every": 1, "zone": zone})
    last = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert next_after(rule, last) is None
    assert next_after(rule, last - timedelta(minutes=1)) == last
    assert latest_at(rule, datetime.max.replace(tzinfo=UTC)) == last
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert latest_at(rule, first) == first
    assert next_after(rule, first) == first + timedelta(hours=1)
    assert count_between(rule, first, first) is None


def test_labels_beside_the_range_of_datetime() -> None:
    far_east = Cadence.parse({"unit": "hour", "every": 1, "zone": "Pacific/Kiritimati"})
    far_west = Cadence.parse({"unit": "hour", "every": 1, "zone": "Etc/GMT+12"})
    late, early = datetime(9999, 12, 31, 22, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
    assert preview(far_east, late, 9)[0].local_time == "10000-01-01T13:00:00"
    assert preview(far_west, early, 1)[0].local_time == "0000-12-31T13:00:00"
