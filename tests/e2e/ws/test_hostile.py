"""What no library of a client would send, byte by byte: each is answered, none is an error of ours, none disturbs others."""

import asyncio
import os
import struct
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gnomon.edges.server import MESSAGE_BYTES
from support.socket_world import BOUND, OPERATOR, World, a_world

pytestmark = pytest.mark.anyio
TEXT, BYTES, GOING_ON, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
HELLO = b'{"type":"hello","role":"pm","instance":"raw"}'


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


def framed(opcode: int, data: bytes, *, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """One frame as a client sends it."""
    head = bytes([fin << 7 | reserved << 4 | opcode])
    mark = 0x80 if masked else 0
    if len(data) < 126:
        head += bytes([mark | len(data)])
    elif len(data) < 65_536:
        head += bytes([mark | 126]) + struct.pack(">H", len(data))
    else:
        head += bytes([mark | 127]) + struct.pack(">Q", len(data))
    return head + (bytes(4) if masked else b"") + data  # a mask of zeros changes nothing


class Raw:
    """The bytes of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def say(self, *data: bytes) -> None:
        """Send bytes."""
        for each in data:
            self.writer.write(each)
        await self.writer.drain()

    async def hear(self) -> tuple[int, bytes]:
        """The next frame of the server."""
        async with asyncio.timeout(BOUND):
            first, second = await self._reader.readexactly(2)
            size = second & 127
            if size >= 126:
                width = 2 if size == 126 else 8
                size = int.from_bytes(await self._reader.readexactly(width), "big")
            return first & 15, await self._reader.readexactly(size)

    async def parting(self) -> tuple[int, bytes]:
        """The code and the reason of the close that comes, whatever comes before it."""
        while True:
            opcode, data = await self.hear()
            if opcode == CLOSE:
                return int.from_bytes(data[:2], "big"), data[2:]


@asynccontextmanager
async def raw(world: World, *, greets: bool = True) -> AsyncIterator[Raw]:
    """An open socket, by hand; it has said hello."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    writer.write(
        b"GET /v1/connect HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n"
        % (world.port, b64encode(os.urandom(16)), OPERATOR.encode())
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in head.partition(b"\r\n")[0]
    found = Raw(reader, writer)
    if greets:
        await found.say(framed(TEXT, HELLO))
        assert b'"welcome"' in (await found.hear())[1]
    try:
        yield found
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (framed(TEXT, b'{"type":"\xff"}'), 1007),
        (framed(TEXT, b'{"type":"\xc3', fin=False) + framed(GOING_ON, b'("}'), 1007),
        (framed(TEXT, b"{}", masked=False), 1002),
        (framed(TEXT, b"{}", reserved=4), 1002),
        (framed(5, b"{}"), 1002),
        (framed(GOING_ON, b"{}"), 1002),
        (framed(CLOSE, b"\x03"), 1002),
        (framed(TEXT, b"x" * (5 * MESSAGE_BYTES)), 1009),
        (framed(TEXT, b"x", fin=False) + framed(GOING_ON, b"x" * 60_000, fin=False) * 60, 1009),
    ],
    ids=[
        "no utf-8",
        "half a character",
        "not masked",
        "a reserved bit",
        "no such kind",
        "goes on with nothing",
        "half a code",
        "too large",
        "too many parts",
    ],
)
async def test_what_is_no_websocket_is_told_so_before_its_end(world: World, sent: bytes, code: int) -> None:
    """JOB-5: whatever it has sent beyond that; and nobody else, and no log of errors, hears of it."""
    async with world.instance("other") as other:
        with capture_logs() as log:
            async with raw(world) as peer:
                await peer.say(sent)
                assert (await peer.parting())[0] == code
        assert [entry for entry in log if entry["log_level"] in {"error", "critical"}] == []
        await other.say("poll")
        assert (await other.frame("error"))["code"] == "unknown_type"


async def test_a_message_in_parts_is_a_message(world: World) -> None:
    """RFC 6455, 5.4: with a ping in its middle."""
    async with raw(world) as peer:
        parts = [
            (TEXT, b'{"type":', False),
            (GOING_ON, b'"poll"', False),
            (PING, b"?", True),
            (GOING_ON, b"}", True),
        ]
        await peer.say(*(framed(opcode, data, fin=fin) for opcode, data, fin in parts))
        assert await peer.hear() == (PONG, b"?")
        opcode, data = await peer.hear()
        assert opcode == TEXT
        assert b"unknown_type" in data


async def test_bytes_before_hello_keep_the_connection(world: World) -> None:
    """CONTRACT, WebSocket: frames are text."""
    async with raw(world, greets=False) as peer:
        await peer.say(framed(BYTES, b"\x00\x01"), framed(TEXT, HELLO))
        assert b"not_text" in (await peer.hear())[1]
        assert b'"welcome"' in (await peer.hear())[1]


async def test_a_plain_request_is_told_what_to_do(world: World) -> None:
    """OPS-8: a browser, a script, or a proxy that drops the header."""
    for method in ("GET", "HEAD"):
        answer = await world.http.request(method, "/v1/connect")
        assert answer.status_code == 426
        assert answer.headers["upgrade"] == "websocket"
        assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = (await world.http.get("/v1/connect")).json()
    assert problem["code"] == "upgrade_required"
    assert "ws://" in problem["detail"]
    assert "/v1/connect/schema" in problem["detail"]


async def test_a_refused_handshake_is_no_error_of_ours(world: World) -> None:
    """SEC-3: whoever comes with a wrong key, or from a wrong page, fills no log of errors."""
    with capture_logs() as log:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        await Raw(reader, writer).say(
            b"GET /v1/connect HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        async with asyncio.timeout(BOUND):
            assert b" 401 " in (await reader.read()).partition(b"\r\n")[0]
        writer.close()
    assert [entry for entry in log if entry["log_level"] in {"error", "critical"}] == []


async def test_faults_of_a_frame_are_said_as_those_of_a_body(world: World) -> None:
    """OPS-8: no words of a library."""
    async with world.socket() as peer:
        await peer.say("hello", role="P M", instance="", max_in_flight=0, in_flight=[{"fence": -1}])
        found = await peer.frame("error")
        told = {each["field"]: each["message"] for each in found["errors"]}
        assert told["instance"] == "must have at least 1 character"
        assert told["max_in_flight"] == "must be at least 1"
        assert told["role"].startswith("must be lower-case letters")
        assert told["in_flight.0.fence"] == "must be at least 0"
        assert not any("nput should" in message for message in told.values())
        await peer.say("hello", role="pm", instance="a")
        await peer.frame("welcome")
        await peer.say("result", trigger_id="trg_1", status="done")
        assert (await peer.frame("error"))["errors"][0]["message"] == "must be one of 'succeeded' or 'failed'"
