"""A session as people read it: when its last word came, and the one or two messages of a turn (RUN-9)."""

from dataclasses import replace
from datetime import UTC, datetime

from gnomon.domain.session import Session, Turn, messages, to_json

MADE = datetime(2026, 11, 29, 9, tzinfo=UTC)
TURN = Turn("run_" + "0" * 20, "How many?", "Five.", 1_000_000, 2_500_000)
MESSAGE = "msg_" + "0" * 20


def test_a_session_says_when_its_last_message_came_or_that_none_did() -> None:
    empty = Session("ses_1", MADE, 0, None)
    assert to_json(empty) == {
        "id": "ses_1",
        "created_at": "2026-11-29T09:00:00Z",
        "turn_count": 0,
        "last_message_at": None,
    }
    spoken = to_json(replace(empty, turn_count=1, last_message_at=MADE.replace(hour=10)))
    assert (spoken["turn_count"], spoken["last_message_at"]) == (1, "2026-11-29T10:00:00Z")


def test_a_turn_is_the_query_and_the_answer_under_the_runs_own_message_id() -> None:
    """RUN-9: ``message_id`` of a run leads to its answer."""
    asked, answered = messages(TURN)
    assert asked == {
        "id": f"{MESSAGE}.query",
        "run_id": TURN.run_id,
        "role": "user",
        "content": "How many?",
        "created_at": "1970-01-01T00:00:01Z",
    }
    assert answered == {
        "id": MESSAGE,
        "run_id": TURN.run_id,
        "role": "assistant",
        "content": "Five.",
        "created_at": "1970-01-01T00:00:02.500000Z",
    }


def test_a_turn_without_an_answer_is_the_query_alone() -> None:
    assert [message["role"] for message in messages(replace(TURN, output=None, answered_at=None))] == ["user"]


def test_an_empty_answer_is_an_answer() -> None:
    assert [message["content"] for message in messages(replace(TURN, output=""))] == ["How many?", ""]
