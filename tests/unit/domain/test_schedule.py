"""A schedule's statuses and events, row by row and every pair that is not in the table (SCH-2), and its defaults."""

import itertools

import pytest

from gnomon.cadence import Cadence
from gnomon.domain import agent, schedule
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.schedule import (
    TRANSITIONS,
    CatchUp,
    Definition,
    OnLost,
    Overlap,
    ScheduleEvent,
    ScheduleStatus,
    SessionMode,
    after,
)
from gnomon.domain.target import Target, TargetKind

TABLE = {
    "active": {"pause": "paused", "exhaust": "completed", "fail_out": "error", "lose_target": "disabled"},
    "paused": {"pause": "paused", "resume": "active", "exhaust": "completed", "lose_target": "disabled"},
    "error": {"pause": "paused", "resume": "active", "exhaust": "completed", "lose_target": "disabled"},
    "completed": {"revise": "active", "lose_target": "disabled"},
    "disabled": {"resume": "active", "exhaust": "completed"},
}


@pytest.mark.parametrize(("status", "event"), list(itertools.product(ScheduleStatus, ScheduleEvent)))
def test_each_status_under_each_event(status: ScheduleStatus, event: ScheduleEvent) -> None:
    """SCH-2: what is not in the table is refused."""
    expected = TABLE[status.value].get(event.value)
    assert after(status, event) == (None if expected is None else ScheduleStatus(expected))


def test_the_table_holds_nothing_else() -> None:
    """SCH-2."""
    assert len(TRANSITIONS) == sum(len(row) for row in TABLE.values())
    assert {status.value for status in ScheduleStatus} == set(TABLE)


def test_only_active_fails_out_and_a_finished_schedule_comes_back_by_an_edit_alone() -> None:
    """SCH-2, SCH-8."""
    assert [s for s in ScheduleStatus if after(s, ScheduleEvent.FAIL_OUT)] == [ScheduleStatus.ACTIVE]
    back = [e for e in ScheduleEvent if after(ScheduleStatus.COMPLETED, e) is ScheduleStatus.ACTIVE]
    assert back == [ScheduleEvent.REVISE]


def test_the_defaults() -> None:
    """SCH-14."""
    cadence = Cadence.parse({"unit": "hour"})
    made = Definition("Nightly", Target(TargetKind.AGENT, "agt_1"), cadence)
    assert (made.session_mode, made.overlap, made.catch_up, made.on_lost) == (
        SessionMode.FRESH,
        Overlap.SKIP,
        CatchUp.LATEST,
        OnLost.FAIL,
    )
    assert (made.timeout_seconds, made.failure_limit, made.jitter_seconds) == (300, 5, 0)
    assert made.misfire_grace_seconds is None
    assert made.retry == RetryPolicy(max_attempts=1, backoff_seconds=10, backoff_max_seconds=600)


def test_the_ranges() -> None:
    """SCH-14."""
    assert schedule.FAILURE_LIMIT == (1, 100)
    assert agent.TIMEOUT_SECONDS == (1, 86_400)
