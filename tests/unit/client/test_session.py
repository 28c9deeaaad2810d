"""What an instance knows between its connections: once for each trigger, its answer until it was heard (JOB-4, JOB-5)."""

from typing import Any

import pytest

from gnomon.client.frames import Outcome, Trigger
from gnomon.client.session import UNSURE_SECONDS, Complaint, Deed, End, Send, Session, Start, Stop, Work
from gnomon.domain.invocation import Usage

PUSH = {
    "type": "job_trigger",
    "trigger_id": "trg_1",
    "job": "digest",
    "nominal_at": "2026-11-30T09:00:00Z",
    "dedup_key": "digest-2026-11-30",
    "payload": {"depth": 2},
    "redelivered": False,
}
AGAIN = {**PUSH, "redelivered": True}
ACK = Send({"type": "ack", "trigger_id": "trg_1"})
RESULT = Send({"type": "result", "trigger_id": "trg_1", "status": "succeeded", "note": "done"})
DONE = Outcome("succeeded", "done")


def run(fence: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "type": "run_trigger",
        "run_id": "run_1",
        "attempt": 1,
        "fence": fence,
        "idempotency_key": "run_1",
        "query": "how?",
        "deadline": "2026-11-30T09:05:00Z",
        **more,
    }


@pytest.fixture
def session() -> Session:
    made = Session("pm", "pm-1", 2, "test")
    made.welcomed(0)
    return made


def started(deeds: list[Deed]) -> Work:
    [work] = [deed.work for deed in deeds if isinstance(deed, Start)]
    return work


def test_a_push_is_acknowledged_before_it_is_begun(session: Session) -> None:
    """JOB-4: who begins before it says so can be overtaken."""
    ack, start = session.heard(PUSH, 0)
    assert ack == ACK
    assert isinstance(start, Start)
    trigger = start.work.subject
    assert isinstance(trigger, Trigger)
    assert (trigger.id, trigger.job, trigger.dedup_key) == ("trg_1", "digest", "digest-2026-11-30")
    assert trigger.payload == {"depth": 2}


def test_a_push_that_is_known_is_not_begun_again(session: Session) -> None:
    """JOB-4: the same trigger, however often it is pushed."""
    session.heard(PUSH, 0)
    assert session.heard(AGAIN, 1) == [ACK]


def test_a_push_that_was_answered_is_answered_again(session: Session) -> None:
    """JOB-4."""
    work = started(session.heard(PUSH, 0))
    assert session.ended(work, DONE, 1) == [RESULT]
    assert session.heard(AGAIN, 500) == [ACK, RESULT]


def test_an_acknowledgement_that_did_not_get_out_begins_nothing(session: Session) -> None:
    """JOB-4: it is pushed again, here or elsewhere."""
    work = started(session.heard(PUSH, 0))
    session.unsent(work)
    assert session.in_flight == []
    assert started(session.heard(AGAIN, 1)).key == "trg_1"


def test_a_hello_tells_what_is_in_flight_and_what_was_not_said(session: Session) -> None:
    """JOB-5: a reconnecting instance is the same instance, and keeps its work."""
    first = started(session.heard(PUSH, 0))
    second = started(session.heard({**PUSH, "trigger_id": "trg_2"}, 0))
    session.disconnected()
    assert session.ended(first, DONE, 1) == []
    hello = session.hello()
    assert (hello["role"], hello["instance"], hello["max_in_flight"]) == ("pm", "pm-1", 2)
    assert hello["in_flight"] == [{"trigger_id": "trg_2"}, {"trigger_id": "trg_1"}]
    assert session.welcomed(2) == [RESULT]
    assert session.in_flight == [second]
    session.heard(run(), 3)
    assert session.hello()["in_flight"] == [{"trigger_id": "trg_2"}, {"run_id": "run_1", "fence": 3}]


def test_a_result_that_may_have_been_lost_with_its_connection_is_said_again(session: Session) -> None:
    work = started(session.heard(PUSH, 0))
    session.ended(work, DONE, 100)
    session.disconnected()
    assert session.welcomed(100 + UNSURE_SECONDS - 1) == [RESULT]
    session.disconnected()
    assert session.welcomed(500) == []


def test_a_cancel_stops_the_work_and_its_end_is_told(session: Session) -> None:
    """RUN-10."""
    work = started(session.heard(run(), 0))
    assert session.heard({"type": "cancel", "run_id": "run_1", "fence": 3}, 1) == [End(work, Stop.CANCELLED)]
    [told] = session.ended(work, Outcome("cancelled", "It was cancelled."), 2)
    assert isinstance(told, Send)
    assert told.frame["status"] == "cancelled"


def test_a_revoke_stops_the_work_and_nothing_is_told(session: Session) -> None:
    """RUN-6: it is somebody else's now."""
    work = started(session.heard(run(), 0))
    assert session.heard({"type": "revoke", "run_id": "run_1", "fence": 3}, 1) == [End(work, Stop.REVOKED)]
    assert session.ended(work, DONE, 2) == []
    assert session.progress(work, "still here") == []
    trigger = started(session.heard(PUSH, 2))
    assert session.heard({"type": "revoke", "trigger_id": "trg_1"}, 3) == [End(trigger, Stop.REVOKED)]


