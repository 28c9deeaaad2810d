"""Pushes on every engine: each write under run, node and fence, and by the instance that has it (TGT-1, JOB-4, RUN-6)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gnomon.domain.invocation import Usage
from gnomon.domain.push import PushEnd, PushKey, PushStatus, Withdrawal
from gnomon.stores import instances, pushes
from gnomon.stores.database import Database, Tx
from gnomon.testing.clock import FrozenClock
from support.rows import AT, SECOND, add_running, execute, one

pytestmark = pytest.mark.anyio
KEY = PushKey("run_" + "0" * 20, "", 7)
NODE = replace(KEY, node="draft")
DONE = PushEnd(KEY, PushStatus.SUCCEEDED, "done", Usage(1, 2, 3, 0.5))


async def connect(database: Database, name: str = "a", server: str = "prc_1") -> int:
    row = await database.write(
        lambda tx: instances.connect(
            tx, f"ins_{name}", "pm", name, server=server, version=None, max_in_flight=9
        )
    )
    epoch: int = row["epoch"]
    return epoch


async def opened(database: Database, key: PushKey = KEY) -> None:
    await database.write(lambda tx: pushes.open_push(tx, key, "pm", '{"type":"run_trigger"}'))


async def pushed(
    database: Database, key: PushKey = KEY, *, epoch: int = 1, acknowledged: bool = False
) -> None:
    """Open a push and let ``ins_a`` have it."""
    await opened(database, key)
    assert await database.write(lambda tx: pushes.give(tx, key, "ins_a", epoch))
    rows = [{"run_id": key.run_id, "node": key.node, "fence": key.fence, "epoch": epoch}]
    assert await database.write(lambda tx: pushes.push(tx, rows)) == {key}
    if acknowledged:
        assert await database.write(lambda tx: pushes.acknowledge(tx, key, "ins_a"))


async def row_of(database: Database, key: PushKey = KEY) -> dict[str, Any]:
    return await one(database, "run_pushes", run_id=key.run_id, node=key.node, fence=key.fence)


async def status(database: Database, key: PushKey = KEY) -> str:
    found: str = (await row_of(database, key))["status"]
    return found


async def test_a_push_goes_its_way(database: Database, clock: FrozenClock) -> None:
    """TGT-1: from the wait for an instance to its answer."""
    await connect(database)
    await opened(database)
    await opened(database)  # asked for again: it is there
    assert await database.write(lambda tx: pushes.give(tx, KEY, "ins_a", 1))
    assert not await database.write(lambda tx: pushes.give(tx, KEY, "ins_b", 1))
    (row,) = await database.read(lambda tx: pushes.to_push(tx, "prc_1", 9))
    assert (row["frame"], row["pushes"], row["instance_id"], row["epoch"]) == (
        '{"type":"run_trigger"}',
        0,
        "ins_a",
        1,
    )
    assert await database.read(lambda tx: pushes.to_push(tx, "prc_2", 9)) == []
    clock.advance(1)
    assert await database.write(lambda tx: pushes.push(tx, [row])) == {KEY}
    assert await database.write(lambda tx: pushes.push(tx, [row])) == set()
    clock.advance(1)
    assert await database.write(lambda tx: pushes.acknowledge(tx, KEY, "ins_a"))
    clock.advance(1)
    assert await database.write(lambda tx: pushes.acknowledge(tx, KEY, "ins_a"))
    assert await database.write(lambda tx: pushes.answer(tx, DONE, "ins_a"))
    assert not await database.write(lambda tx: pushes.answer(tx, DONE, "ins_a"))
    found = await row_of(database)
    assert (found["pushed_at"], found["acknowledged_at"], found["finished_at"]) == (
        AT + SECOND,
        AT + 2 * SECOND,
        AT + 3 * SECOND,
    )
    assert found["frame"] == ""
    assert await database.read(lambda tx: pushes.standing(tx, [KEY.run_id])) == [("pm", DONE)]


@pytest.mark.parametrize(
    ("key", "instance"),
    [(replace(KEY, fence=6), "ins_a"), (replace(KEY, fence=8), "ins_a"), (NODE, "ins_a"), (KEY, "ins_b")],
)
async def test_another_s_word_changes_nothing(database: Database, key: PushKey, instance: str) -> None:
    """RUN-6: neither an older nor a newer fence, nor another node, nor another instance."""
    await connect(database)
    await pushed(database)
    before = await row_of(database)
    assert not await database.write(lambda tx: pushes.acknowledge(tx, key, instance))
    assert not await database.write(lambda tx: pushes.answer(tx, replace(DONE, key=key), instance))
    assert not await database.write(lambda tx: pushes.usage(tx, key, instance, Usage(1)))
    assert await row_of(database) == before


async def test_the_next_attempt_takes_the_last_one_s_place(database: Database) -> None:
    """RUN-8: whoever still works on the last one is told that it is not his any more."""
    await connect(database)
    await pushed(database, acknowledged=True)
    await opened(database, NODE)
    newer = replace(KEY, fence=8)
    await opened(database, newer)
    assert [await status(database, key) for key in (KEY, NODE, newer)] == ["withdrawn", "waiting", "waiting"]
    (row,) = await database.read(lambda tx: pushes.untold(tx, "prc_1", 9))
    assert (row["run_id"], row["fence"], row["withdrawal"], row["epoch"]) == (KEY.run_id, 7, "revoke", 1)
    assert not await database.write(lambda tx: pushes.answer(tx, DONE, "ins_a"))
    rows = await database.read(lambda tx: pushes.like(tx, newer))
    assert [(row["fence"], row["status"], row["instance_id"]) for row in rows] == [
        (7, "withdrawn", "ins_a"),
        (8, "waiting", None),
    ]


async def test_who_was_pushed_to_is_told_once_that_it_is_withdrawn(database: Database) -> None:
    """RUN-10."""
    await connect(database)
    await pushed(database)
    await opened(database, NODE)
    assert await database.write(lambda tx: pushes.withdraw(tx, KEY, Withdrawal.CANCEL))
    assert await database.write(lambda tx: pushes.withdraw(tx, NODE, Withdrawal.CANCEL))
    assert not await database.write(lambda tx: pushes.withdraw(tx, KEY, Withdrawal.REVOKE))
    assert await database.read(lambda tx: pushes.untold(tx, "prc_2", 9)) == []
    (row,) = await database.read(lambda tx: pushes.untold(tx, "prc_1", 9))
    assert (row["run_id"], row["node"], row["withdrawal"]) == (KEY.run_id, "", "cancel")
    await database.write(lambda tx: pushes.tell(tx, [KEY]))
    assert await database.read(lambda tx: pushes.untold(tx, "prc_1", 9)) == []


async def test_what_is_not_acknowledged_in_time_is_found(database: Database, clock: FrozenClock) -> None:
    """JOB-4, ws-03."""
    await connect(database)
    await pushed(database)
    clock.advance(9.999999)
    assert await database.read(lambda tx: pushes.unacknowledged(tx, "prc_1", 10 * SECOND)) == []
    clock.advance(0.000001)
    assert await database.read(lambda tx: pushes.unacknowledged(tx, "prc_1", 10 * SECOND)) == [("ins_a", 1)]
    assert await database.read(lambda tx: pushes.unacknowledged(tx, "prc_2", 10 * SECOND)) == []
    await database.write(lambda tx: pushes.acknowledge(tx, KEY, "ins_a"))
    assert await database.read(lambda tx: pushes.unacknowledged(tx, "prc_1", 10 * SECOND)) == []


async def test_only_what_was_not_acknowledged_goes_to_another(database: Database) -> None:
    """JOB-4: and never what a newer connection has."""
    await connect(database)
    await pushed(database)
    await pushed(database, NODE, acknowledged=True)
    newer = replace(KEY, run_id="run_2")
    await connect(database)
    await pushed(database, newer, epoch=2)
    assert await database.write(lambda tx: pushes.release(tx, "ins_b", 9)) == 0
    assert await database.write(lambda tx: pushes.release(tx, "ins_a", 1)) == 1
    found = [await status(database, key) for key in (KEY, NODE, newer)]
    assert found == ["waiting", "acknowledged", "pushed"]
    assert (await row_of(database))["pushes"] == 1  # sent again, it is a redelivery


async def test_what_was_acknowledged_fails_with_who_is_gone(database: Database, clock: FrozenClock) -> None:
    """TGT-1: it may be half done, so nobody else gets it."""
    await connect(database)
    await pushed(database, acknowledged=True)
    await pushed(database, NODE)
    await database.write(lambda tx: instances.gone(tx, "prc_1", "ins_a", 1, goodbye=True))
    clock.advance(59)
    assert await database.read(lambda tx: pushes.forsaken(tx, 60 * SECOND, 9)) == []
    clock.advance(1)
    assert await database.read(lambda tx: pushes.forsaken(tx, 60 * SECOND, 9)) == [("ins_a", 1)]
    assert await database.write(lambda tx: pushes.lose(tx, "ins_a", 1, "it is gone")) == 1
    (role, end), _ = await database.read(lambda tx: pushes.standing(tx, [KEY.run_id]))
    assert (role, end.status, end.error_code, end.error, end.retryable) == (
        "pm",
        PushStatus.FAILED,
        "unreachable",
        "it is gone",
        True,
    )
    assert await database.read(lambda tx: pushes.forsaken(tx, 60 * SECOND, 9)) == []


async def test_work_goes_on_under_the_next_connection(database: Database) -> None:
    """JOB-5."""
    await connect(database)
    await pushed(database)
    await pushed(database, NODE, acknowledged=True)
    await connect(database)
    held = await database.read(lambda tx: pushes.held(tx, "ins_a", 2))
    assert dict(held) == {KEY: PushStatus.PUSHED, NODE: PushStatus.ACKNOWLEDGED}
    await database.write(lambda tx: pushes.adopt(tx, [KEY, NODE], "ins_b", 2))
    assert len(await database.read(lambda tx: pushes.held(tx, "ins_a", 2))) == 2
    await database.write(lambda tx: pushes.adopt(tx, [KEY], "ins_a", 2))
    assert await database.read(lambda tx: pushes.held(tx, "ins_a", 2)) == [(NODE, PushStatus.ACKNOWLEDGED)]
    assert ((await row_of(database))["epoch"], await status(database)) == (2, "acknowledged")


@pytest.mark.parametrize(
    ("run", "left"),
    [({}, True), ({"fence": 8}, False), ({"status": "lost", "lease_until": None, "finished_at": AT}, False)],
)
async def test_what_nobody_waits_for_is_withdrawn(
    database: Database, run: dict[str, Any], left: bool
) -> None:
    """RUN-7: the run is over, or somebody else has it."""
    await add_running(database, id=KEY.run_id, **run)
    await connect(database)
    assert not await database.read(lambda tx: pushes.to_sweep(tx, SECOND))
    await pushed(database)
    assert await database.read(lambda tx: pushes.to_sweep(tx, SECOND))
    assert await database.write(pushes.abandon) == int(not left)
    assert (await status(database) == "pushed") is left
    assert bool(await database.read(lambda tx: pushes.untold(tx, "prc_1", 9))) is not left


async def test_usage_so_far_is_kept_with_the_push(database: Database) -> None:
    """TGT-2."""
    await connect(database)
    await pushed(database)
    assert await database.write(lambda tx: pushes.usage(tx, KEY, "ins_a", Usage(2)))
    ((_, end),) = await database.read(lambda tx: pushes.standing(tx, [KEY.run_id]))
    assert (end.status, end.usage) == (PushStatus.PUSHED, Usage(2))


@pytest.mark.parametrize(
    ("run", "kept"), [({}, True), ({"status": "succeeded", "lease_until": None, "finished_at": AT}, False)]
)
async def test_an_answer_is_kept_here_until_its_run_has_it(
    database: Database, clock: FrozenClock, run: dict[str, Any], kept: bool
) -> None:
    """RUN-12: an erased session leaves nothing behind."""
    await add_running(database, id=KEY.run_id, **run)
    await connect(database)
    await pushed(database)
    await database.write(lambda tx: pushes.answer(tx, DONE, "ins_a"))
    assert await database.write(pushes.blank) == int(not kept)
    found = await row_of(database)
    assert (found["output"], found["status"]) == ("done" if kept else None, "succeeded")
    assert await database.read(lambda tx: pushes.to_sweep(tx, SECOND)) is kept
    clock.advance(1.000001)
    assert await database.read(lambda tx: pushes.to_sweep(tx, SECOND))


async def test_what_ended_long_ago_is_forgotten(database: Database, clock: FrozenClock) -> None:
    await connect(database)
    await pushed(database)
    await database.write(lambda tx: pushes.answer(tx, DONE, "ins_a"))
    await opened(database, NODE)
    clock.advance(60)
    assert await database.write(lambda tx: pushes.clean(tx, 60 * SECOND, 9)) == 0
    clock.advance(0.000001)
    assert await database.write(lambda tx: pushes.clean(tx, 60 * SECOND, 9)) == 1
    rows = await execute(database, "SELECT node FROM run_pushes")
    assert [row["node"] for row in rows] == ["draft"]


async def test_of_many_who_look_at_the_last_place_one_gets_it(database: Database) -> None:
    """TGT-1: whoever chooses writes what takes the place in the same transaction."""
    await database.write(
        lambda tx: instances.connect(tx, "ins_a", "pm", "a", server="prc_1", version=None, max_in_flight=1)
    )

    async def take(number: int) -> bool:
        key = replace(KEY, run_id=f"run_{number}")

        async def work(tx: Tx) -> bool:
            await pushes.open_push(tx, key, "pm", "{}")
            taken = await instances.take_place(tx, "pm")
            return taken is not None and await pushes.give(tx, key, *taken)

        return await database.write_guarded(work)

    assert sum(await asyncio.gather(*(take(number) for number in range(8)))) == 1
    found = await database.read(lambda tx: instances.get(tx, "ins_a"))
    assert found is not None
    assert found.in_flight == 1


async def test_only_roles_with_room_are_named(database: Database) -> None:
    """JOB-2; TGT-1."""
    await connect(database)
    assert await database.read(lambda tx: instances.roomy(tx, ["pm", "dev"])) == {"pm"}
    await database.write(lambda tx: instances.drain(tx, "ins_a"))
    assert await database.read(lambda tx: instances.roomy(tx, ["pm", "dev"])) == set()
    assert await database.read(lambda tx: instances.kept(tx, "prc_1")) == {("ins_a", 1)}
    assert await database.read(lambda tx: instances.kept(tx, "prc_2")) == set()
