"""Instances come, are heard of, drain and go, over one server and over two (JOB-5, BRD-4)."""

from typing import Any

import pytest

from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Missing, Refused
from gnomon.domain.instance import InstanceStatus
from gnomon.ports.push import Partings
from gnomon.services.api_keys import ApiKeys, NewKey
from gnomon.services.mint import Mint
from gnomon.stores import audit
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.push_world import CALLER, TIMEOUT, Server
from support.rows import execute

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(database: Database, clock: FrozenClock) -> Server:
    return await Server(database, clock).open()


@pytest.fixture
async def other(database: Database, clock: FrozenClock, server: Server) -> Server:
    return await Server(database, clock, "prc_2").open()


async def told(server: Server) -> list[tuple[Action, int | None]]:
    entries = await server.database.read(lambda tx: audit.after(tx, 0, 100))
    return [(entry.action, entry.fence) for entry in entries if entry.subject_kind == "instance"]


async def status(server: Server, instance_id: str) -> InstanceStatus:
    return (await server.instances.get(instance_id)).status


async def test_a_reconnect_is_the_same_instance_and_takes_the_old_one_s_place(server: Server) -> None:
    """JOB-5, ws-05, ws-07: the old connection is closed; its end, which comes late, takes nothing."""
    first = await server.join()
    second = await server.join()
    assert first.speaker.instance_id == second.speaker.instance_id
    assert (first.speaker.epoch, second.speaker.epoch) == (1, 2)
    assert (first.parting, second.parting) == (Partings.REPLACED, None)
    assert not await first.leave(goodbye=True)
    found = await server.instances.get(second.speaker.instance_id)
    assert (found.status, found.server, found.epoch) == (InstanceStatus.ONLINE, "prc_1", 2)
    assert server.connections.holds(found.id, 2)
    assert await told(server) == [(Action.CONNECT, 1), (Action.CONNECT, 2)]


async def test_a_connection_that_was_taken_over_by_another_server_is_ended(
    server: Server, other: Server
) -> None:
    """JOB-5, ws-07: found with the next heartbeat of the server that held it."""
    first = await server.join()
    await server.heartbeats.tick()
    assert [hand.parting for hand in (first,)] == [None]
    second = await other.join()
    await server.heartbeats.tick()
    await other.heartbeats.tick()
    assert (first.parting, second.parting) == (Partings.REPLACED, None)
    assert not await first.leave()
    assert (await other.instances.get(second.speaker.instance_id)).server == "prc_2"


async def test_who_is_silent_goes_offline_and_is_told_to_come_again(
    server: Server, clock: FrozenClock
) -> None:
    """BRD-4: what was heard in time is written in time, by one write for all."""
    silent, loud = await server.join("a"), await server.join("b")
    clock.advance(TIMEOUT - 1)
    await server.beat()
    server.connections.note(loud.speaker)
    await server.heartbeats.tick()
    clock.advance(1)
    await server.sweep.tick()
    assert await status(server, silent.speaker.instance_id) is InstanceStatus.OFFLINE
    assert await status(server, loud.speaker.instance_id) is InstanceStatus.ONLINE
    await server.heartbeats.tick()
    assert (silent.parting, loud.parting) == (Partings.SILENT, None)
    assert (Action.OFFLINE, 1) in await told(server)
    await server.join("a")
    assert await status(server, silent.speaker.instance_id) is InstanceStatus.ONLINE


async def test_nobody_is_taken_for_silent_right_after_the_clock_jumped(
    database: Database, clock: FrozenClock, server: Server
) -> None:
    """RUN-5b."""
    hand = await server.join()
    clock.advance(TIMEOUT)
    await server.beat()
    server.sweep._calm_us = lambda: round(TIMEOUT * 1_000_000)
    await server.sweep.tick()
    assert await status(server, hand.speaker.instance_id) is InstanceStatus.ONLINE


async def test_what_a_dead_server_held_is_freed(server: Server, other: Server, clock: FrozenClock) -> None:
    """JOB-4: and whoever listens hears of it."""
    ended: list[tuple[str, int]] = []

    async def gone(instance_id: str, epoch: int) -> None:
        ended.append((instance_id, epoch))

    other.connections.on_gone(gone)
    hand = await server.join()
    await execute(server.database, "UPDATE processes SET stopped_at = heartbeat_at WHERE id = 'prc_1'")
    await other.sweep.tick()
    found = await other.instances.get(hand.speaker.instance_id)
    assert (found.server, found.status) == (None, InstanceStatus.ONLINE)
    assert ended == [(found.id, 1)]
    await other.sweep.tick()
    assert ended == [(found.id, 1)]


