"""Runs that instances do: given, sent, acknowledged, answered, taken back, withdrawn; over one server and two (TGT-1)."""

import asyncio
from typing import Any

import pytest

from gnomon.domain.audit import Action
from gnomon.domain.errors import FenceStale, Missing
from gnomon.domain.invocation import Usage
from gnomon.domain.push import PushEnd, PushKey, PushStatus
from gnomon.ports.push import Partings
from gnomon.stores import audit
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock
from support.push_world import TIMEOUT, Hand, Server, run_id
from support.rows import execute

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(database: Database, clock: FrozenClock) -> Server:
    return await Server(database, clock).open()


@pytest.fixture
async def other(database: Database, clock: FrozenClock, server: Server) -> Server:
    return await Server(database, clock, "prc_2").open()


async def given(server: Server, hand: Hand, *, acknowledged: bool = True, number: int = 1) -> Any:
    """An attempt that an instance has been pushed: its key and the task that waits for its end."""
    key = await server.lease(number)
    task = server.do(key)
    await server.until(key, "pending", "pushed")
    await hand.server.until(key, "pushed")
    if acknowledged:
        await hand.say("run_ack", key)
    return key, task


async def fenced(server: Server) -> list[tuple[str, str, int | None]]:
    entries = await server.database.read(lambda tx: audit.after(tx, 0, 100, action=Action.FENCED))
    return [(entry.actor, entry.subject_id, entry.fence) for entry in entries]


async def test_a_run_is_done_by_an_instance(server: Server) -> None:
    """TGT-1, TGT-2: pushed once, with its progress, its usage and its answer."""
    hand = await server.join()
    key, task = await given(server, hand)
    (frame,) = hand.of("run_trigger")
    assert (frame["query"], frame["redelivered"]) == ("go", False)
    await hand.say("run_progress", key, text="half", usage={"model_calls": 1})
    await hand.say("run_result", key, status="succeeded", output="done", usage={"model_calls": 2})
    assert await server.end(task) == PushEnd(key, PushStatus.SUCCEEDED, "done", Usage(2))
    assert server.said == [(key.run_id, 1, "half")]
    await server.delivery.tick()
    assert len(hand.frames) == 1


async def test_the_server_with_the_connection_pushes_for_the_one_with_the_lease(
    server: Server, other: Server
) -> None:
    """TGT-1: they meet in the database alone."""
    hand = await other.join()
    key, task = await given(server, hand)
    assert len(hand.of("run_trigger")) == 1
    await hand.say("run_result", key, status="failed", error="no disk", retryable=True)
    end = await server.end(task)
    assert (end.status, end.error_code, end.error, end.retryable) == (
        PushStatus.FAILED,
        "reported",
        "no disk",
        True,
    )


async def test_a_run_waits_for_an_instance_with_room(server: Server) -> None:
    """TGT-1: whoever comes, or has room again, gets it."""
    first, second = await server.lease(1), await server.lease(2)
    tasks = [server.do(first), server.do(second)]
    await server.until(first, "waiting")
    await server.until(second, "waiting")
    hand = await server.join(max_in_flight=1)
    await server.until(first, "pushed")
    assert await server.status(second) == "waiting"
    await hand.say("run_result", first, status="succeeded")
    await server.until(second, "pushed")
    await hand.say("run_result", second, status="succeeded", output="2")
    assert [(await server.end(task)).output for task in tasks] == ["", "2"]


async def test_two_runs_never_overfill_one_instance(server: Server, other: Server) -> None:
    """TGT-1: of two servers that look at the last free place at once, one gets it."""
    hand = await server.join(max_in_flight=1)
    keys = [await server.lease(1), await other.lease(2)]
    tasks = [server.do(keys[0]), other.do(keys[1])]
    found: set[str | None] = set()
    for _ in range(200):
        await asyncio.gather(server.pushing.tick(), other.pushing.tick(), server.delivery.tick())
        found = {await server.status(key) for key in keys}
        if not found & {None, "pending"}:
            break
    assert found == {"pushed", "waiting"}
    assert len(hand.of("run_trigger")) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("acknowledged", [False, True])
async def test_nobody_takes_it_in_time(server: Server, acknowledged: bool) -> None:
    """TGT-1: it fails with the reason; who has taken it has until the run's own deadline."""
    key = await server.lease()
    task = server.do(key, patience=0.2)
    await server.until(key, "waiting")
    if acknowledged:
        hand = await server.join()
        await server.until(key, "pushed")
        await hand.say("run_ack", key)
        await asyncio.wait({task}, timeout=0.3)
        assert not task.done()
        await hand.say("run_result", key, status="succeeded")
        assert (await server.end(task)).status is PushStatus.SUCCEEDED
        return
    end = await server.end(task)
    assert (end.error_code, end.retryable) == ("no_instance", True)
    assert 'role "pm" was connected' in (end.error or "")
    assert await server.status(key) == "withdrawn"


