"""From the push to the end: acknowledged, passed on, kept for who comes back, given up (JOB-4, JOB-5)."""

import json
from typing import Any

import pytest

from gnomon.domain.errors import Conflict, FenceStale, GnomonError, Invalid, Missing
from gnomon.domain.trigger import ACKNOWLEDGE_SECONDS, MOST_PUSHES
from gnomon.ports.push import Partings
from gnomon.services.mint import Mint
from gnomon.stores import instances
from gnomon.stores.database import Database, Row, Tx
from gnomon.testing.clock import FrozenClock
from support.house import rows
from support.job_world import Server, Worker

pytestmark = pytest.mark.anyio
FIVE = 300
UNKNOWN = "trg_" + "0" * 20


@pytest.fixture
async def server(database: Database, clock: FrozenClock, mint: Mint) -> Server:
    built = await Server(database, clock, mint).open()
    await built.job()
    return built


async def due(server: Server) -> None:
    server.clock.advance(FIVE)
    await server.tick()


async def state(server: Server) -> tuple[str, str | None, str | None, int]:
    found = await server.trigger()
    return found["status"], found["reason"], found["instance_id"], found["pushes"]


async def complained(saying: Any) -> GnomonError:
    with pytest.raises(GnomonError) as caught:
        await saying
    return caught.value


async def test_a_trigger_goes_from_pushed_to_its_end(server: Server) -> None:
    """JOB-2: pushed, acknowledged, succeeded; each step is in the audit, by who took it, under the epoch."""
    worker = await server.connect()
    await due(server)
    assert await state(server) == ("pushed", None, "ins_pm_a", 1)
    await worker.acknowledge()
    assert (await state(server))[0] == "acknowledged"
    await worker.finish(note="three mails")
    found = await server.trigger()
    assert (found["status"], found["note"], found["payload"]) == ("succeeded", "three mails", None)
    steps = await rows(
        server.database,
        "SELECT action, actor, fence FROM audit_entries WHERE subject_id = :id ORDER BY seq",
        id=found["id"],
    )
    assert [(row["action"], row["actor"], row["fence"]) for row in steps] == [
        ("PUSH", server.process_id, 1),
        ("ACKNOWLEDGE", "ins_pm_a", 1),
        ("FINISH", "ins_pm_a", 1),
    ]


async def test_a_failure_says_so_with_its_note(server: Server) -> None:
    worker = await server.connect()
    await due(server)
    await worker.finish(status="failed", note="no disk")
    found = await server.trigger()
    assert (found["status"], found["reason"], found["note"]) == ("failed", "reported", "no disk")


async def test_what_was_said_may_be_said_again(server: Server) -> None:
    """JOB-5: answers are repeated after a reconnect, and change nothing then."""
    worker = await server.connect()
    await due(server)
    for _ in range(2):
        await worker.acknowledge()
    for _ in range(2):
        await worker.finish()
    await worker.acknowledge()
    assert (await state(server))[0] == "succeeded"
    error = await complained(worker.finish(status="failed"))
    assert isinstance(error, Conflict)
    assert error.code == "already_ended"
    assert (await state(server))[0] == "succeeded"
    assert await server.audit("FENCED") == []


async def test_a_stranger_s_word_changes_nothing_and_stands_in_the_audit(server: Server) -> None:
    """JOB-4: neither an acknowledgement nor a result."""
    await server.connect("a")
    await due(server)
    stranger = await server.connect("b")
    trigger_id = (await server.trigger())["id"]
    for saying in (stranger.acknowledge(trigger_id), stranger.finish(trigger_id)):
        error = await complained(saying)
        assert isinstance(error, FenceStale)
        assert "Stop working on it" in error.message
    assert await state(server) == ("pushed", None, "ins_pm_a", 1)
    fenced = await server.audit("FENCED")
    assert [(row["actor"], row["subject_id"]) for row in fenced] == [("ins_pm_b", trigger_id)] * 2


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"trigger_id": UNKNOWN, "status": "succeeded"}, "not_found"),
        ({"status": "succeeded"}, "invalid"),
        ({"trigger_id": 7, "status": "succeeded"}, "invalid"),
        ({"trigger_id": UNKNOWN, "status": "missed"}, "invalid"),
        ({"trigger_id": UNKNOWN}, "invalid"),
        ({"trigger_id": UNKNOWN, "status": "failed", "note": "x" * 10_001}, "invalid"),
    ],
)
async def test_a_frame_that_means_nothing_is_told_so(
    server: Server, fields: dict[str, Any], code: str
) -> None:
    worker = await server.connect()
    error = await complained(worker.say("result", **fields))
    assert isinstance(error, Invalid | Missing)
    assert error.code == code


