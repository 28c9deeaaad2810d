"""Connections that are replaced, half open, slow or silent, and a server that goes (JOB-5)."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gnomon.edges.ws import socket as sockets
from gnomon.ports.push import Partings
from support.socket_world import ROLE, Peer, World, a_world, only

pytestmark = pytest.mark.anyio


async def test_a_second_connection_takes_the_place_of_the_first_ws_05(tmp_path: Path) -> None:
    """JOB-5, ws-05: the first ends late, and takes nothing with it; what is pushed comes over the second."""
    async with a_world(tmp_path) as world:
        await world.agent()
        async with world.instance() as first, world.instance() as second:
            assert first.welcome["instance_id"] == second.welcome["instance_id"]
            assert (first.welcome["epoch"], second.welcome["epoch"]) == (1, 2)
            assert await first.closed() == Partings.REPLACED.value.code
            path = await world.run()
            assert (await second.work())["redelivered"] is False
            assert (await world.ended(path))["status"] == "succeeded"
            (instance,) = await world.instances()
            assert (instance["status"], instance["epoch"]) == ("online", 2)


async def test_the_work_of_a_replaced_connection_goes_on_ws_07(tmp_path: Path) -> None:
    """JOB-5, ws-07: the newest connection wins, the other is closed, and the answer counts over whichever it comes."""
    async with a_world(tmp_path) as world:
        await world.agent()
        async with world.instance() as first:
            path = await world.run()
            frame = await first.frame("run_trigger")
            named = {"run_id": frame["run_id"], "fence": frame["fence"]}
            await first.say("run_ack", **named)
            await first.say("poll")
            await first.frame("error")  # what came before it was heard
            async with world.instance(in_flight=[named]) as second:
                await first.closed()
                await second.say("run_progress", **named, text="still here")
                await second.say("run_result", **named, status="succeeded", output="over the second")
                found = await world.ended(path)
        assert (found["status"], found["output"], len(found["attempts"])) == (
            "succeeded",
            "over the second",
            1,
        )


async def test_a_peer_that_answers_no_ping_is_found_ws_03(tmp_path: Path) -> None:
    """JOB-5, ws-03, W2: half open; what it was pushed goes to another under the same run, fence and key."""
    async with a_world(tmp_path, heartbeat_seconds=0.2, heartbeat_timeout_seconds=30) as world:
        await world.agent()
        reader, writer = await _raw(world, "dead")
        await world.until(lambda items: only(items, name="dead"))
        path = await world.run()
        async with world.instance("lives") as peer:
            frame = await peer.work()
        assert frame["redelivered"] is True
        found = await world.ended(path)
        assert (found["status"], found["fence"], frame["idempotency_key"]) == ("succeeded", 1, found["id"])
        dead = await world.until(lambda items: only(items, name="dead", server=None))
        assert dead["in_flight"] == 0
        writer.close()
        with suppress(ConnectionError):
            await reader.read()


async def _raw(world: World, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A socket that says hello and is then silent for ever: it reads nothing and answers no ping."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port, limit=2**20)
    writer.write(
        b"GET /v1/connect HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        b"Authorization: Bearer the operator of these tests\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    hello = json.dumps({"type": "hello", "role": ROLE, "instance": name}).encode()
    writer.write(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
    return reader, writer


async def test_who_stops_saying_heartbeat_goes_offline_ws_04(tmp_path: Path) -> None:
    """BRD-4, ws-04: an open socket that answers pings is no sign of a process that works; it is told to come again."""
    async with a_world(
        tmp_path, heartbeat_seconds=0.2, heartbeat_timeout_seconds=1, sweep_seconds=0.2
    ) as world:
        async with world.instance("silent") as silent, world.instance("loud") as loud:
            assert silent.welcome["heartbeat_seconds"] == 0.2
            beating = asyncio.create_task(_beat(loud))
            assert await silent.closed() == Partings.SILENT.value.code
            items = await world.instances()
            assert only(items, name="silent", status="offline", server=None)
            assert only(items, name="loud", status="online")
            beating.cancel()
        async with world.instance("silent"):
            assert only(await world.instances(), name="silent", status="online", epoch=2)


async def _beat(peer: Peer) -> None:
    with suppress(ConnectionClosed):
        while True:
            await peer.say("heartbeat")
            with suppress(TimeoutError):
                await asyncio.wait_for(peer.socket.recv(), 0.1)


async def test_a_slow_reader_keeps_nobody_waiting_ws_09(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-5, ws-09: its own queue is full, and it is cut off; forty-nine others get theirs at once."""
    monkeypatch.setattr(sockets, "QUEUED_FRAMES", 50)
    async with a_world(tmp_path) as world:
        reader, writer = await _raw(world, "slow")
        slow = await world.until(lambda items: only(items, name="slow"))
        reader._limit = 0  # type: ignore[attr-defined]  # nothing more is taken from the socket
        connections = world.connections
        peers = [world.instance(str(number)) for number in range(49)]
        opened = [await peer.__aenter__() for peer in peers]
        try:
            everybody = [(speaker.instance_id, speaker.epoch) for speaker in connections.speakers()]
            for number in range(400):
                frame = {"type": "revoke", "run_id": f"run_{number}", "fence": 1, "padding": "x" * 100_000}
                await connections.send(slow["id"], 1, frame)
                await asyncio.wait({asyncio.create_task(asyncio.Event().wait())}, timeout=0)
                if not connections.holds(slow["id"], 1):
                    break
            async with asyncio.timeout(1):
                await connections.send_all(everybody, {"type": "revoke", "run_id": "run_1", "fence": 1})
                frames = await asyncio.gather(*(peer.frame() for peer in opened))
            assert {frame["run_id"] for frame in frames} == {"run_1"}
            found = await world.until(lambda items: only(items, name="slow", server=None))
            assert found["status"] == "online"  # it may come again until its heartbeat is overdue
            assert len(connections) == 49
        finally:
            for peer in peers:
                await peer.__aexit__(None, None, None)
            writer.close()


