"""Instances on every engine: one record whoever comes again, epochs, drains, silence, and the choice of one (JOB-5)."""

from functools import partial
from typing import Any

import pytest

from gnomon.domain.instance import Instance, InstanceStatus
from gnomon.stores import instances
from gnomon.stores.database import CheckViolation, Database, Tx
from gnomon.testing.clock import FrozenClock
from support.job_rows import PUSHED, add_trigger
from support.rows import AT, SECOND, add, add_process, execute, one

pytestmark = pytest.mark.anyio
MINUTE = 60 * SECOND
PUSH = {
    "node": "",
    "fence": 1,
    "role": "pm",
    "status": "pushed",
    "epoch": 1,
    "frame": "{}",
    "created_at": AT,
}


async def connect(
    database: Database, name: str = "a", *, role: str = "pm", server: str = "prc_1", room: int = 1
) -> Any:
    return await database.write(
        lambda tx: instances.connect(
            tx, f"ins_{role}_{name}", role, name, server=server, version="1.0", max_in_flight=room
        )
    )


async def gone(database: Database, server: str, epoch: int, *, goodbye: bool = False) -> bool:
    return await database.write(lambda tx: instances.gone(tx, server, "ins_pm_a", epoch, goodbye=goodbye))


async def choose(database: Database, role: str = "pm") -> str | None:
    return await database.write_guarded(lambda tx: instances.place(tx, role))


async def read(database: Database, instance_id: str = "ins_pm_a") -> Instance:
    found = await database.read(lambda tx: instances.get(tx, instance_id))
    assert found is not None
    return found


async def status(database: Database) -> str:
    return (await read(database)).status.value


async def test_whoever_comes_again_is_the_same_instance(database: Database, clock: FrozenClock) -> None:
    """JOB-5: by request or by connection, under one id; each connection raises the epoch."""
    first = await database.write(lambda tx: instances.seen(tx, "ins_1", "pm", "a"))
    assert (first["id"], first["status"], first["epoch"], first["server"]) == ("ins_1", "online", 0, None)
    clock.advance(1)
    for epoch in (1, 2):
        row = await database.write(
            lambda tx: instances.connect(
                tx, "ins_2", "pm", "a", server="prc_1", version=None, max_in_flight=3
            )
        )
        assert (row["id"], row["epoch"], row["server"], row["max_in_flight"]) == ("ins_1", epoch, "prc_1", 3)
    found = await database.read(lambda tx: instances.named(tx, "pm", "a"))
    assert found is not None
    assert (found.id, found.version, found.in_flight) == ("ins_1", None, 0)
    assert await database.read(lambda tx: instances.named(tx, "dev", "a")) is None
    assert await database.read(lambda tx: instances.get(tx, "ins_2")) is None


async def test_a_sign_of_life_is_stamped_by_the_database_s_clock(
    database: Database, clock: FrozenClock
) -> None:
    """BRD-4."""
    await connect(database)
    clock.advance(5)
    row = await database.write(lambda tx: instances.seen(tx, "ins_x", "pm", "a"))
    assert row["last_heartbeat_at"] == AT + 5 * SECOND
    assert (row["server"], row["epoch"]) == ("prc_1", 1)  # a request ends no connection
    clock.advance(5)
    held = [("ins_pm_a", 1), ("ins_nobody", 1)]
    assert await database.write(lambda tx: instances.beat(tx, "prc_1", held)) == {"ins_pm_a"}
    assert (await one(database, "instances", id="ins_pm_a"))["last_heartbeat_at"] == AT + 10 * SECOND


@pytest.mark.parametrize(("server", "epoch"), [("prc_2", 2), ("prc_1", 1)])
async def test_a_replaced_connection_is_not_heard_any_more(
    database: Database, clock: FrozenClock, server: str, epoch: int
) -> None:
    """JOB-5: whoever holds it is told so by what is missing in the answer."""
    await connect(database)
    await connect(database)
    clock.advance(5)
    assert await database.write(lambda tx: instances.beat(tx, server, [("ins_pm_a", epoch)])) == set()
    assert (await read(database)).last_heartbeat_at.timestamp() * SECOND == AT


async def test_the_end_of_an_old_connection_takes_nothing_from_the_new(database: Database) -> None:
    """JOB-5, ws-05: guarded on server and epoch."""
    await connect(database)
    await connect(database, server="prc_2")
    assert not await gone(database, "prc_1", 1, goodbye=True)
    assert not await gone(database, "prc_2", 1, goodbye=True)
    assert not await gone(database, "prc_1", 2, goodbye=True)
    assert ((await read(database)).server, await status(database)) == ("prc_2", "online")
    assert await gone(database, "prc_2", 2)
    assert ((await read(database)).server, await status(database)) == (None, "online")
    assert not await gone(database, "prc_2", 2)