async def test_killed_before_the_acknowledgement_it_goes_to_another_once(server: Server) -> None:
    """JOB-4, C1: one redelivery, under the same trigger id and dedup key, marked as such."""
    first, second = await server.connect("a"), await server.connect("b")
    await due(server)
    await first.end()
    for _ in range(3):
        await server.engine.delivery.tick()
        await server.tick()
    (before,), (again,) = first.pushes, second.pushes
    assert again == {**before, "redelivered": True}
    assert await state(server) == ("pushed", None, "ins_pm_b", 2)
    await second.acknowledge()
    await second.finish()
    assert (await state(server))[0] == "succeeded"
    (taken,) = await server.audit("TAKE_BACK")
    assert json.loads(taken["detail"])["why"] == "instance_gone"


async def test_who_comes_back_alone_gets_it_again(server: Server) -> None:
    """JOB-4: another one comes first, but there is no other."""
    worker = await server.connect()
    await due(server)
    await worker.end()
    await server.engine.delivery.tick()
    assert (await server.trigger())["status"] == "pending"
    back = await server.connect()
    await server.tick()
    (again,) = back.pushes
    assert (again["trigger_id"], again["redelivered"]) == (worker.pushes[0]["trigger_id"], True)


async def test_another_one_comes_first(server: Server) -> None:
    """JOB-4: not the one that it was taken from, although it has waited longer."""
    first = await server.connect("a")
    await due(server)
    await first.end()
    await server.engine.delivery.tick()
    back, other = await server.connect("a"), await server.connect("b")
    await rows(server.database, "UPDATE instances SET last_chosen_at = 0 WHERE name = 'a'")
    await rows(server.database, "UPDATE instances SET last_chosen_at = 9 WHERE name = 'b'")
    await server.tick()
    assert (len(back.pushes), len(other.pushes)) == (0, 1)


async def test_with_nobody_there_a_redelivery_waits_longer_than_the_grace_and_no_longer(
    server: Server,
) -> None:
    """JOB-4: half an hour late it is missed."""
    worker = await server.connect()
    await due(server)
    await worker.end()
    await server.engine.delivery.tick()
    await rows(server.database, "UPDATE jobs SET enabled = 1, next_fire_at = NULL")
    server.clock.advance(599)
    await server.tick()
    assert (await server.trigger())["status"] == "pending"
    server.clock.advance(1)
    await server.tick()
    assert (await state(server))[:2] == ("missed", "no_instance")


async def test_ws_03_what_is_not_acknowledged_in_time_goes_to_another_and_the_connection_ends(
    server: Server,
) -> None:
    """Casebook ws-03: a half-open socket."""
    first, second = await server.connect("a"), await server.connect("b")
    await due(server)
    server.clock.advance(ACKNOWLEDGE_SECONDS - 1)
    assert await server.engine.delivery.tick() == 1
    assert first.parting is None
    server.clock.advance(1)
    await server.engine.delivery.tick()
    assert first.parting is Partings.UNACKNOWLEDGED
    await server.tick()
    assert [push["redelivered"] for push in second.pushes] == [True]
    error = await complained(first.acknowledge())
    assert isinstance(error, FenceStale)
    assert await state(server) == ("pushed", None, "ins_pm_b", 2)


async def test_a_connection_that_is_ending_gets_nothing_more(server: Server) -> None:
    """What is given to it meanwhile waits until it is over, and is not counted as pushed."""
    worker = await server.connect()
    await due(server)
    server.clock.advance(ACKNOWLEDGE_SECONDS)
    for _ in range(5):
        await server.engine.delivery.tick()
        await server.tick()
    found = await server.trigger()
    assert (found["status"], found["instance_id"], found["pushes"]) == ("pending", "ins_pm_a", 1)
    await worker.end()
    await server.engine.delivery.tick()
    assert (await server.trigger())["instance_id"] is None
    back = await server.connect()
    await server.tick()
    assert len(back.pushes) == 1


async def test_a_slow_consumer_s_trigger_goes_to_another_and_was_not_pushed(server: Server) -> None:
    """Casebook ws-09: it never came to the first."""
    slow, other = await server.connect("a"), await server.connect("b")
    slow.reads = False
    await due(server)
    await server.tick()
    assert await state(server) == ("pushed", None, "ins_pm_b", 1)
    assert [push["redelivered"] for push in other.pushes] == [False]
    (taken,) = await server.audit("TAKE_BACK")
    assert json.loads(taken["detail"])["why"] == "not_sent"