async def test_a_person_drains_an_instance(server: Server) -> None:
    """JOB-5."""
    hand = await server.join()
    for _ in range(2):
        assert (
            await server.instances.drain(CALLER, hand.speaker.instance_id)
        ).status is InstanceStatus.DRAINING
    assert [action for action, _ in await told(server)] == [Action.CONNECT, Action.DRAIN]
    await hand.leave(goodbye=True)
    with pytest.raises(Conflict, match="is offline"):
        await server.instances.drain(CALLER, hand.speaker.instance_id)
    with pytest.raises(Missing):
        await server.instances.drain(CALLER, "ins_nobody")


async def test_an_instance_drains_itself(server: Server) -> None:
    """JOB-5: over this connection, and no word of an older one."""
    first = await server.join()
    second = await server.join()
    await server.instances.drain_itself(first.speaker, {})
    assert await status(server, first.speaker.instance_id) is InstanceStatus.ONLINE
    await server.instances.drain_itself(second.speaker, {})
    assert await status(server, first.speaker.instance_id) is InstanceStatus.DRAINING


async def test_a_key_of_another_role_connects_nobody(server: Server) -> None:
    """SEC-3."""
    with pytest.raises(Refused, match='serves the role "dev"'):
        await server.join(caller=Caller("key_1", ("instances:connect",), role="dev"))
    assert await server.instances.page("", 9) == []


async def test_a_connection_ends_with_its_key(server: Server, database: Database, clock: FrozenClock) -> None:
    """SEC-3: revoked, it is over within a heartbeat."""
    entropy = SeededEntropy(7)
    keys = ApiKeys(database, clock, Mint(clock, entropy), entropy)
    made = await keys.create(CALLER, {"scopes": ["instances:connect"]})
    assert isinstance(made, NewKey)
    mine, free = await server.join("a", key_id=made.key.id), await server.join("b")
    await server.heartbeats.tick()
    assert [hand.parting for hand in (mine, free)] == [None, None]
    await keys.revoke(CALLER, made.key.id)
    await server.heartbeats.tick()
    assert (mine.parting, free.parting) == (Partings.KEY_ENDED, None)


async def test_who_does_not_read_is_cut_off_though_nothing_is_sent(server: Server) -> None:
    """ws-09."""
    hand = await server.join()
    hand.stuck = True
    await server.heartbeats.tick()
    assert hand.parting is Partings.TOO_SLOW


async def test_a_process_without_connections_asks_nothing(server: Server) -> None:
    """P18: an idle process is quiet."""
    await server.database.close()
    assert await server.heartbeats.tick() is None
    assert await server.delivery.tick() is None
    assert await server.pushing.tick() is None


@pytest.mark.parametrize(
    ("said", "statuses", "revoked"),
    [
        # it does not say: what it acknowledged goes on, what it may not have got is pushed again
        (None, ("waiting", "acknowledged"), []),
        (3, ("waiting", "acknowledged"), []),
        # by name and fence it may say that it has what it could not acknowledge any more
        ([{"run_id": "1", "fence": 1}, {"run_id": "2", "fence": 1}], ("acknowledged", "acknowledged"), []),
        # a bare id may be of an earlier attempt
        (["1", "2"], ("waiting", "acknowledged"), []),
        # it was restarted: what it had acknowledged is lost
        ([], ("waiting", "failed"), []),
        # what is not its any more it is to drop
        (
            ["2", {"run_id": "2", "fence": 0}, {"run_id": "9", "fence": 3}],
            ("waiting", "acknowledged"),
            [(2, 0), (9, 3)],
        ),
    ],
)
async def test_a_reconnecting_instance_says_what_it_still_works_on(
    server: Server, said: Any, statuses: tuple[str, str], revoked: list[tuple[int, int]]
) -> None:
    """JOB-5, TGT-1."""
    hand = await server.join(max_in_flight=9)
    keys = [await server.lease(1), await server.lease(2)]
    tasks = [server.do(key) for key in keys]
    for key in keys:
        await server.until(key, "pushed")
    await hand.say("run_ack", keys[1])
    back = await server.join(in_flight=_named(said), max_in_flight=9)
    found = [await server.status(key) for key in keys]
    assert found == list(statuses)
    assert {(int(key.run_id[4:]), key.fence) for key in back.revoked} == set(revoked)
    for task in tasks:
        task.cancel()


def _named(said: Any) -> Any:
    """The ids of the runs that a case names by their numbers."""
    if not isinstance(said, list):
        return said
    return [
        f"run_{int(each):020d}"
        if isinstance(each, str)
        else {**each, "run_id": f"run_{int(each['run_id']):020d}"}
        for each in said
    ]
