"""What the connection of an instance does with deeds when it ends in the middle of them (JOB-4)."""

import asyncio
import gc
from concurrent.futures import Future
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from gnomon.client import line as lines
from gnomon.client.errors import ClientError
from gnomon.client.instance import _shared
from gnomon.client.line import Line
from gnomon.client.place import Place
from gnomon.client.session import Session, Work

PUSH = {
    "type": "job_trigger",
    "trigger_id": "trg_1",
    "job": "j",
    "nominal_at": "2026-11-30T09:00:00Z",
    "dedup_key": "k",
}


class Stuck:
    """A socket of the library whose peer reads nothing."""

    def __init__(self) -> None:
        self.sending = asyncio.Event()

    async def send(self, _text: str) -> None:
        self.sending.set()
        await asyncio.Event().wait()


@pytest.mark.anyio
async def test_an_acknowledgement_that_was_cut_off_begins_nothing_and_is_forgotten() -> None:
    """JOB-4: else the next hello would say that it is worked on, and nobody ever would."""
    begun: list[Work] = []
    session = Session("pm", "pm-1", 1, "test")
    session.welcomed(0)
    line = Line(Place("http://there"), session, begun.append, lambda _end: None)
    socket: Any = Stuck()
    line._socket = socket
    doing = asyncio.create_task(line._do(session.heard(PUSH, 0)))
    await asyncio.wait_for(socket.sending.wait(), 10)
    assert [work.key for work in session.in_flight] == ["trg_1"]
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert begun == []
    assert session.hello()["in_flight"] == []


@pytest.mark.anyio
async def test_who_gave_up_waiting_hears_nothing_of_what_comes_late() -> None:
    """Else the loop's complaint about an exception that nobody retrieved stands below the error that was told."""
    heard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: heard.append(context))
    welcome: Future[None] = Future()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(_shared(welcome), 0)
    assert not welcome.cancelled()
    waiting = asyncio.create_task(_shared(welcome))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    welcome.set_exception(ClientError("too late"))
    del welcome, waiting
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()
    assert heard == []


@pytest.mark.anyio
async def test_a_centre_from_which_nothing_comes_is_left_for_another_connection_ws_04(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JOB-5: killed behind a proxy that keeps the connection, it answers no ping; and there is one reconnect."""
    monkeypatch.setattr(lines, "PING_SECONDS", 0.05)
    monkeypatch.setattr(lines, "PONG_SECONDS", 0.05)
    again, came = asyncio.Event(), 0

    async def centre(connection: ServerConnection) -> None:
        nonlocal came
        await connection.recv()
        await connection.send('{"type": "welcome", "heartbeat_seconds": 60}')
        came += 1
        if came == 1:
            connection.transport.pause_reading()
        else:
            again.set()
        await connection.wait_closed()

    async with serve(centre, "127.0.0.1", 0, ping_interval=None, close_timeout=0.1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        session = Session("pm", "pm-1", 1, "test")
        line = Line(Place(f"http://127.0.0.1:{port}"), session, lambda _work: None, lambda _end: None)
        line.start()
        await asyncio.wait_for(again.wait(), 20)
        line.close()
        await asyncio.to_thread(line.join, 10)
    assert came == 2
    assert line.over.result(0) is None
