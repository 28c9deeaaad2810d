"""A trigger's life, row by row (JOB-3, JOB-4)."""

import pytest

from gnomon.domain.trigger import ENDED, TRANSITIONS, TriggerEvent, TriggerStatus, after

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