def test_an_instance_that_was_given_up_stops_its_runs_and_no_trigger(session: Session) -> None:
    """RUN-5: a run may be another's by now, a trigger that was acknowledged never is (JOB-4)."""
    trigger, work = started(session.heard(PUSH, 0)), started(session.heard(run(), 0))
    session.disconnected()
    assert session.forlorn() == [End(work, Stop.REVOKED)]
    assert session.in_flight == [trigger]
    assert session.ended(work, DONE, 1) == []
    assert session.hello()["in_flight"] == [{"trigger_id": "trg_1"}]


def test_a_stop_for_another_fence_or_for_nothing_does_nothing(session: Session) -> None:
    session.heard(run(fence=4), 0)
    assert session.heard({"type": "cancel", "run_id": "run_1", "fence": 3}, 1) == []
    assert session.heard({"type": "revoke", "run_id": "run_2", "fence": 3}, 1) == []
    assert session.heard({"type": "cancel", "trigger_id": "trg_9"}, 1) == []


def test_the_next_attempt_of_a_run_takes_its_place(session: Session) -> None:
    """RUN-6: the fence decides, whatever came first."""
    old = started(session.heard(run(fence=3), 0))
    end, ack, start = session.heard(run(fence=4), 1)
    assert end == End(old, Stop.REVOKED)
    assert ack == Send({"type": "run_ack", "run_id": "run_1", "fence": 4})
    assert isinstance(start, Start)
    assert session.ended(old, DONE, 2) == [], "the former attempt says nothing"
    assert session.heard(run(fence=3), 3) == [], "a push that was overtaken begins nothing"
    session.ended(start.work, DONE, 4)
    assert session.heard(run(fence=3), 5) == []
    assert started(session.heard(run(fence=5), 6)).fence == 5


def test_progress_and_a_result_carry_the_fence(session: Session) -> None:
    """RUN-6."""
    work = started(session.heard(run(), 0))
    assert session.progress(work, "half") == [
        Send({"type": "run_progress", "run_id": "run_1", "fence": 3, "text": "half"})
    ]
    [told] = session.ended(work, Outcome("succeeded", "42"), 1)
    assert told == Send(
        {"type": "run_result", "run_id": "run_1", "fence": 3, "status": "succeeded", "output": "42"}
    )


def test_what_is_too_long_for_a_frame_is_told_or_cut(session: Session) -> None:
    work = started(session.heard(run(), 0))
    [long] = session.progress(work, "x" * 5_000)
    assert isinstance(long, Send)
    assert len(long.frame["text"]) == 2_000
    for number, output in enumerate(("x" * 1_000_001, "ö" * 600_000, "\1" * 300_000)):
        work = started(session.heard(run(run_id=f"run_long_{number}"), 1))
        [told] = session.ended(work, Outcome("succeeded", output), 1)
        assert isinstance(told, Send)
        assert told.frame["status"] == "failed"
        assert told.frame["error"].startswith("The output is too large for a frame")
    trigger = started(session.heard(PUSH, 2))
    [told] = session.ended(trigger, Outcome("failed", "x" * 20_000 + "why"), 3)
    assert isinstance(told, Send)
    assert len(told.frame["note"]) == 10_000
    assert told.frame["note"].endswith("xwhy")


def test_a_failure_says_whether_to_try_again(session: Session) -> None:
    work = started(session.heard(run(), 0))
    spent = Usage(model_calls=2, cost=0.5)
    [told] = session.ended(work, Outcome("failed", "busy", spent, is_retryable=True), 1)
    assert isinstance(told, Send)
    assert told.frame["retryable"] is True
    assert told.frame["usage"] == {"model_calls": 2, "input_tokens": 0, "output_tokens": 0, "cost": 0.5}


def test_there_is_no_progress_without_a_connection(session: Session) -> None:
    work = started(session.heard(run(), 0))
    session.disconnected()
    assert session.progress(work, "half") == []


def test_a_drain_is_said_once_and_again_on_every_new_connection(session: Session) -> None:
    """JOB-5."""
    assert session.drain() == [Send({"type": "drain"})]
    assert session.drain() == []
    session.disconnected()
    assert session.welcomed(1) == [Send({"type": "drain"})]


def test_it_is_done_when_all_is_said(session: Session) -> None:
    assert session.is_done
    work = started(session.heard(PUSH, 0))
    assert not session.is_done
    session.disconnected()
    session.ended(work, DONE, 1)
    assert not session.is_done
    session.welcomed(2)
    assert session.is_done


def test_what_is_unknown_is_passed_over(session: Session) -> None:
    assert session.heard({"type": "confetti"}, 0) == []
    assert session.heard({}, 0) == []
    assert session.heard({"type": "error", "code": "odd", "detail": "Odd."}, 0) == [Complaint("odd", "Odd.")]
    assert started(session.heard({**PUSH, "colour": "red"}, 0)).key == "trg_1"


def test_what_is_remembered_is_bounded(session: Session) -> None:
    for number in range(1_100):
        session.ended(started(session.heard({**PUSH, "trigger_id": f"trg_{number}"}, 0)), DONE, 0)
    session.disconnected()
    assert len(session.welcomed(1)) == 1_000