async def test_a_peer_that_reads_late_gets_all_in_order_ws_09(tmp_path: Path) -> None:
    """JOB-5: what its transport took, then what was queued, then what came while it read again."""
    async with a_world(tmp_path) as world, world.instance(max_queue=1) as peer:
        (held,) = world.connections._held.values()
        link: Any = held.link
        got: list[str] = []
        sent = 0

        async def push() -> None:
            nonlocal sent
            frame = {"type": "revoke", "run_id": f"run_{sent}", "fence": 1, "padding": "x" * 100_000}
            assert await world.connections.send(held.speaker.instance_id, held.speaker.epoch, frame)
            sent += 1

        while len(link._queue) < 10:
            assert sent < 500
            await push()
        while link._queue:
            await push()
            got += [(await peer.frame())["run_id"] for _ in range(2)]
        await push()
        got += [(await peer.frame())["run_id"] for _ in range(sent - len(got))]
        assert got == [f"run_{number}" for number in range(sent)]


async def test_a_connection_that_is_over_takes_nothing(tmp_path: Path) -> None:
    """JOB-5: one that was told to close, and one that broke; writing at once says so and does no harm."""
    async with a_world(tmp_path) as world:
        reader, writer = await _raw(world, "told")
        await world.until(lambda items: only(items, name="told"))
        (told,) = world.connections._held.values()
        world.connections.part_all(Partings.SILENT)
        await reader.readuntil(Partings.SILENT.value.reason.encode())
        told_link: Any = told.link
        assert not told_link._write_now("x")
        writer.close()
        async with world.instance("broken") as peer:
            (broken,) = world.connections._held.values()
            broken_link: Any = broken.link
            peer.socket.transport.abort()
            await world.until(lambda items: only(items, name="broken", server=None))
            assert not broken_link._write_now("x")


async def test_whoever_says_goodbye_is_offline_at_once(tmp_path: Path) -> None:
    """JOB-5."""
    async with a_world(tmp_path) as world:
        async with world.instance():
            assert only(await world.instances(), status="online")
        await world.until(lambda items: only(items, status="offline", server=None))


async def test_a_revoked_key_ends_its_connections(tmp_path: Path) -> None:
    """SEC-3: within a heartbeat."""
    async with a_world(tmp_path, heartbeat_seconds=0.2) as world:
        made = (await world.http.post("/v1/keys", json={"scopes": ["instances:connect"]})).json()
        async with world.instance(key=made["key"]) as peer:
            assert (await world.http.delete(f"/v1/keys/{made['id']}")).status_code == 204
            assert await peer.closed() == 1008


async def test_a_person_drains_an_instance(tmp_path: Path) -> None:
    """JOB-5: over HTTP; it gets nothing new, and an unknown one is not there."""
    async with a_world(tmp_path) as world:
        await world.agent()
        async with (
            world.instance("a", max_in_flight=5) as peer,
            world.instance("b", max_in_flight=5) as other,
        ):
            ids = {item["name"]: item["id"] for item in await world.instances()}
            answer = await world.http.post(f"/v1/instances/{ids['a']}/drain")
            assert (answer.status_code, answer.json()["status"]) == (200, "draining")
            for _ in range(3):
                path = await world.run()
                await other.work()
                assert (await world.ended(path))["status"] == "succeeded"
            await peer.say("poll")
            assert (await peer.frame())["type"] == "error"  # and nothing before it
        found = await world.http.get("/v1/instances", params={"role": ROLE, "status": "draining"})
        assert found.status_code == 200
        assert (await world.http.post("/v1/instances/ins_nobody/drain")).status_code == 404
        assert (await world.http.get("/v1/instances/ins_nobody")).status_code == 404
        wrong: Any = (await world.http.get("/v1/instances", params={"status": "asleep"})).json()
        assert wrong["code"] == "invalid"


async def test_a_server_that_stops_lets_answers_through_and_sends_its_instances_elsewhere(
    tmp_path: Path,
) -> None:
    """DSP-10: the run in flight ends well, then each socket closes with the code for a restart."""
    async with a_world(tmp_path) as world:
        await world.agent()
        async with world.instance() as peer:
            await world.run()
            frame = await peer.frame("run_trigger")
            named = {"run_id": frame["run_id"], "fence": frame["fence"]}
            await peer.say("run_ack", **named)
            stopping = world.stop()
            await asyncio.wait({stopping}, timeout=0.2)
            assert not stopping.done()
            await peer.say("run_result", **named, status="succeeded", output="in time")
            assert await peer.closed() == 1012
            await stopping
    async with a_world(tmp_path) as world:
        (run,) = (await world.http.get("/v1/runs")).json()["items"]
        assert (run["status"], run["response_preview"]) == ("succeeded", "in time")
        assert only(await world.instances(), status="online", server=None)
