"""The http runtime against real sockets: what is sent, what each answer means, what is bounded (TGT-1, TGT-2, TGT-5)."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from gnomon.adapters.clock import SystemClock
from gnomon.domain.agent import HttpRuntime
from gnomon.domain.invocation import Deferred, Failing, Limits, Result, TargetFailure, Usage
from gnomon.ports.clock import Clock
from gnomon.runtimes.http import HttpTargets
from gnomon.testing.clock import FrozenClock
from support.targets import Answer, Heard, Server, an_invocation, says, serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)
JSON = "application/json"


async def ask(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    secret: str | None = None,
    heard: Heard | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
) -> Result | Deferred:
    targets = HttpTargets(clock or FrozenClock(NOW), allow_private=True)
    invocation = an_invocation(
        limits=limits or Limits(), traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    try:
        return await targets.invoke(HttpRuntime(url, headers or {}), secret, invocation, heard or Heard())
    finally:
        await targets.close()


def against(
    answer: Answer, limits: Limits | None = None, then: Callable[[Server], None] | None = None
) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        async with serving(answer) as server:
            found = await ask(server.url, limits=limits)
            if then is not None:
                then(server)
            return found

    return asyncio.run(scenario())


def failing(answer: Answer, limits: Limits | None = None) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        against(answer, limits)
    return caught.value


def test_the_request_is_the_contract_and_its_signature_verifies_tgt_1_run_6() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK", b"fine", Content_Type="text/plain")) as server:
            heard = Heard()
            result = await ask(
                server.url, headers={"X-Team": "blue"}, secret=SECRET, heard=heard, clock=SystemClock()
            )
            assert result == Result("fine")
            assert heard.lines == ["127.0.0.1 answered 200"]
            (request,) = server.requests
            assert request.line == "POST /hook HTTP/1.1"
            assert request.headers["host"] == f"127.0.0.1:{server.port}"
            assert request.headers["content-type"] == JSON
            assert request.headers["idempotency-key"] == "idem-1"
            assert request.headers["gnomon-fence"] == "7"
            assert request.headers["traceparent"].startswith("00-aaaa")
            assert request.headers["x-team"] == "blue"
            assert Webhook(SECRET).verify(request.body, request.headers)["run_id"] == "run_01"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (
            says("200 OK", b'{"output": "yes", "usage": {"model_calls": 2, "cost": 0.1}}', Content_Type=JSON),
            Result("yes", Usage(2, cost=0.1)),
        ),
        (says("201 Created", b'{"output": "\\u00fc"}', Content_Type="application/vnd.x+json"), Result("ü")),
        (says("200 OK", "grün".encode(), Content_Type="text/plain; charset=utf-8"), Result("grün")),
        (
            says("200 OK", "grün".encode("latin-1"), Content_Type="text/plain; charset=ISO-8859-1"),
            Result("grün"),
        ),
        (says("200 OK", b"a\0b"), Result("a\ufffdb")),
        (says("204 No Content"), Result("")),
        (says("200 OK", b"", Content_Type=JSON), Result("")),
        (says("200 OK", gzip.compress(b"packed", mtime=0), Content_Encoding="gzip"), Result("packed")),
        (says("200 OK", zlib.compress(b"packed"), Content_Encoding="deflate"), Result("packed")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", Result("abc")),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" + says("200 OK", b"late"), Result("late")),
        (says("202 Accepted", b"later"), Deferred()),
    ],
)
def test_answers_that_are_fine_tgt_2(answer: bytes, result: Result | Deferred) -> None:
    assert against(answer) == result


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says("200 OK", b"<html>", Content_Type=JSON), "not JSON"),
        (says("200 OK", b'{"answer": 1}', Content_Type=JSON), "has no output"),
        (says("200 OK", b'["output"]', Content_Type=JSON), "a list"),
        (says("200 OK", b'{"output": "x", "usage": {"cost": NaN}}', Content_Type=JSON), "cost"),
        (says("200 OK", b"[" * 100_000, Content_Type=JSON), "not JSON"),
        (says("200 OK", b"\xff\xfe\x00\xd8"), "neither JSON nor text"),
        (says("200 OK", b"x", Content_Type="text/plain; charset=punycode"), "no character set"),
        (says("200 OK", b"not packed", Content_Encoding="gzip"), "calls itself gzip"),
        (
            says("200 OK", gzip.compress(b"x" * 999, mtime=0)[:-9], Content_Encoding="gzip"),
            "ends in the middle",
        ),
        (says("200 OK", b"x", Content_Encoding="br"), "'br'"),
        (b"220 smtp.example ESMTP ready\r\n\r\n", "did not answer in HTTP"),
        (b"\x16\x03\x01\x02\x00\x01" * 50 + b"\r\n\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "did not answer in HTTP"),
    ],
)
def test_nonsense_is_named_and_not_tried_again(answer: bytes, said: str) -> None:
    failure = failing(answer)
    assert failure.code is Failing.NONSENSE
    assert not failure.retryable
    assert said in failure.message


@pytest.mark.parametrize(
    "status",
    [
        "408 Request Timeout",
        "425 Too Early",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
    ],
)
def test_statuses_that_are_tried_again(status: str) -> None:
    failure = failing(says(status, b"try\r\nlater"))
    assert failure.code is Failing.HTTP_STATUS
    assert failure.retryable
    assert failure.retry_after is None
    assert failure.message == f"the target answered {status}: try  later"


@pytest.mark.parametrize(
    "status", ["400 Bad", "401 No", "404 Not Found", "409 Conflict", "410 Gone", "422 No", "304 Same"]
)
def test_statuses_that_are_not_tried_again(status: str) -> None:
    failure = failing(says(status, Retry_After="7"))
    assert failure.code is Failing.HTTP_STATUS
    assert not failure.retryable
    assert failure.retry_after is None
    assert status[:3] in failure.message


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("999999999", 86_400.0),
        ("Sun, 29 Nov 2026 09:01:30 GMT", 90.0),
        ("Sun, 29 Nov 2026 08:00:00 GMT", 0.0),
        ("Sun, 29 Nov 2099 08:00:00 GMT", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("Sun, 99 Nov 2026 08:00:00 GMT", None),
        ("Sun, 29 Nov 2026 09:01:30", None),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    failure = failing(says("429 Slow Down", Retry_After=header))
    assert failure.retryable
    assert failure.retry_after == seconds


def test_what_a_failing_target_says_is_cut_and_none_of_its_headers_is_kept() -> None:
    """TGT-4, casebook ssr-04."""
    failure = failing(says("500 Oops", b"x" * 5_000_000, X_Secret="s3cret"))
    assert len(failure.message) < 300
    assert "s3cret" not in failure.message


def test_nobody_listens() -> None:
    async def scenario() -> None:
        async with serving(b"") as server:
            url = server.url
        with pytest.raises(TargetFailure) as caught:
            await ask(url)
        assert caught.value.code is Failing.UNREACHABLE
        assert caught.value.retryable
        assert caught.value.message.startswith("http://127.0.0.1:")
        assert "refused" in caught.value.message.lower()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_connection_closed_too_early_is_tried_again(answer: bytes) -> None:
    failure = failing(answer)
    assert failure.code is Failing.UNREACHABLE
    assert failure.retryable
    assert "closed the connection" in failure.message


def test_a_request_has_a_connection_of_its_own_and_no_cookie_comes_back() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK", b"x", Set_Cookie="tenant=a")) as server:
            targets = HttpTargets(FrozenClock(NOW), allow_private=True)
            for _ in range(3):
                await targets.invoke(HttpRuntime(server.url), None, an_invocation(), Heard())
            await targets.close()
            assert server.connections == 3
            assert all("cookie" not in request.headers for request in server.requests)

    asyncio.run(scenario())


def test_the_environments_proxy_is_not_used_tgt_4(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert against(says("200 OK", b"direct")) == Result("direct")


def test_a_users_unsound_header_stops_the_attempt_before_it_is_sent() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK")) as server:
            for headers in ({"Webhook-Id": "mine"}, {"X": "a\r\nGnomon-Fence: 99"}):
                with pytest.raises(TargetFailure) as caught:
                    await ask(server.url, headers=headers)
                assert caught.value.code is Failing.TARGET_INVALID
            assert server.connections == 0

    asyncio.run(scenario())


def test_a_query_with_line_breaks_stays_in_the_body() -> None:
    async def scenario() -> None:
        async with serving(says("200 OK")) as server:
            targets = HttpTargets(FrozenClock(NOW), allow_private=True)
            query = "a\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
            await targets.invoke(HttpRuntime(server.url), None, an_invocation(query), Heard())
            await targets.close()
            assert json.loads(server.requests[0].body)["query"] == query
            assert len(server.requests) == 1

    asyncio.run(scenario())