async def test_who_says_goodbye_is_offline_at_once_and_comes_back_online(database: Database) -> None:
    """JOB-5: who only lost its connection has until its heartbeat is overdue."""
    await connect(database)
    await database.write(lambda tx: instances.drain(tx, "ins_pm_a"))
    assert await gone(database, "prc_1", 1, goodbye=True)
    assert ((await read(database)).drain_asked_at, await status(database)) == (None, "offline")
    await database.write(lambda tx: instances.seen(tx, "ins_x", "pm", "a"))
    assert await status(database) == "online"


async def test_a_person_s_drain_lasts_until_it_was_offline(database: Database, clock: FrozenClock) -> None:
    """JOB-5: neither a request nor a reconnect ends it."""
    await connect(database)
    assert await database.write(lambda tx: instances.drain(tx, "ins_pm_a"))
    clock.advance(1)
    assert await database.write(lambda tx: instances.drain(tx, "ins_pm_a"))
    assert (await one(database, "instances", id="ins_pm_a"))["drain_asked_at"] == AT
    await database.write(lambda tx: instances.seen(tx, "ins_x", "pm", "a"))
    await connect(database)
    assert await status(database) == "draining"
    assert await choose(database) is None
    clock.advance(60)
    await database.write(lambda tx: instances.mark_offline(tx, "ins_pm_a", MINUTE))
    assert not await database.write(lambda tx: instances.drain(tx, "ins_pm_a"))
    await connect(database)
    assert await status(database) == "online"


async def test_its_own_drain_lasts_as_long_as_its_connection(database: Database) -> None:
    """JOB-5."""
    await connect(database)
    assert await database.write(lambda tx: instances.drain_itself(tx, "ins_pm_a", 1))
    assert not await database.write(lambda tx: instances.drain_itself(tx, "ins_pm_a", 1))
    assert await status(database) == "draining"
    await connect(database)
    assert await status(database) == "online"
    assert not await database.write(lambda tx: instances.drain_itself(tx, "ins_pm_a", 1))
    assert await status(database) == "online"


async def test_only_who_is_silent_for_the_timeout_is_marked_offline(
    database: Database, clock: FrozenClock
) -> None:
    """BRD-4; RUN-5b: and not right after a jump of the clock."""
    await connect(database)
    clock.advance(59.999999)
    assert await database.read(lambda tx: instances.overdue(tx, MINUTE, None, 10)) == []
    assert await database.write(lambda tx: instances.mark_offline(tx, "ins_pm_a", MINUTE)) is None
    clock.advance(0.000001)
    assert await database.read(lambda tx: instances.overdue(tx, MINUTE, MINUTE, 10)) == []
    (row,) = await database.read(lambda tx: instances.overdue(tx, MINUTE, MINUTE + 1, 10))
    assert (row["id"], row["epoch"], row["server"]) == ("ins_pm_a", 1, "prc_1")
    assert await database.write(lambda tx: instances.mark_offline(tx, "ins_pm_a", MINUTE)) == 1
    assert await database.write(lambda tx: instances.mark_offline(tx, "ins_pm_a", MINUTE)) is None
    assert await database.read(lambda tx: instances.overdue(tx, MINUTE, None, 10)) == []
    assert ((await read(database)).server, await status(database)) == (None, "offline")
    assert await database.write(lambda tx: instances.beat(tx, "prc_1", [("ins_pm_a", 1)])) == set()


async def test_who_is_long_offline_and_holds_nothing_is_forgotten(
    database: Database, clock: FrozenClock
) -> None:
    """JOB-5: a worker may have a new name with each start."""
    for name in ("a", "b", "c", "d"):
        await connect(database, name)
        await database.write(
            lambda tx, name=name: instances.gone(tx, "prc_1", f"ins_pm_{name}", 1, goodbye=name != "d")  # type: ignore[misc]
        )
    await add(database, "run_pushes", PUSH, run_id="run_1", instance_id="ins_pm_b")
    await add_trigger(database, instance_id="ins_pm_c")
    clock.advance(60)
    assert await database.write(lambda tx: instances.clean(tx, MINUTE, 9)) == 0
    clock.advance(0.000001)
    assert await database.write(lambda tx: instances.clean(tx, MINUTE, 9)) == 1
    found = await database.read(lambda tx: instances.page(tx, "", 9))
    assert [instance.name for instance in found] == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("process", "calm", "left"),
    [
        ({"heartbeat_at": AT}, None, True),
        ({"heartbeat_at": AT, "stopped_at": AT}, None, False),
        ({"heartbeat_at": AT - MINUTE}, None, False),
        ({"heartbeat_at": AT - MINUTE}, MINUTE, True),
        ({"heartbeat_at": AT - MINUTE + 1}, None, True),
        (None, None, False),
        (None, MINUTE, True),
    ],
)
async def test_what_a_dead_server_held_is_found(
    database: Database, process: dict[str, Any] | None, calm: int | None, left: bool
) -> None:
    """JOB-4: its connections are over, though nobody said so."""
    await connect(database)
    if process is not None:
        await add_process(database, id="prc_1", **process)
    found = await database.read(lambda tx: instances.stranded(tx, MINUTE, calm, 10))
    assert [row["id"] for row in found] == ([] if left else ["ins_pm_a"])


