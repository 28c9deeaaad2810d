"""A call and its repeats: what may be sent again, how long to wait, what the last outcome becomes (IDM-2)."""

from datetime import UTC, datetime, timedelta

import pytest

from gnomon.client.backoff import Backoff
from gnomon.client.calls import Answer, Attempts, Call, Unanswered, new_key, post, retry_after
from gnomon.client.errors import Conflict, RateLimited, ServerFault, Unreachable

GET = Call("GET", "/tasks/tsk_1")
PATCH = Call("PATCH", "/tasks/tsk_1", {"title": "x"})
POST = post("/tasks", {"title": "x"})
NOT_SENT = Unanswered("connection refused", sent=False)
LOST = Unanswered("the connection broke", sent=True)


def attempts(call: Call, patience: float = 30) -> Attempts:
    return Attempts(call, 0, patience, Backoff())


def test_every_post_has_a_key_of_its_own_and_keeps_it() -> None:
    """IDM-2: all repeats of one call are the same request."""
    assert POST.headers["Idempotency-Key"] == POST.key
    assert post("/tasks", {}).key != post("/tasks", {}).key
    assert post("/tasks", {}, key="mine").headers == {"Idempotency-Key": "mine"}
    assert len({new_key() for _ in range(100)}) == 100


@pytest.mark.parametrize("call", [GET, PATCH, POST])
@pytest.mark.parametrize(
    "outcome", [NOT_SENT, Answer(503, None), Answer(429, None), Answer(425, None)], ids=str
)
def test_what_took_no_effect_is_sent_again(call: Call, outcome: Answer | Unanswered) -> None:
    assert attempts(call).pause_after(outcome, 0, 0.5) is not None


@pytest.mark.parametrize("outcome", [LOST, Answer(502, None), Answer(504, None)], ids=str)
def test_what_may_have_taken_effect_is_sent_again_only_where_that_is_safe(
    outcome: Answer | Unanswered,
) -> None:
    """IDM-2: a write whose answer was lost is repeated under its key, or not at all."""
    assert attempts(GET).pause_after(outcome, 0, 0.5) is not None
    assert attempts(POST).pause_after(outcome, 0, 0.5) is not None
    assert attempts(PATCH).pause_after(outcome, 0, 0.5) is None


@pytest.mark.parametrize("status", [200, 201, 400, 401, 403, 404, 409, 412, 422, 500])
def test_an_answer_that_says_something_is_the_last(status: int) -> None:
    assert attempts(POST).pause_after(Answer(status, {"code": "fence_stale"}), 0, 0.5) is None


def test_a_first_request_that_still_goes_on_is_waited_for() -> None:
    busy = Answer(409, {"code": "idempotency_key_in_use"}, {"retry-after": "1"})
    pause = attempts(POST).pause_after(busy, 0, 0.5)
    assert pause is not None
    assert pause >= 1


def test_patience_ends() -> None:
    tries = attempts(GET, patience=10)
    assert tries.pause_after(NOT_SENT, 9, 0.5) is not None
    assert tries.pause_after(NOT_SENT, 10, 0.5) is None
    assert attempts(GET, patience=10).pause_after(Answer(429, None, {"retry-after": "11"}), 0, 0) is None


def test_pauses_grow_up_to_a_bound_and_jump_about() -> None:
    backoff = Backoff(first_seconds=1, longest_seconds=10)
    assert [backoff.pause(failures, 1) for failures in (1, 2, 3, 4, 5, 5_000)] == [1, 2, 4, 8, 10, 10]
    assert backoff.pause(4, 0) == 0
    assert backoff.pause(4, 0.25) == 2


NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("7", 7),
        (" 7 ", 7),
        ("Mon, 30 Nov 2026 12:00:05 GMT", 5),
        ("Mon, 30 Nov 2026 11:59:00 GMT", 0),
        ("soon", 0),
        ("-3", 0),
        ("", 0),
    ],
)
def test_a_retry_after_is_read(header: str | None, seconds: float) -> None:
    assert retry_after(header, NOON) == seconds


def test_the_date_of_a_retry_after_needs_a_clock() -> None:
    assert retry_after("Mon, 30 Nov 2026 12:00:05 GMT", None) == 0
    assert retry_after("Mon, 30 Nov 2026 12:00:05 GMT", NOON - timedelta(seconds=1)) == 6


def test_the_end_is_an_answer_that_began_with_the_first_try() -> None:
    """RUN-5: what an answer grants began when it was first asked for."""
    tries = Attempts(POST, 100, 30, Backoff())
    tries.pause_after(LOST, 101, 0.5)
    end = tries.end(Answer(200, {"items": []}), "there")
    assert isinstance(end, Answer)
    assert (end.sent_at, end.doubtful) == (100, True)


def test_the_end_is_the_error_to_raise() -> None:
    problem = {"status": 409, "code": "fence_stale", "detail": "Too late.", "errors": [], "request_id": "r"}
    error = attempts(POST).end(Answer(409, problem), "there")
    assert isinstance(error, Conflict)
    assert (error.code, error.detail, error.doubtful) == ("fence_stale", "Too late.", False)
    assert isinstance(attempts(POST).end(Answer(429, None), "there"), RateLimited)
    assert isinstance(attempts(POST).end(Answer(503, "<html>"), "there"), ServerFault)
    unreachable = attempts(POST).end(NOT_SENT, "http://there")
    assert str(unreachable) == "http://there can't be reached: connection refused."
    assert isinstance(unreachable, Unreachable)
    assert not unreachable.doubtful


def test_a_refusal_after_a_lost_answer_is_in_doubt() -> None:
    """RUN-5a."""
    tries = attempts(POST)
    tries.pause_after(LOST, 0, 0.5)
    error = tries.end(Answer(409, {"code": "fence_stale"}), "there")
    assert isinstance(error, Conflict)
    assert error.doubtful


def test_faults_are_told_field_by_field() -> None:
    body = {
        "detail": "2 fields are wrong.",
        "code": "invalid",
        "errors": [{"field": "a", "message": "is odd"}],
    }
    error = attempts(POST).end(Answer(422, body), "there")
    assert str(error) == "2 fields are wrong. a: is odd (invalid)"
