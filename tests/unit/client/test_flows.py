"""What takes more than one request: what a lost answer turns out to have been (IDM-2, RUN-5a, BRD-3)."""

from typing import Any, TypeVar

import pytest

from gnomon.client import board, flows
from gnomon.client.board import Claim, Report
from gnomon.client.calls import Answer, Call
from gnomon.client.errors import ClientError, Conflict, Forbidden, Invalid, LeaseLost, refused
from gnomon.client.flows import Flow
from gnomon.client.lease import granted

T = TypeVar("T")
HELD = Claim({"id": "tsk_1", "title": "x"}, "pm-1", 7, granted(120, 0), verify_first=False)
STALE = {"code": "fence_stale", "detail": "Another one holds it."}


def played(flow: Flow[T], *answers: Answer | ClientError) -> tuple[list[Call], T]:
    """A flow against answers that are known beforehand: what it asked, and what came of it."""
    asked = [next(flow)]
    for answer in answers:
        try:
            asked.append(flow.throw(answer) if isinstance(answer, ClientError) else flow.send(answer))
        except StopIteration as end:
            return asked, end.value
    raise AssertionError(f"it asks for more: {asked[-1]}")


def conflict(*, doubtful: bool) -> ClientError:
    error = refused(409, STALE)
    error.doubtful = doubtful
    return error


def test_a_report_names_fence_and_instance() -> None:
    """BRD-3."""
    [call], _ = played(flows.report(HELD, Report("done", "all of it", {"n": 1})), Answer(200, {}))
    assert (call.method, call.path) == ("POST", "/tasks/tsk_1/report")
    assert call.body == {
        "fence": 7,
        "instance": "pm-1",
        "status": "done",
        "note": "all of it",
        "result": {"n": 1},
    }


def test_a_report_that_is_refused_is_a_lost_lease() -> None:
    """BRD-3."""
    with pytest.raises(LeaseLost) as raised:
        played(flows.report(HELD, Report("done")), conflict(doubtful=False))
    assert isinstance(raised.value.because, Conflict)
    assert raised.value.task_id == "tsk_1"


def test_a_report_whose_answer_was_lost_is_looked_up() -> None:
    """RUN-5a: the repeat is refused because the first one released the task."""
    shown = {"last_report": {"fence": 7, "status": "done"}}
    asked, _ = played(flows.report(HELD, Report("done")), conflict(doubtful=True), Answer(200, shown))
    assert [call.method for call in asked] == ["POST", "GET"]


@pytest.mark.parametrize(
    "last", [None, {"fence": 6, "status": "done"}, {"fence": 7, "status": "in_progress"}]
)
def test_a_report_that_did_not_land_is_a_lost_lease(last: Any) -> None:
    """RUN-5a."""
    with pytest.raises(LeaseLost):
        played(
            flows.report(HELD, Report("done")), conflict(doubtful=True), Answer(200, {"last_report": last})
        )


def test_a_report_that_says_something_odd_is_the_callers_affair() -> None:
    with pytest.raises(Invalid):
        played(flows.report(HELD, Report("done")), refused(422, {"code": "invalid"}))


def claim_answer(sent_at: float) -> Answer:
    item = {"task": {"id": "tsk_1"}, "fence": 7, "expires_at": "2026-11-30T12:02:00Z", "verify_first": True}
    return Answer(200, {"items": [item]}, {}, sent_at)


def test_a_claim_says_who_and_under_which_name() -> None:
    """RUN-5a: a claim whose answer was lost is asked for by its id."""
    [call], [claim] = played(flows.claim("pm", "pm-1", 1, 0, "clm-1"), claim_answer(5))
    assert call.body == {
        "role": "pm",
        "instance": "pm-1",
        "limit": 1,
        "wait_seconds": 0,
        "claim_id": "clm-1",
    }
    assert (claim.fence, claim.verify_first, claim.lease.granted_at) == (7, True, 5)


def test_a_claim_that_was_waited_for_is_renewed_before_it_is_handed_out() -> None:
    """BRD-2: how old it is, nobody knows here."""
    asked, [claim] = played(
        flows.claim("pm", "pm-1", 1, 30, "clm-1"), claim_answer(5), Answer(200, {}, {}, 33)
    )
    assert [call.path for call in asked] == ["/tasks/claim", "/tasks/tsk_1/renew"]
    assert claim.lease.granted_at == 33


