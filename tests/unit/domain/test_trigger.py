"""A trigger's life, row by row (JOB-3, JOB-4)."""

import pytest

from gnomon.domain.occurrence import Coalesced
from gnomon.domain.trigger import (
    ENDED,
    TRANSITIONS,
    Trigger,
    TriggerEvent,
    TriggerReason,
    TriggerStatus,
    after,
    to_json,
)
from support.databases import START

_S, _E = TriggerStatus, TriggerEvent
LAWFUL = {
    (_S.PENDING, _E.PUSH, _S.PUSHED),
    (_S.PENDING, _E.MISS, _S.MISSED),
    (_S.PUSHED, _E.TAKE_BACK, _S.PENDING),
    (_S.PUSHED, _E.ACKNOWLEDGE, _S.ACKNOWLEDGED),
    (_S.PUSHED, _E.SUCCEED, _S.SUCCEEDED),
    (_S.PUSHED, _E.FAIL, _S.FAILED),
    (_S.PUSHED, _E.LOSE, _S.FAILED),
    (_S.ACKNOWLEDGED, _E.SUCCEED, _S.SUCCEEDED),
    (_S.ACKNOWLEDGED, _E.FAIL, _S.FAILED),
    (_S.ACKNOWLEDGED, _E.LOSE, _S.FAILED),
}


@pytest.mark.parametrize("status", TriggerStatus)
@pytest.mark.parametrize("event", TriggerEvent)
def test_every_step_is_lawful_or_refused(status: TriggerStatus, event: TriggerEvent) -> None:
    """JOB-4: what was acknowledged is never taken back, and what ended stays ended."""
    allowed = {(before, what): then for before, what, then in LAWFUL}
    assert after(status, event) == allowed.get((status, event))


def test_what_has_ended_stays_so() -> None:
    assert {status for status, _ in TRANSITIONS} == set(TriggerStatus) - ENDED


def test_every_end_can_be_reached() -> None:
    assert set(TRANSITIONS.values()) >= ENDED


def test_a_trigger_is_read_with_the_slots_that_were_missed_before_it() -> None:
    """JOB-3."""
    older = Coalesced(START, START, 2)
    missed = TriggerReason.MISSED
    trigger = Trigger(
        "trg_1", "job_1", START, "key", None, _S.MISSED, missed, None, older, 0, None, None, START, START
    )
    found = to_json(trigger)
    at = "2026-11-29T09:00:00Z"
    assert found["coalesced"] == {"first": at, "last": at, "count": 2}
    assert (found["status"], found["reason"], found["finished_at"]) == ("missed", "missed", at)
