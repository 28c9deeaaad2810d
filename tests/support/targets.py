"""Targets for the tests of the runtimes: an invocation, a reporter that keeps what it hears, a raw HTTP server."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gnomon.domain.invocation import Invocation, Usage

DEADLINE = datetime(2026, 11, 29, 9, 5, tzinfo=UTC)


def an_invocation(query: str = "hello", **fields: Any) -> Invocation:
    given: dict[str, Any] = {
        "run_id": "run_01",
        "attempt": 1,
        "fence": 7,
        "idempotency_key": "idem-1",
        "query": query,
        "deadline": DEADLINE,
        **fields,
    }
    return Invocation(**given)


class Heard:
    """``ports.runtime.Reporter`` that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.usages: list[Usage] = []
        self.started: list[int] = []
        self.ended: list[int] = []
        self.line_came = asyncio.Event()

    def progress(self, text: str) -> None:
        self.lines.append(text)
        self.line_came.set()

    def usage(self, usage: Usage) -> None:
        self.usages.append(usage)

    def process_started(self, pgid: int) -> None:
        self.started.append(pgid)

    def process_ended(self, pgid: int) -> None:
        self.ended.append(pgid)


@dataclass
class Received:
    """One request as the server read it."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server on 127.0.0.1 that says what a test tells it, byte for byte."""

    port: int
    requests: list[Received] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


Answer = bytes | Callable[[Server, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def says(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@asynccontextmanager
async def serving(*answers: Answer, tls: Any = None) -> AsyncIterator[Server]:
    """Each request gets the next answer, the last one again and again."""
    server = Server(0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.rstrip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = answers[min(len(server.requests), len(answers) - 1)]
            server.requests.append(Received(line, headers, body))
            server.came.set()
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(server, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            server.gone.set()
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.release.set()
        listening.close()
        await listening.wait_closed()


def until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether a condition outside this process came true within the bound."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return True
        pause.wait(0.01)
    return condition()