async def test_a_trigger_that_kills_whoever_gets_it_is_not_passed_on_for_ever(server: Server) -> None:
    """JOB-4."""
    await due(server)
    for _ in range(MOST_PUSHES):
        worker = await server.connect()
        await server.tick()
        assert len(worker.pushes) == 1
        await worker.end()
        await server.engine.delivery.tick()
    assert (await state(server))[:2] == ("failed", "not_acknowledged")


async def test_what_was_acknowledged_is_not_repeated_when_its_instance_is_gone(server: Server) -> None:
    """JOB-4: twice is worse. It waits for the instance, and fails when that has been gone for too long."""
    first, second = await server.connect("a"), await server.connect("b")
    await due(server)
    await first.acknowledge()
    await first.end()
    await server.engine.delivery.tick()
    server.clock.advance(119)
    await server.engine.sweep.tick()
    assert await state(server) == ("acknowledged", None, "ins_pm_a", 1)
    server.clock.advance(1)
    await server.engine.sweep.tick()
    assert await state(server) == ("failed", "instance_lost", "ins_pm_a", 1)
    assert second.pushes == []
    error = await complained((await server.connect("a")).finish(first.pushes[0]["trigger_id"]))
    assert isinstance(error, FenceStale)


async def test_who_comes_back_with_its_work_keeps_it(server: Server) -> None:
    """JOB-5: the same instance under the next epoch ends what it began."""
    worker = await server.connect()
    await due(server)
    await worker.acknowledge()
    trigger_id = worker.pushes[0]["trigger_id"]
    await worker.end()
    await server.engine.delivery.tick()
    server.clock.advance(60)
    back = await server.connect(in_flight=[trigger_id])
    server.clock.advance(3_600)
    await server.engine.sweep.tick()
    assert await state(server) == ("acknowledged", None, "ins_pm_a", 1)
    error = await complained(worker.finish())
    assert isinstance(error, FenceStale)  # its old connection says nothing any more
    await back.finish(trigger_id)
    assert (await state(server))[0] == "succeeded"
    assert back.frames == []


async def test_who_comes_back_with_what_was_pushed_has_acknowledged_it(server: Server) -> None:
    """JOB-5: the acknowledgement was lost with the connection, and a newer one took its place at once."""
    worker = await server.connect()
    other = await server.connect("b")
    await due(server)
    trigger_id = worker.pushes[0]["trigger_id"]
    back = await server.connect(in_flight=[trigger_id])
    assert worker.parting is Partings.REPLACED
    await worker.end()
    server.clock.advance(ACKNOWLEDGE_SECONDS)
    await server.tick()
    assert await state(server) == ("acknowledged", None, "ins_pm_a", 1)
    assert (back.frames, other.frames) == ([], [])


async def test_who_comes_back_without_it_has_it_no_more(server: Server) -> None:
    """JOB-4: a restart under the same name; what was pushed goes on at once, what was acknowledged fails in time."""
    worker = await server.connect()
    await due(server)
    await worker.end()
    back = await server.connect()
    await server.tick()
    assert [push["redelivered"] for push in back.pushes] == [True]
    await back.acknowledge()
    await back.end()
    again = await server.connect()
    await server.tick()
    assert again.frames == []
    server.clock.advance(120)
    await server.engine.sweep.tick()
    assert (await state(server))[:2] == ("failed", "instance_lost")


async def test_who_comes_back_without_a_word_may_end_what_it_had_acknowledged_for_an_hour(
    server: Server,
) -> None:
    """JOB-5: and its room comes back, if it was started anew and never ends it."""
    worker = await server.connect()
    await due(server)
    await worker.acknowledge()
    await worker.end()
    await server.engine.delivery.tick()
    server.clock.advance(60)
    back = await server.connect(in_flight=None)
    server.clock.advance(3_599)
    await server.engine.sweep.tick()
    assert (await state(server))[0] == "acknowledged"
    server.clock.advance(1)
    await server.engine.sweep.tick()
    assert (await state(server))[:2] == ("failed", "instance_lost")
    assert back.frames == []