def test_a_claim_that_could_not_be_renewed_is_as_old_as_it_can_be() -> None:
    """BRD-2: to drop it would leave it locked for nothing."""
    failed = refused(500, {"code": "internal"})
    _, [claim] = played(flows.claim("pm", "pm-1", 1, 30, "clm-1"), claim_answer(5), failed)
    assert claim.lease.granted_at == 5


def test_a_claim_that_was_waited_for_too_long_is_not_handed_out() -> None:
    """BRD-2."""
    _, claims = played(flows.claim("pm", "pm-1", 1, 30, "clm-1"), claim_answer(5), conflict(doubtful=False))
    assert claims == []


@pytest.mark.parametrize(
    ("answer", "existed"),
    [
        (Answer(201, {"id": "tsk_1"}), False),
        (Answer(200, {"id": "tsk_1"}), True),
        (Answer(201, {"id": "tsk_1"}, {"idempotent-replayed": "true"}), True),
        (Answer(201, {"id": "tsk_1"}, {"idempotent-replayed": "true"}, doubtful=True), False),
    ],
)
def test_a_task_is_told_from_one_that_existed(answer: Answer, *, existed: bool) -> None:
    """IDM-2: a repeat answers with what exists, marked as such; our own repeat made it."""
    [call], made = played(flows.create({"role": "pm", "title": "x", "body": None}), answer)
    assert call.body == {"role": "pm", "title": "x"}
    assert made == ({"id": "tsk_1"}, existed)


def test_the_key_that_was_checked_is_the_key_that_is_made() -> None:
    """IDM-3."""
    [call], made = played(flows.create_named({"title": "x"}, "k"), Answer(201, {"id": "tsk_1"}))
    assert call.body == {"title": "x", "dedup_key": "k"}
    assert made == ({"id": "tsk_1"}, False)
    with pytest.raises(ValueError, match="another dedup key"):
        next(flows.create_named({"title": "x", "dedup_key": "other"}, "k"))


def test_who_was_overtaken_gets_what_the_first_made() -> None:
    """IDM-2: two that find nothing, and write their texts differently."""
    reused = refused(422, {"code": "dedup_key_reused"})
    theirs = {"id": "tsk_1", "dedup_key": "k"}
    asked, made = played(flows.create_named({"title": "x"}, "k"), reused, Answer(200, {"items": [theirs]}))
    assert [call.path for call in asked] == ["/tasks", "/tasks"]
    assert made == (theirs, True)
    with pytest.raises(Invalid):
        played(flows.create_named({"title": "x"}, "k"), refused(422, {"code": "invalid"}))
    with pytest.raises(Invalid):
        played(flows.create_named({"title": "x"}, "k"), reused, Answer(200, {"items": []}))


def test_what_a_body_left_unsaid() -> None:
    """BRD-3: a failure is for a person, what a stopped worker had is given back."""
    assert board.unreported(None).status == "blocked"
    assert board.unreported(ValueError("odd")) == Report("blocked", "ValueError: odd")
    assert board.unreported(KeyError()) == Report("blocked", "KeyError")
    assert board.unreported(KeyboardInterrupt()).status == "backlog"


def test_only_a_refusal_of_the_server_itself_ends_a_lease() -> None:
    """BRD-2: a proxy that is out of order answers too."""
    assert board.is_gone(refused(409, STALE))
    assert board.is_gone(refused(404, {"code": "not_found"}))
    assert not board.is_gone(refused(404, "<html>"))
    assert not board.is_gone(Forbidden(403, {"code": "forbidden"}))
    assert not board.is_gone(refused(503, {"code": "unavailable"}))


def test_a_note_can_be_kept_by_every_server() -> None:
    """No database takes a NUL in a text, and no JSON half a surrogate pair."""
    assert board.excerpt("a\0b") == "a\ufffdb"
    assert board.excerpt("a\ud800b") == "a?b"


def test_a_long_note_keeps_its_end() -> None:
    assert board.excerpt("  short \n") == "short"
    assert board.excerpt("a" * 3_000 + "the reason") == "…" + "a" * 1_989 + "the reason"
