"""The body, the headers and the signature of a request, and the headers a user may add (RUN-6, TGT-1)."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from gnomon.domain.invocation import Failing, Message, TargetFailure
from gnomon.runtimes.sending import body_of, check_headers, our_headers
from support.targets import an_invocation

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = datetime(2026, 11, 29, 9, 0, 0, 987_654, tzinfo=UTC)


def test_the_body_is_the_contract() -> None:
    invocation = an_invocation(
        "ask",
        dedup_key="d",
        nominal_fire_at=datetime(2026, 11, 29, 9, 0, tzinfo=UTC),
        tenant="acme",
        session_id="ses_1",
        messages=(Message("user", "hi"), Message("assistant", "yes")),
    )
    assert json.loads(body_of(invocation)) == {
        "run_id": "run_01",
        "attempt": 1,
        "fence": 7,
        "idempotency_key": "idem-1",
        "dedup_key": "d",
        "nominal_fire_at": "2026-11-29T09:00:00Z",
        "deadline": "2026-11-29T09:05:00Z",
        "tenant": "acme",
        "query": "ask",
        "session_id": "ses_1",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}],
    }


def test_the_id_is_stable_over_tries_and_the_key_and_fence_go_along_run_6() -> None:
    first, second = an_invocation(attempt=1, fence=7), an_invocation(attempt=2, fence=8)
    headers = [our_headers(i, body_of(i), SECRET, NOW) for i in (first, second)]
    assert headers[0]["webhook-id"] == headers[1]["webhook-id"]
    assert headers[0]["idempotency-key"] == headers[1]["idempotency-key"] == "idem-1"
    assert [h["gnomon-fence"] for h in headers] == ["7", "8"]
    assert headers[0]["webhook-signature"] != headers[1]["webhook-signature"]


def test_the_signature_is_made_in_utc_whatever_zone_the_clock_has() -> None:
    body = body_of(an_invocation())
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    headers = our_headers(an_invocation(), body, SECRET, there)
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    at = datetime(2026, 11, 29, 9, 0, 0, tzinfo=UTC)
    assert headers["webhook-signature"] == Webhook(SECRET).sign("run_01", at, body.decode())


def test_without_a_secret_there_is_no_signature() -> None:
    assert "webhook-signature" not in our_headers(an_invocation(), b"{}", None, NOW)


@pytest.mark.parametrize("secret", ["whsec_", "", "whsec_!!!!", "whsec_ä"])
def test_a_broken_secret_is_the_targets_fault(secret: str) -> None:
    with pytest.raises(TargetFailure) as caught:
        our_headers(an_invocation(), b"{}", secret, NOW)
    assert caught.value.code is Failing.TARGET_INVALID
    assert not caught.value.retryable
    assert secret not in caught.value.message or not secret


def test_an_idempotency_key_never_splits_a_header() -> None:
    for key, sent in (
        ("a b", "a b"),
        ("a\r\nHost: x", "a%0D%0AHost%3A%20x"),
        ("ü", "%C3%BC"),
        ("50%", "50%"),
    ):
        headers = our_headers(an_invocation(idempotency_key=key), b"{}", None, NOW)
        assert headers["idempotency-key"] == sent


def test_a_malformed_traceparent_is_not_passed_on() -> None:
    good = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert our_headers(an_invocation(traceparent=good), b"{}", None, NOW)["traceparent"] == good
    assert "traceparent" not in our_headers(an_invocation(traceparent="x\r\ny"), b"{}", None, NOW)


@given(st.text(alphabet=st.characters(), max_size=50))
def test_any_query_can_be_sent_and_signed(query: str) -> None:
    body = body_of(an_invocation(query))
    assert json.loads(body)["query"] == query
    assert our_headers(an_invocation(), body, SECRET, NOW)["webhook-signature"]


def test_a_user_may_add_headers() -> None:
    assert (
        check_headers({"Authorization": "Bearer x", "X-Team": "a b\tc", "X-Empty": "", "Accept": "*/*"}) == []
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Idempotency-Key", "mine"),
        ("gnomon-fence", "0"),
        ("Gnomon-Anything", "0"),
        ("WEBHOOK-SIGNATURE", "v1,x"),
        ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("Host", "evil.example"),
        ("traceparent", "x"),
        ("X-A", "a\r\nHost: evil"),
        ("X-A", "a\nb"),
        ("X-A", "a\0b"),
        ("X-A", " a"),
        ("X-A", "ü"),
        ("X-A", "a" * 8_001),
        ("X A", "a"),
        ("", "a"),
        ("X:A", "a"),
        ("X\r\nY", "a"),
    ],
)
def test_ours_and_unsound_headers_are_refused(name: str, value: str) -> None:
    assert [found for found, _ in check_headers({name: value})] == [name]
