"""The delay that spreads slots without moving them (CAD-10)."""

import pytest

from gnomon.cadence import jitter

SECOND = 1_000_000


def test_delay_is_the_same_for_the_same_schedule_and_slot() -> None:
    """CAD-10."""
    assert jitter("sch_1", 5 * SECOND, 60, None) == jitter("sch_1", 5 * SECOND, 60, None) == 56_266_696


def test_delay_differs_between_schedules_and_slots() -> None:
    """CAD-10."""
    by_schedule = {jitter(f"sch_{number}", 0, 3600, None) for number in range(200)}
    by_slot = {jitter("sch_1", number * 900 * SECOND, 3600, None) for number in range(200)}
    assert len(by_schedule) == len(by_slot) == 200
    assert max(by_schedule) > 3000 * SECOND
    assert min(by_schedule) < 600 * SECOND


@pytest.mark.parametrize("room", [1, 2, 300 * SECOND, 3600 * SECOND])
def test_delay_never_reaches_the_next_slot(room: int) -> None:
    """CAD-10."""
    for slot in range(300):
        assert 0 <= jitter("sch_1", slot * SECOND, 1800, slot * SECOND + room) < min(room, 1800 * SECOND + 1)


def test_no_room_is_no_delay() -> None:
    """CAD-10."""
    assert jitter("sch_1", 0, 0, None) == 0
    assert jitter("sch_1", 7, 60, 7) == 0
    assert jitter("sch_1", 7, 60, 3) == 0


def test_any_key_will_do_and_negative_jitter_will_not() -> None:
    assert jitter("\ud800", 0, 60, None) >= 0
    with pytest.raises(ValueError, match="negative"):
        jitter("sch_1", 0, -1, None)
