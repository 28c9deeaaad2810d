"""The failure streak: what moves it, when it warns, when it stops the schedule (SCH-8, SCH-9; casebook aut-01)."""

import pytest

from gnomon.domain.run import RunStatus
from gnomon.domain.streak import moved, stops, warns


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (RunStatus.FAILED, 4),
        (RunStatus.TIMED_OUT, 4),
        (RunStatus.LOST, 4),
        (RunStatus.SUCCEEDED, 0),
        (RunStatus.CANCELLED, 3),
        (RunStatus.QUEUED, 3),
        (RunStatus.RUNNING, 3),
    ],
)
def test_each_outcome_moves_a_streak_of_three(outcome: RunStatus, expected: int) -> None:
    """SCH-8: a cancel moves the streak in neither direction."""
    assert moved(3, outcome) == expected


def replay(outcomes: list[RunStatus | None], limit: int = 5) -> tuple[int, int | None, list[int]]:
    """The streak at the end, after which outcome it stopped, after which it warned; ``None`` is a skipped slot."""
    streak, stopped, warned = 0, None, []
    for index, outcome in enumerate(outcomes):
        if outcome is None:  # SCH-9: a skip never reached a target
            continue
        before, streak = streak, moved(streak, outcome)
        if streak > before and warns(streak, limit):
            warned.append(index)
        if stopped is None and stops(streak, limit):
            stopped = index
    return streak, stopped, warned


def test_skips_in_between_leave_the_streak_as_it_is() -> None:
    """Casebook aut-01, SCH-9: F S F S F S F S F stops at the fifth F."""
    failed, skipped = RunStatus.FAILED, None
    outcomes = [failed, skipped, failed, skipped, failed, skipped, failed, skipped, failed]
    assert replay(outcomes) == (5, 8, [4])


def test_a_success_starts_the_count_anew() -> None:
    """Casebook aut-01, SCH-8: F F F F ok F ends with a streak of one."""
    outcomes: list[RunStatus | None] = [*[RunStatus.FAILED] * 4, RunStatus.SUCCEEDED, RunStatus.FAILED]
    assert replay(outcomes) == (1, None, [2])


@pytest.mark.parametrize(
    ("limit", "warning_at"),
    [(1, None), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (10, 5), (100, 50)],
)
def test_it_warns_once_at_half_of_the_limit_rounded_up(limit: int, warning_at: int | None) -> None:
    """SCH-8: a limit of one leaves no room for a warning."""
    found = [streak for streak in range(limit + 3) if warns(streak, limit)]
    assert found == ([] if warning_at is None else [warning_at])


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_it_stops_at_the_limit_and_beyond(limit: int) -> None:
    """SCH-8."""
    assert [stops(streak, limit) for streak in (limit - 1, limit, limit + 1)] == [False, True, True]
