"""Around an exchange: who hangs up is noticed and not answered, and what streams is not held back (casebook inv-02)."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from gnomon.edges.http.exchange import Exchange, HttpFigures
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.api import Api
from support.databases import START


def asked(method: str, path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"test"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }


async def test_who_hangs_up_inside_the_body_gets_no_answer_and_leaves_nothing(api: Api) -> None:
    """Reliability 73: noticed behind the middleware, logged as what it is."""
    key = await api.key()
    parts: list[Message] = [
        {"type": "http.request", "body": b'{"slug":', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> Message:
        return parts.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = asked(
        "POST",
        "/v1/agents",
        (b"authorization", f"Bearer {key}".encode()),
        (b"content-type", b"application/json"),
    )
    with capture_logs() as lines:
        await api.app(scope, receive, send)
    assert sent == []
    assert [(line["event"], line["status"]) for line in lines] == [("request", 499)]
    assert await api.services.agents.page("", 9) == []


async def test_a_handler_sees_the_hang_up_and_its_pieces_go_out_at_once() -> None:
    """Casebook inv-02: nothing is gathered on the way, in either direction."""
    gone, first_out = asyncio.Event(), asyncio.Event()
    seen: list[bool] = []

    async def pieces(request: Request) -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.wait_for(first_out.wait(), 5)
        gone.set()
        seen.append(await request.is_disconnected())
        yield b"last"

    async def handler(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(pieces(Request(scope, receive)))(scope, receive, send)

    async def receive() -> Message:
        if not gone.is_set():
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message.get("body") == b"first":
            first_out.set()

    app = Exchange(
        handler,
        clock=FrozenClock(START),
        entropy=SeededEntropy(),
        figures=HttpFigures(CollectorRegistry()),
    )
    await app({**asked("GET", "/stream"), "asgi": {"version": "3.0", "spec_version": "2.4"}}, receive, send)
    assert seen == [True]


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/v1/agents/nobody", "GET /v1/agents/nobody 401 0.0 ms"),
        ("HEAD", "/healthz", "HEAD /healthz 200 0.0 ms"),
    ],
)
async def test_a_request_is_said_in_short(api: Api, method: str, path: str, said: str) -> None:
    """OPS-6: method, path, status and time fit on a line of a terminal; all else stands in the other forms."""
    with capture_logs() as lines:
        async with api.client() as anybody:
            await anybody.request(method, path)
    (line,) = [line for line in lines if line["event"] == "request"]
    assert line["in_short"] == said
    assert {"request_id", "actor", "duration_seconds"} < line.keys()
