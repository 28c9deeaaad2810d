"""What is written at once and what is queued, and that they stay in order (JOB-5, ws-09)."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.websockets import WebSocket, WebSocketState

from gnomon.edges.ws.socket import QUEUED_FRAMES, WRITE_SECONDS, Socket
from gnomon.ports.push import Partings
from gnomon.testing.clock import FrozenClock

pytestmark = pytest.mark.anyio


class Peer:
    """The far end of a connection that is open: while it reads, what is written at once is taken."""

    def __init__(self) -> None:
        self.reads = False
        self.resumed = asyncio.Event()
        self.waits = asyncio.Event()
        self.aborted = False
        self.got: list[str] = []
        self.clock = FrozenClock(datetime(2026, 11, 30, tzinfo=UTC))
        extensions = {"gnomon.write": self._write, "gnomon.abort": self._abort}
        websocket = WebSocket({"type": "websocket", "extensions": extensions}, self._receive, self._send)
        websocket.application_state = WebSocketState.CONNECTED
        self.socket = Socket(websocket, self.clock)

    def _write(self, text: str) -> bool:
        if self.reads:
            self.got.append(text)
        return self.reads

    def _abort(self) -> None:
        self.aborted = True

    async def _receive(self) -> Any:
        await asyncio.Event().wait()

    async def _send(self, message: Any) -> None:
        self.waits.set()
        await self.resumed.wait()
        self.got.append(message.get("text", "closed"))


async def test_what_a_peer_takes_is_written_at_once() -> None:
    """No queue, and no task has to run first."""
    peer = Peer()
    peer.reads = True
    assert all(peer.socket.put(text) for text in "abc")
    assert peer.got == ["a", "b", "c"]
    peer.resumed.set()
    await peer.socket.end()
    assert peer.got == ["a", "b", "c", "closed"]
    assert not peer.socket.put("d")


async def test_nothing_overtakes_what_is_queued() -> None:
    """JOB-5: the peer reads again before the task that writes has run."""
    peer = Peer()
    assert peer.socket.put("a")
    peer.reads = True
    assert peer.socket.put("b")
    peer.resumed.set()
    await peer.socket.end()
    assert peer.got == ["a", "b", "closed"]


async def test_nothing_overtakes_what_is_under_way() -> None:
    """JOB-5: it left the queue, and waits for the peer; the peer reads again before the task has heard of it."""
    peer = Peer()
    assert peer.socket.put("a")
    await peer.waits.wait()
    peer.reads = True
    assert peer.socket.put("b")
    peer.resumed.set()
    await peer.socket.end()
    assert peer.got == ["a", "b", "closed"]


async def test_a_peer_that_stands_still_is_cut_off() -> None:
    """ws-09: by the first frame too many, or by the first after it has taken nothing for too long."""
    full, stuck = Peer(), Peer()
    assert all(full.socket.put("x") for _ in range(QUEUED_FRAMES))
    assert not full.aborted
    assert not full.socket.put("x")
    assert stuck.socket.put("x")
    await stuck.waits.wait()
    stuck.clock.advance(WRITE_SECONDS + 1)
    assert not stuck.socket.put("x")
    for peer in (full, stuck):
        assert (peer.aborted, peer.socket.parting) == (True, Partings.TOO_SLOW)
        peer.resumed.set()
        await peer.socket.end()