async def test_the_least_recently_used_one_is_chosen(database: Database, clock: FrozenClock) -> None:
    """JOB-2: round and round among those of the role."""
    for name in ("a", "b", "c"):
        await connect(database, name)
    await connect(database, "z", role="dev")
    chosen = []
    for _ in range(6):
        clock.advance(1)
        chosen.append(await choose(database))
    assert chosen == ["ins_pm_a", "ins_pm_b", "ins_pm_c"] * 2
    assert await choose(database, "nobody") is None


async def test_only_who_is_connected_and_online_is_chosen(database: Database) -> None:
    """JOB-2."""
    await database.write(lambda tx: instances.seen(tx, "ins_1", "pm", "by request"))
    assert await choose(database) is None
    await connect(database)
    assert await choose(database) == "ins_pm_a"
    await gone(database, "prc_1", 1)
    assert await choose(database) is None


async def test_nobody_is_filled_beyond_its_room(database: Database) -> None:
    """TGT-1: what has ended takes no place, what is open does, whatever its epoch."""
    await connect(database, room=2)
    await add(database, "run_pushes", PUSH, run_id="run_1", instance_id="ins_pm_a")
    over = {"status": "succeeded", "finished_at": AT}
    await add(database, "run_pushes", PUSH, run_id="run_2", instance_id="ins_pm_a", **over)
    assert (await read(database)).in_flight == 1
    assert await choose(database) == "ins_pm_a"
    await add_trigger(database, instance_id="ins_pm_a")
    assert (await read(database)).in_flight == 2
    assert await choose(database) is None


async def test_pages_go_by_id_and_filter(database: Database) -> None:
    for name in ("c", "a", "b"):
        await connect(database, name)
    await connect(database, "d", role="dev")
    await database.write(lambda tx: instances.drain(tx, "ins_pm_b"))

    async def page(after: str = "", limit: int = 10, **filters: Any) -> list[str]:
        found = await database.read(partial(instances.page, after=after, limit=limit, **filters))
        return [instance.name for instance in found]

    assert await page() == ["d", "a", "b", "c"]
    assert await page("ins_pm_a", 1) == ["b"]
    assert await page(role="pm") == ["a", "b", "c"]
    assert await page(role="pm", status=InstanceStatus.DRAINING) == ["b"]
    assert await page(status=InstanceStatus.OFFLINE) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "asleep"},
        {"epoch": -1},
        {"max_in_flight": 0},
        {"max_in_flight": 1_001},
        {"role": ""},
        {"name": "x" * 201},
        {"server": "prc_1"},
        {"server": "prc_1", "epoch": 1, "connected_at": AT, "status": "offline"},
        {"drain_asked_at": AT},
    ],
)
async def test_the_schema_refuses_what_the_edges_do(database: Database, wrong: dict[str, Any]) -> None:
    """JOB-5."""
    row = {
        "id": "ins_1",
        "role": "pm",
        "name": "a",
        "status": "online",
        "max_in_flight": 1,
        "last_heartbeat_at": AT,
        "created_at": AT,
    }
    with pytest.raises(CheckViolation):
        await add(database, "instances", row, **wrong)
    assert await execute(database, "SELECT * FROM instances") == []


async def place(database: Database, but: str = "") -> str | None:
    return await database.write_guarded(lambda tx: instances.place(tx, "pm", but=but))


async def test_a_place_is_taken_where_there_is_room(database: Database, clock: FrozenClock) -> None:
    """JOB-2: the least recently used comes first; what is in flight, runs and triggers alike, takes room."""
    assert await place(database) is None
    for name in "ab":
        await connect(database, name, room=2)
    for wanted in ("ins_pm_a", "ins_pm_b", "ins_pm_a"):
        clock.advance(1)
        assert await place(database) == wanted
    assert await place(database, "ins_pm_b") == "ins_pm_a"
    await add(database, "run_pushes", PUSH, run_id="run_1", instance_id="ins_pm_a")
    await add_trigger(database, **PUSHED)
    assert await place(database, "ins_pm_b") is None
    await execute(database, "UPDATE instances SET last_chosen_at = 0 WHERE name = 'a'")
    assert await place(database) == "ins_pm_b"
    await execute(database, "UPDATE instances SET status = 'draining' WHERE name = 'b'")
    assert await place(database) is None


async def test_a_place_that_was_taken_meanwhile_is_not_taken_again(database: Database) -> None:
    """JOB-2: between the look and the write others may have filled it."""
    await connect(database, room=1)
    waits = await add_trigger(database)

    async def late(tx: Tx) -> object:
        found = await tx.one("instances.candidate", role="pm", but="")
        assert found is not None
        await tx.run("triggers.give", id=waits["id"], instance_id=found["id"], repeat_us=1)
        return await tx.one("instances.place", id=found["id"])

    assert await database.write_guarded(late) is None
