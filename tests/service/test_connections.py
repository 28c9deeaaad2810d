"""The registry of one process's connections: the newest epoch wins, whoever is late takes nothing (JOB-5, ws-05, ws-07)."""

from typing import Any

import pytest

from gnomon.domain.errors import Conflict, Invalid
from gnomon.ports.push import Partings, Speaker
from gnomon.services.connections import Connections

pytestmark = pytest.mark.anyio


class Socket:
    """The far end of nothing: what was put, and how it was ended. A socket is not ours (HOUSE rule 12)."""

    def __init__(self, room: int = 100) -> None:
        self.texts: list[str] = []
        self.parted: Partings | None = None
        self._room = room
        self.stuck = False

    def put(self, text: str) -> bool:
        if self.parted is not None or len(self.texts) == self._room:
            return False
        self.texts.append(text)
        return True

    def part(self, parting: Partings) -> None:
        self.parted = parting

    def is_stuck(self) -> bool:
        return self.stuck


def speaker(epoch: int = 1, name: str = "a") -> Speaker:
    return Speaker(f"ins_{name}", "pm", name, epoch)


async def test_a_frame_goes_to_that_very_connection() -> None:
    """JOB-2: an epoch that is over gets nothing."""
    connections, socket = Connections(), Socket()
    assert connections.take(speaker(2), socket)
    assert connections.holds("ins_a", 2)
    assert not connections.holds("ins_a", 1)
    assert not connections.holds("ins_b", 2)
    assert await connections.send("ins_a", 2, {"type": "x", "text": "é"})
    assert not await connections.send("ins_a", 1, {"type": "x"})
    assert not await connections.send("ins_b", 2, {"type": "x"})
    assert socket.texts == ['{"type":"x","text":"é"}']


async def test_a_newer_connection_takes_the_place_of_the_old() -> None:
    """JOB-5, ws-05, ws-07: the old one is ended, and its end, however late, takes nothing from the new."""
    connections, old, new = Connections(), Socket(), Socket()
    connections.take(speaker(1), old)
    assert connections.take(speaker(2), new)
    assert (old.parted, new.parted) == (Partings.REPLACED, None)
    assert not connections.drop(speaker(1))
    assert await connections.send("ins_a", 2, {"type": "x"})
    assert (old.texts, len(new.texts)) == ([], 1)
    assert connections.drop(speaker(2))
    assert not connections.drop(speaker(2))
    assert len(connections) == 0


async def test_an_older_connection_that_comes_late_is_not_taken() -> None:
    """JOB-5: its epoch was drawn first, its hello was slower."""
    connections, old, new = Connections(), Socket(), Socket()
    connections.take(speaker(2), new)
    assert not connections.take(speaker(1), old)
    assert not connections.take(speaker(2), old)
    assert new.parted is None


async def test_who_takes_no_more_keeps_nobody_from_hearing() -> None:
    """ws-09."""
    connections = Connections()
    sockets = [Socket(room=0 if number == 3 else 100) for number in range(50)]
    for number, socket in enumerate(sockets):
        connections.take(speaker(1, str(number)), socket)
    sent = await connections.send_all([(f"ins_{n}", 1) for n in range(50)], {"type": "x"})
    assert sent == 49
    assert not await connections.send("ins_3", 1, {"type": "x"})


async def test_each_type_of_frame_has_one_that_hears_it() -> None:
    heard: list[Any] = []

    async def ack(who: Speaker, frame: dict[str, Any]) -> None:
        if frame["trigger_id"] == "trg_old":
            raise Conflict("old", code="fence_stale")
        heard.append((who.name, frame["trigger_id"]))

    connections = Connections()
    connections.on("ack", ack)
    with pytest.raises(ValueError, match="two handlers"):
        connections.on("ack", ack)
    await connections.hear(speaker(), {"type": "ack", "trigger_id": "trg_1"})
    assert heard == [("a", "trg_1")]
    with pytest.raises(Conflict, match="old"):
        await connections.hear(speaker(), {"type": "ack", "trigger_id": "trg_old"})
    with pytest.raises(Invalid, match='type "poll"') as refused:
        await connections.hear(speaker(), {"type": "poll"})
    assert refused.value.code == "unknown_type"


async def test_everybody_hears_that_a_connection_is_over() -> None:
    """JOB-4: also after one who failed."""
    told: list[tuple[str, int]] = []

    async def fails(_instance_id: str, _epoch: int) -> None:
        raise RuntimeError("no")

    async def hears(instance_id: str, epoch: int) -> None:
        told.append((instance_id, epoch))

    connections = Connections()
    connections.on_gone(fails)
    connections.on_gone(hears)
    await connections.tell_gone("ins_a", 3)
    assert told == [("ins_a", 3)]


async def test_everybody_hears_of_a_new_connection_and_what_it_still_works_on() -> None:
    """JOB-5."""
    told: list[Any] = []

    async def fails(_who: Speaker, _hello: dict[str, Any]) -> None:
        raise RuntimeError("no")

    async def hears(who: Speaker, hello: dict[str, Any]) -> None:
        told.append((who.epoch, hello["in_flight"]))

    connections = Connections()
    connections.on_hello(fails)
    connections.on_hello(hears)
    await connections.tell_hello(speaker(3), {"in_flight": ["run_1"]})
    assert told == [(3, ["run_1"])]


async def test_who_was_heard_of_is_told_once() -> None:
    """JOB-5: the heartbeats of many are one write."""
    connections = Connections()
    connections.take(speaker(2, "a"), Socket(), "key_1")
    connections.take(speaker(1, "b"), Socket(), "key_1")
    connections.take(speaker(1, "c"), Socket())
    connections.note(speaker(2, "a"))
    connections.note(speaker(7, "b"))
    assert connections.heard() == [("ins_a", 2)]
    assert connections.heard() == []
    assert {key: [who.name for who in by] for key, by in connections.keys().items()} == {"key_1": ["a", "b"]}
    assert [who.name for who in connections.speakers()] == ["a", "b", "c"]


async def test_who_does_not_read_is_ended() -> None:
    """ws-09: also where nothing more is sent to it."""
    connections, one, other = Connections(), Socket(), Socket()
    connections.take(speaker(1, "a"), one)
    connections.take(speaker(1, "b"), other)
    other.stuck = True
    connections.part_stuck()
    assert [socket.parted for socket in (one, other)] == [None, Partings.TOO_SLOW]


async def test_one_or_all_are_ended() -> None:
    connections, one, other = Connections(), Socket(), Socket()
    connections.take(speaker(1, "a"), one)
    connections.take(speaker(1, "b"), other)
    connections.part("ins_a", 9, Partings.SILENT)
    connections.part("ins_c", 1, Partings.SILENT)
    assert [socket.parted for socket in (one, other)] == [None, None]
    connections.part("ins_a", 1, Partings.SILENT)
    connections.part_all(Partings.RESTART)
    assert [socket.parted for socket in (one, other)] == [Partings.RESTART] * 2