async def test_what_is_pushed_and_never_taken_fails_so_too(server: Server) -> None:
    """TGT-1: whoever may have it is told to drop it."""
    hand = await server.join()
    key = await server.lease()
    task = server.do(key, patience=0.2)
    await server.until(key, "pushed")
    end = await server.end(task)
    assert end.error_code == "no_instance"
    assert "acknowledged" in (end.error or "")
    await server.delivery.tick()
    assert [(frame["run_id"], frame["fence"]) for frame in hand.of("revoke")] == [(key.run_id, 1)]


async def test_what_was_not_acknowledged_goes_to_another(server: Server, other: Server) -> None:
    """JOB-4: under the same fence, marked as pushed again; an answer of the first is told that it is too late."""
    first = await server.join("a")
    key, task = await given(server, first, acknowledged=False)
    second = await other.join("b")
    await first.leave()
    await server.until(key, "pending")
    await other.until(key, "pushed")
    (frame,) = second.of("run_trigger")
    assert (frame["redelivered"], await server.status(key)) == (True, "pushed")
    with pytest.raises(Missing, match="was pushed to this instance"):
        await first.say("run_result", key, status="succeeded", output="mine")
    await second.say("run_result", key, status="succeeded", output="theirs")
    assert (await server.end(task)).output == "theirs"


async def test_who_does_not_acknowledge_is_cut_off(server: Server, clock: FrozenClock) -> None:
    """JOB-4, ws-03: after ten seconds; what it was pushed goes to another."""
    hand = await server.join("a")
    key, task = await given(server, hand, acknowledged=False)
    clock.advance(9)
    await server.delivery.tick()
    assert hand.parting is None
    clock.advance(1)
    await server.delivery.tick()
    assert hand.parting is Partings.UNACKNOWLEDGED
    await server.join("b")
    await hand.leave()
    await server.until(key, "pushed")
    task.cancel()


async def test_what_can_not_be_sent_waits_for_the_end_of_its_connection(server: Server) -> None:
    """ws-09: it is tried once; then another gets it."""
    hand = await server.join("a", max_in_flight=2)
    hand.stuck = True
    keys = [await server.lease(1), await server.lease(2)]
    tasks = [server.do(keys[0])]
    await server.until(keys[0], "pushed")
    tasks.append(server.do(keys[1]))
    await server.until(keys[1], "pending")
    assert await server.delivery.tick() == 0.2
    assert await server.status(keys[1]) == "pending"
    await hand.leave()
    other = await server.join("b", max_in_flight=2)
    for key in keys:
        await server.until(key, "pushed")
    assert [frame["redelivered"] for frame in other.of("run_trigger")] == [True, False]
    for task in tasks:
        task.cancel()


async def test_nothing_is_sent_before_the_connection_is_held(server: Server) -> None:
    """JOB-3: it may be written down already; the push stays pending for a moment."""
    hand = await server.join()
    server.connections.drop(hand.speaker)
    other = await server.join("z", role="dev")
    key = await server.lease()
    task = server.do(key)
    await server.until(key, "pending")
    assert await server.delivery.tick() == 0.2
    assert await server.status(key) == "pending"
    assert other.frames == []
    task.cancel()


async def test_what_was_acknowledged_fails_with_who_is_gone(
    server: Server, other: Server, clock: FrozenClock
) -> None:
    """TGT-1: only after the heartbeat's timeout, and to nobody else: it may be half done."""
    hand = await other.join("a")
    key, task = await given(server, hand)
    await server.join("b")
    await hand.leave(goodbye=True)
    await server.pushing.tick()
    assert await server.status(key) == "acknowledged"
    clock.advance(TIMEOUT)
    await server.beat()
    await server.sweep.tick()
    end = await server.end(task)
    assert (end.status, end.error_code, end.retryable) == (PushStatus.FAILED, "unreachable", True)


async def test_cancelling_tells_whoever_works_on_it(server: Server, other: Server) -> None:
    """RUN-10: what it says afterwards is no fault, and changes nothing."""
    hand = await other.join()
    key, task = await given(server, hand)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await other.delivery.tick()
    assert [(frame["run_id"], frame["fence"]) for frame in hand.of("cancel")] == [(key.run_id, 1)]
    await hand.say("run_result", key, status="cancelled")
    await other.delivery.tick()
    assert (len(hand.of("cancel")), await server.status(key)) == (1, "withdrawn")
    assert await fenced(server) == []


