"""The clock guard by itself: what it takes for a jump, and from when on the living have been given their time (RUN-5b)."""

import pytest

from gnomon.services.clock_guard import ClockGuard, Jump
from gnomon.stores.processes import Reading
from gnomon.testing.clock import FrozenClock
from support.databases import START

SECOND = 1_000_000
STALL = 240.0


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def guard(clock: FrozenClock) -> ClockGuard:
    return ClockGuard(clock, STALL)


def reading(clock: FrozenClock) -> Reading:
    """What a heartbeat of this machine writes at this moment."""
    return Reading(clock.micros(), round(clock.monotonic() * SECOND))


def told(jumps: list[Jump]) -> list[tuple[int, bool]]:
    return [(round(jump.seconds), jump.stalled) for jump in jumps]


def test_time_that_passes_is_no_jump(clock: FrozenClock, guard: ClockGuard) -> None:
    for _ in range(50):
        assert guard.observe(clock.micros()) == []
        clock.advance(60)
    assert guard.calm_us() is None


@pytest.mark.parametrize("seconds", [600, -600, 6, -6])
def test_a_jump_is_told_once_and_calm_counts_from_it(
    clock: FrozenClock, guard: ClockGuard, seconds: int
) -> None:
    """RUN-5b."""
    guard.observe(clock.micros())
    clock.advance(60)
    clock.jump(seconds)
    assert told(guard.observe(clock.micros())) == [(seconds, False)]
    clock.advance(10)
    assert guard.observe(clock.micros()) == []
    assert guard.calm_us() == 10 * SECOND


def test_a_process_that_stood_still_before_its_first_tick_is_as_careful(
    clock: FrozenClock, guard: ClockGuard
) -> None:
    """Found by the simulator: the clock was set back and forth meanwhile, and every heartbeat was of after that."""
    guard.began()
    clock.advance(STALL + 1)
    assert guard.observe(clock.micros(), [reading(clock)]) == [Jump(STALL + 1, stalled=True)]
    assert guard.calm_us() == 0


def test_a_process_that_stood_still_is_as_careful(clock: FrozenClock, guard: ClockGuard) -> None:
    guard.observe(clock.micros())
    clock.advance(STALL + 1)
    assert guard.observe(clock.micros()) == [Jump(STALL + 1, stalled=True)]
    assert guard.calm_us() == 0


def test_a_heartbeat_sees_what_a_tick_would_be_too_late_for(clock: FrozenClock, guard: ClockGuard) -> None:
    """RUN-5b: forward and back between two sweeps; both are told, and the calm begins with the second."""
    guard.observe(clock.micros())
    for seconds in (600, -600):
        clock.advance(10)
        clock.jump(seconds)
        guard.note(clock.micros(), clock.monotonic())
    clock.advance(5)
    assert guard.calm_us() == 5 * SECOND
    assert told(guard.observe(clock.micros())) == [(600, False), (-600, False)]
    assert guard.observe(clock.micros()) == []


def test_a_heartbeat_whose_answer_was_late_says_nothing(clock: FrozenClock, guard: ClockGuard) -> None:
    """It is not known when the database read its clock: a slow network is no jump."""
    guard.observe(clock.micros())
    asked_at, read = clock.monotonic(), clock.micros()
    clock.advance(30)
    guard.note(read, asked_at)
    assert guard.observe(clock.micros()) == []


def test_a_process_born_after_a_jump_has_a_reading_from_before_it(clock: FrozenClock) -> None:
    """RUN-5b: the heartbeat of whoever was there."""
    before = reading(clock)
    clock.advance(20)
    clock.jump(600)
    clock.advance(1)
    born = ClockGuard(clock, STALL)
    assert told(born.observe(clock.micros(), [reading(clock), before])) == [(600, False)]
    assert born.calm_us() == 0
    clock.advance(60)
    assert born.observe(clock.micros(), [reading(clock), before]) == [], "an old row is no new jump"
    assert born.calm_us() == 60 * SECOND


def test_a_jump_that_others_saw_is_calm_since_then_and_not_told_again(clock: FrozenClock) -> None:
    """RUN-7: whoever is born long after a jump does not wait once more."""
    before = reading(clock)
    clock.jump(-600)
    clock.advance(30)
    after = reading(clock)
    clock.advance(5_000)
    born = ClockGuard(clock, STALL)
    clock.advance(1)
    assert born.observe(clock.micros(), [reading(clock), after, before]) == []
    assert born.calm_us() == 5_001 * SECOND


def test_a_heartbeat_written_between_two_jumps_betrays_them(clock: FrozenClock, guard: ClockGuard) -> None:
    """RUN-5b: jumps that undo each other, and this process was not looking."""
    guard.observe(clock.micros())
    clock.advance(5)
    clock.jump(-600)
    between = reading(clock)
    clock.jump(600)
    clock.advance(2)
    assert told(guard.observe(clock.micros(), [between])) == [(600, False)]
    assert guard.calm_us() == 0


def test_a_clock_that_is_pulled_for_days_has_not_jumped(clock: FrozenClock) -> None:
    """Half a millisecond a second, as a time server may pull it: 43 s in a day."""
    long_ago = reading(clock)
    clock.advance(86_400)
    clock.jump(43)
    born = ClockGuard(clock, STALL)
    assert born.observe(clock.micros(), [reading(clock), long_ago]) == []
    assert born.calm_us() is None
