"""What the connection of an instance does with deeds when it ends in the middle of them (JOB-4)."""

import asyncio
from typing import Any

import pytest

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