async def test_an_old_fence_changes_nothing(server: Server) -> None:
    """RUN-6: the next attempt has taken its place; the instance is told, and so is the audit."""
    hand = await server.join(max_in_flight=2)
    old, task = await given(server, hand)
    await execute(server.database, "UPDATE runs SET fence = 2 WHERE id = :id", id=old.run_id)
    new = PushKey(old.run_id, "", 2)
    again = server.do(new)
    await server.until(new, "pushed")
    await server.delivery.tick()
    assert [frame["fence"] for frame in hand.of("revoke")] == [1]
    for kind, fields in (
        ("run_result", {"status": "succeeded", "output": "old"}),
        ("run_ack", {}),
        ("run_progress", {"text": "old"}),
        ("run_progress", {"usage": {"model_calls": 1}}),
    ):
        with pytest.raises(FenceStale, match="drop the work"):
            await hand.say(kind, old, **fields)
    assert await fenced(server) == [(hand.speaker.instance_id, old.run_id, 1)] * 4
    assert server.said == []
    await hand.say("run_result", new, status="succeeded", output="new")
    assert (await server.end(again)).output == "new"
    task.cancel()


async def test_a_foreign_run_changes_nothing(server: Server) -> None:
    """SEC-5: neither one that is somebody else's nor one that is nobody's."""
    mine = await server.join("a")
    key, task = await given(server, mine)
    theirs = await server.join("b")
    for kind, fields in (
        ("run_result", {"status": "succeeded"}),
        ("run_ack", {}),
        ("run_progress", {"text": "x"}),
    ):
        with pytest.raises(Missing, match="Nothing was changed"):
            await theirs.say(kind, key, **fields)
        with pytest.raises(Missing, match="Nothing was changed"):
            await mine.say(kind, PushKey("run_nobody", "", 1), **fields)
    assert (await server.status(key), server.said) == ("acknowledged", [])
    task.cancel()


async def test_an_answer_said_twice_counts_once(server: Server) -> None:
    """IDM-2: a client that does not know whether it was heard says it again."""
    hand = await server.join()
    key, task = await given(server, hand)
    for output in ("first", "second"):
        await hand.say("run_result", key, status="succeeded", output=output)
    assert (await server.end(task)).output == "first"


async def test_two_nodes_of_one_run_are_told_apart(server: Server) -> None:
    """TGT-3: by what travels as the run's id."""
    hand = await server.join(max_in_flight=2)
    key = await server.lease()
    nodes = [PushKey(key.run_id, name, 1) for name in ("a", "b")]
    tasks = [server.do(node) for node in nodes]
    for node in nodes:
        await server.until(node, "pushed")
    for node in reversed(nodes):
        await hand.say("run_progress", node, text="x")
        await hand.say("run_result", node, status="succeeded", output=node.node)
    assert [(await server.end(task)).output for task in tasks] == ["a", "b"]
    assert server.said == [(key.run_id, 1, "node b: x"), (key.run_id, 1, "node a: x")]


async def test_a_run_that_is_over_is_taken_from_the_instance(server: Server) -> None:
    """RUN-7: the process that waited for it is gone; the sweep finds what nobody waits for."""
    hand = await server.join()
    key, task = await given(server, hand)
    await execute(
        server.database,
        "UPDATE runs SET status = 'lost', lease_until = NULL, finished_at = started_at WHERE id = :id",
        id=key.run_id,
    )
    await server.sweep.tick()
    await server.delivery.tick()
    assert [frame["fence"] for frame in hand.of("revoke")] == [1]
    task.cancel()


async def test_usage_so_far_reaches_who_holds_the_lease(server: Server, other: Server) -> None:
    """TGT-2: it is kept even if the attempt is killed."""
    hand = await other.join()
    key = await server.lease()
    spent: list[Usage] = []
    task = server.do(key, usage=spent)
    await server.until(key, "pending")
    await other.until(key, "pushed")
    await hand.say("run_progress", key, usage={"model_calls": 3})
    await server.pushing.tick()
    assert spent == [Usage(3)]
    task.cancel()


async def test_many_runs_are_spread_over_the_instances(server: Server) -> None:
    """JOB-2: the least recently used one comes first."""
    hands = [await server.join(name, max_in_flight=3) for name in ("a", "b", "c")]
    keys = [await server.lease(number) for number in range(1, 10)]
    tasks = []
    for key in keys:
        tasks.append(server.do(key))
        await server.until(key, "pushed")
        server.clock.advance(0.001)
    assert [len(hand.of("run_trigger")) for hand in hands] == [3, 3, 3]
    assert run_id(1) == keys[0].run_id
    for task in tasks:
        task.cancel()