async def test_what_somebody_else_has_meanwhile_is_revoked(server: Server) -> None:
    """JOB-4: who works on what is not its own any more is told to stop."""
    first, second = await server.connect("a"), await server.connect("b")
    await due(server)
    trigger_id = first.pushes[0]["trigger_id"]
    await first.end()
    await server.engine.delivery.tick()
    await server.tick()
    assert len(second.pushes) == 1
    back = await server.connect("a", in_flight=[{"trigger_id": trigger_id}, "run_1", {"run_id": "run_1"}])
    assert back.frames == [{"type": "revoke", "trigger_id": trigger_id}]
    assert await state(server) == ("pushed", None, "ins_pm_b", 2)


async def test_a_server_that_died_leaves_its_triggers_to_the_others(server: Server) -> None:
    """JOB-4: its instances are marked as gone by the watchdog; then what they had is passed on."""
    other = await server.neighbour()
    lost, living = await other.connect("a"), await server.connect("b")
    await due(server)
    await other.engine.delivery.tick()
    assert len(lost.pushes) == 1
    server.clock.advance(121)
    await server.engine.sweep.tick()
    assert (await server.triggers())[0]["status"] == "pushed"
    assert await server.database.write(lambda tx: instances.mark_offline(tx, "ins_pm_a", 120_000_000)) == 1
    await server.engine.sweep.tick()
    await server.tick()
    assert [push["redelivered"] for push in living.pushes] == [True]
    assert living.pushes[0]["trigger_id"] == lost.pushes[0]["trigger_id"]


async def test_who_reconnects_to_another_server_is_served_there(server: Server) -> None:
    """JOB-3: given over the first connection and not pushed yet, it goes over the second."""
    other = await server.neighbour()
    await server.connect()
    server.clock.advance(FIVE)
    await server.engine.dispatcher.tick()
    back = await other.connect()
    await server.engine.delivery.tick()
    assert back.pushes == []
    await other.engine.delivery.tick()
    assert [push["redelivered"] for push in back.pushes] == [False]


async def test_what_was_given_and_not_pushed_goes_to_another_when_it_drains(server: Server) -> None:
    """JOB-5."""
    await server.connect("a")
    server.clock.advance(FIVE)
    await server.engine.dispatcher.tick()
    other = await server.connect("b")
    await rows(server.database, "UPDATE instances SET status = 'draining' WHERE name = 'a'")
    await server.engine.delivery.tick()
    await server.engine.sweep.tick()
    await server.tick()
    assert [push["redelivered"] for push in other.pushes] == [False]


async def test_two_sweeps_at_once_take_a_trigger_back_once(server: Server, neighbour: Database) -> None:
    """JOB-4."""
    other = await server.neighbour(7, neighbour)
    worker = await server.connect()
    await due(server)
    await worker.end()
    adrift = await server.database.read(server.engine.sweep._look)
    assert len(adrift[0]) == 1
    await other.engine.sweep.tick()
    await server.engine.sweep.tick()
    assert len(await server.audit("TAKE_BACK")) == 1


async def test_what_was_passed_on_while_it_was_looked_at_is_not_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-3: it was to be pushed when the delivery looked, and is another's when it is marked."""
    worker = await server.connect()
    server.clock.advance(FIVE)
    await server.engine.dispatcher.tick()
    delivery = server.engine.delivery
    real = delivery._mark

    async def late(ready: list[Row], tx: Tx) -> list[Row]:
        await tx.run(
            "triggers.take_back",
            id=ready[0]["id"],
            status="pending",
            instance_id="ins_pm_a",
            epoch=0,
            unsent=0,
        )
        return await real(ready, tx)

    monkeypatch.setattr(delivery, "_mark", late)
    await delivery.tick()
    assert worker.frames == []


async def test_nothing_is_sent_over_a_connection_that_another_process_says_it_holds(server: Server) -> None:
    """C4: the database says that this process holds it, and it does not (any more)."""
    worker = await server.connect()
    server.clock.advance(FIVE)
    await server.engine.dispatcher.tick()
    server.connections.drop(worker.speaker)
    assert await server.engine.delivery.tick() == 0.2
    assert (await server.trigger())["status"] == "pending"


async def test_pages_of_a_job_s_triggers(server: Server) -> None:
    worker: Worker = await server.connect()
    for _ in range(3):
        await due(server)
        await worker.finish()
    page = await server.engine.triggers.page("digest", 2**62, 2)
    assert [trigger.status for trigger in page] == ["succeeded"] * 2
    assert page[0].nominal_fire_at > page[1].nominal_fire_at
    with pytest.raises(Missing):
        await server.engine.triggers.page("nobody", 2**62, 2)
    assert server.engine.triggers.ended == {"succeeded": 3}
    assert server.engine.delivery.pushed == {"first": 3}
