"""The board on every engine: tasks, what they need, who takes which, and what a holder may still write (BRD)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.filters import TaskFilter
from gnomon.domain.task import Need, TaskStatus
from gnomon.stores import tasks
from gnomon.stores.database import CheckViolation, Database, Row, Tx, UniqueViolation
from gnomon.testing.clock import FrozenClock
from support.board import (
    LOCK,
    LOCK_ROW,
    SAID,
    TASK,
    add_held,
    add_needs,
    add_task,
    claim,
    held,
    read,
    said,
)
from support.databases import START
from support.rows import AT, SECOND, add, execute, one

pytestmark = pytest.mark.anyio
TIMEOUT = 120 * SECOND
NEW = {
    "id": "tsk_1",
    "role": "pm",
    "title": "Look",
    "body": "at\nit",
    "priority": 5,
    "unmet": 0,
    "dedup_key": "k",
    "dedup_mark": "m",
    "created_by": "key_1",
}


async def move(database: Database, status: str, *, fence: int = 1, **given: Any) -> bool:
    """The task of ``add_held`` after its lock went."""
    asked = {"role": None, "last_report": None, "half_done": False} | given
    return await database.write(
        lambda tx: tasks.move(
            tx,
            "tsk_1",
            fence,
            TaskStatus(status),
            asked["role"],
            asked["last_report"],
            half_done=asked["half_done"],
        )
    )


async def expired(database: Database, calm_us: int | None = None, limit: int = 100) -> Sequence[Row]:
    """What a sweep sees."""
    return await database.write(lambda tx: tasks.expired(tx, TIMEOUT, calm_us, limit))


# --- written by people ------------------------------------------------------------------------------------------------


async def test_a_task_comes_back_as_it_went_in(database: Database) -> None:
    assert await database.write(lambda tx: tasks.insert(tx, NEW))
    found = await read(database)
    assert (found.role, found.title, found.body, found.priority, found.dedup_key) == (
        "pm",
        "Look",
        "at\nit",
        5,
        "k",
    )
    assert (found.status, found.fence, found.needs, found.held_by, found.last_report) == (
        TaskStatus.BACKLOG,
        0,
        (),
        None,
        None,
    )
    assert (found.created_at, found.updated_at) == (START, START)
    assert await database.read(lambda tx: tasks.get(tx, "tsk_none")) is None


async def test_of_many_asked_for_those_are_answered_that_are_there(database: Database) -> None:
    for number in (1, 2):
        await add_task(database, f"tsk_{number}", title=f"Look {number}")
    found = await database.read(lambda tx: tasks.records(tx, ["tsk_2", "tsk_none", "tsk_1"]))
    assert {task_id: task.title for task_id, task in found.items()} == {"tsk_1": "Look 1", "tsk_2": "Look 2"}


async def test_a_dedup_key_is_taken_once(database: Database) -> None:
    """IDM-2: the second writes nothing, and finds what the first made."""
    assert await database.write(lambda tx: tasks.insert(tx, NEW))
    assert not await database.write(lambda tx: tasks.insert(tx, {**NEW, "id": "tsk_2"}))
    assert await database.read(lambda tx: tasks.under_key(tx, "k")) == ("tsk_1", "m")
    assert await database.read(lambda tx: tasks.under_key(tx, "other")) is None
    keyless = {**NEW, "dedup_key": None, "dedup_mark": None}
    for number in (3, 4):
        assert await database.write(lambda tx, n=number: tasks.insert(tx, {**keyless, "id": f"tsk_{n}"}))  # type: ignore[misc]


async def test_pages_go_by_id_and_are_filtered(database: Database) -> None:
    for number in range(1, 5):
        await add_task(database, f"tsk_{number}", role="pm" if number % 2 else "dev", status="blocked")
    await add_held(database, "tsk_5")

    async def ids(after: str = "", limit: int = 10, **chosen: Any) -> list[str]:
        found = await database.read(lambda tx: tasks.page(tx, TaskFilter(**chosen), after, limit))
        return [task.id for task in found]

    assert await ids(limit=3) == ["tsk_1", "tsk_2", "tsk_3"]
    assert await ids(after="tsk_3") == ["tsk_4", "tsk_5"]
    assert await ids(role="pm", status=TaskStatus.BLOCKED) == ["tsk_1", "tsk_3"]
    assert await ids(holder="a") == await ids(holder="ins_1") == ["tsk_5"]
    assert await ids(holder="a", after="tsk_5") == await ids(holder="a", role="dev") == []


async def test_a_dedup_key_finds_its_task(database: Database) -> None:
    """IDM-2: whoever is about to make it looks first."""
    await add_task(database, "tsk_1")
    await add_held(database, "tsk_2")
    await execute(database, "UPDATE tasks SET dedup_key = 'k', dedup_mark = 'm' WHERE id = 'tsk_2'")

    async def ids(after: str = "", **chosen: Any) -> list[str]:
        found = await database.read(lambda tx: tasks.page(tx, TaskFilter(dedup_key="k", **chosen), after, 10))
        return [task.id for task in found]

    assert await ids() == await ids(role="pm", holder="a") == await ids(holder="ins_1") == ["tsk_2"]
    assert await ids(status=TaskStatus.IN_PROGRESS, after="tsk_1") == ["tsk_2"]
    assert await ids(role="dev") == await ids(holder="b") == await ids(after="tsk_2") == []
    assert await ids(status=TaskStatus.DONE) == []
    nothing = TaskFilter(dedup_key="other")
    assert await database.read(lambda tx: tasks.page(tx, nothing, "", 10)) == []


async def test_what_is_edited_is_written_unless_somebody_holds_it(database: Database) -> None:
    fields: dict[str, Any] = {"role": "qa", "title": "T", "body": "B", "priority": 1, "unmet": 2}
    await add_task(database, half_done=1)
    assert await database.write(lambda tx: tasks.update(tx, "tsk_1", status="backlog", **fields))
    assert await database.write(
        lambda tx: tasks.update(tx, "tsk_1", status="backlog", **{**fields, "unmet": None})
    )
    row = await one(database, "tasks", id="tsk_1")
    assert (row["role"], row["title"], row["body"], row["unmet"], row["half_done"]) == ("qa", "T", "B", 2, 1)
    assert await database.write(lambda tx: tasks.update(tx, "tsk_1", status="done", **fields))
    assert (await one(database, "tasks", id="tsk_1"))["half_done"] == 0, "a person has said how it stands"
    await add_held(database, "tsk_2")
    assert not await database.write(lambda tx: tasks.update(tx, "tsk_2", status="done", **fields))
    assert not await database.write(lambda tx: tasks.delete(tx, "tsk_2"))
    assert (await read(database, "tsk_2")).status is TaskStatus.IN_PROGRESS


async def test_a_deleted_task_takes_its_needs_along(database: Database) -> None:
    await add_task(database)
    await add_task(database, "tsk_2", unmet=1)
    await add_needs(database, ("tsk_2", "tsk_1"))
    assert await database.write(lambda tx: tasks.delete(tx, "tsk_2"))
    assert not await database.write(lambda tx: tasks.delete(tx, "tsk_2"))
    assert await execute(database, "SELECT * FROM task_prerequisites") == []


async def test_needs_are_written_read_and_replaced(database: Database) -> None:
    """BRD-8: up to the top, across roles."""
    for number in range(1, 5):
        await add_task(database, f"tsk_{number}", role=f"r{number}")
    await database.write(lambda tx: tasks.need(tx, "tsk_2", ["tsk_1"]))
    await database.write(lambda tx: tasks.need(tx, "tsk_3", ["tsk_2", "tsk_1"]))
    assert (await read(database, "tsk_3")).needs == (
        Need("tsk_1", TaskStatus.BACKLOG),
        Need("tsk_2", TaskStatus.BACKLOG),
    )
    above = await database.write(lambda tx: tasks.needs_above(tx, ["tsk_3", "tsk_4"]))
    assert {name: sorted(needed) for name, needed in above.items()} == {
        "tsk_3": ["tsk_1", "tsk_2"],
        "tsk_2": ["tsk_1"],
    }
    assert await database.read(lambda tx: tasks.dependants(tx, "tsk_1", 9)) == ["tsk_2", "tsk_3"]
    assert await database.read(lambda tx: tasks.dependants(tx, "tsk_1", 1)) == ["tsk_2"]
    await database.write(lambda tx: tasks.need_instead(tx, "tsk_3", ["tsk_4"]))
    assert [need.task_id for need in (await read(database, "tsk_3")).needs] == ["tsk_4"]
    assert await database.write(lambda tx: tasks.statuses(tx, ["tsk_1", "tsk_9"])) == {
        "tsk_1": TaskStatus.BACKLOG
    }
    assert await database.write(lambda tx: tasks.statuses(tx, [])) == {}
    await database.write(lambda tx: tasks.hold(tx, ["tsk_9", "tsk_1"]))


async def test_gates_open_and_close_by_one(database: Database) -> None:
    """BRD-1: a claim looks at no task that waits for another."""
    await add_task(database, "tsk_1", status="done")
    await add_task(database, "tsk_2", unmet=2)
    await add_task(database, "tsk_3", unmet=1, priority=-1)
    await add_needs(database, ("tsk_2", "tsk_1"), ("tsk_3", "tsk_1"))
    assert await claim(database, 9) == []
    assert not await database.read(lambda tx: tasks.is_waiting(tx, "pm"))
    await database.write(lambda tx: tasks.open_gates(tx, "tsk_1"))
    assert await database.read(tasks.depths) == {"pm": 1}
    assert [lock.task_id for lock in await claim(database, 9)] == ["tsk_3"]
    await database.write(lambda tx: tasks.close_gates(tx, "tsk_1"))
    rows = await execute(database, "SELECT id, unmet FROM tasks ORDER BY id")
    assert [(row["id"], row["unmet"]) for row in rows] == [("tsk_1", 0), ("tsk_2", 2), ("tsk_3", 1)]


# --- claimed ----------------------------------------------------------------------------------------------------------


async def test_a_claim_takes_the_most_urgent_then_the_oldest_of_its_role(database: Database) -> None:
    """BRD-1."""
    for number, priority in enumerate((0, 7, 0, 7, 3), 1):
        await add_task(database, f"tsk_{number}", priority=priority)
    await add_task(database, "tsk_6", role="dev", priority=9)
    for number, status in enumerate(("in_review", "blocked", "done", "cancelled"), 7):
        await add_task(database, f"tsk_{number}", status=status, priority=9)
    await add_task(database, "tsk_a", unmet=1, priority=9)
    first = await claim(database, 3)
    assert sorted(lock.task_id for lock in first) == ["tsk_2", "tsk_4", "tsk_5"]
    assert {(lock.fence, lock.expires_at) for lock in first} == {(1, AT + LOCK)}
    rest = await claim(database, 9, instance="b")
    assert sorted(lock.task_id for lock in rest) == ["tsk_1", "tsk_3"]
    assert await claim(database, 9) == []
    found = await read(database, "tsk_2")
    assert found.held_by is not None
    assert (found.status, found.held_by.instance, found.held_by.fence) == (TaskStatus.IN_PROGRESS, "a", 1)
    assert found.held_by.since == START
    assert found.held_by.expires_at == START + timedelta(seconds=120)
    locks = await execute(database, "SELECT * FROM task_locks WHERE task_id = 'tsk_2'")
    assert locks == [{**LOCK_ROW, "task_id": "tsk_2", "instance_id": "ins_a"}]


async def test_a_fence_grows_with_each_claim_for_ever(database: Database) -> None:
    await add_task(database, fence=41)
    [lock] = await claim(database)
    assert lock.fence == 42
    assert (await read(database)).fence == 42


async def test_there_is_room_for_one_lock(database: Database) -> None:
    """BRD-1: the primary key; a lock that should not be there keeps its task from a second holder."""
    await add_task(database)
    await add(database, "task_locks", LOCK_ROW)
    assert await claim(database) == []
    with pytest.raises(UniqueViolation):
        await add(database, "task_locks", LOCK_ROW, instance_id="ins_2", fence=2)


async def test_a_claim_passes_over_what_is_being_claimed_and_never_waits(
    database: Database, neighbour: Database
) -> None:
    """BRD-1: of two claims that overlap in time each gets its own; the second does not wait for the first's commit."""
    for number in range(1, 5):
        await add_task(database, f"tsk_{number}")
    inside, over = asyncio.Event(), asyncio.Event()

    async def slow(tx: Tx) -> list[str]:
        given = {"claim_id": "clm_1", "claimed_by": "k", "lock_us": LOCK, "limit": 2}
        locks = await tasks.claim(tx, "pm", "ins_1", **given)  # type: ignore[arg-type]
        inside.set()
        if hasattr(database, "address"):  # on SQLite there is one writer at a time
            await asyncio.wait_for(over.wait(), 10)
        return [lock.task_id for lock in locks]

    first = asyncio.create_task(database.write_guarded(slow))
    if hasattr(database, "address"):
        await asyncio.wait_for(inside.wait(), 10)
        second = [lock.task_id for lock in await asyncio.wait_for(claim(neighbour, 2, instance="b"), 10)]
        over.set()
    else:
        await first
        second = [lock.task_id for lock in await claim(neighbour, 2, instance="b")]
    assert (sorted(await first), sorted(second)) == (["tsk_1", "tsk_2"], ["tsk_3", "tsk_4"])


async def test_a_claim_is_found_by_its_id(database: Database) -> None:
    """RUN-5a: the instance's own, by the name that it gave."""
    await add_task(database)
    taken = await claim(database, claim_id="mine")
    assert await database.read(lambda tx: tasks.under_claim(tx, "ins_a", "mine")) == taken
    for instance_id, claim_id in (("ins_b", "mine"), ("ins_a", "other")):
        assert await database.read(lambda tx, i=instance_id, c=claim_id: tasks.under_claim(tx, i, c)) == []  # type: ignore[misc]


# --- written by holders -----------------------------------------------------------------------------------------------

NOT_THE_HOLDER = [
    held("tsk_2"),
    held(fence=0),
    held(fence=2),
    held(actor="key_2"),
    held(instance="b"),
    held(actor="key_2", instance="b"),
]


async def test_the_holder_renews_by_key_or_by_name(database: Database, clock: FrozenClock) -> None:
    """BRD-2: for another window from now on, by the database's clock."""
    await add_held(database)
    for seconds, who in ((60, held()), (120, held(actor="key_2", instance="a")), (180, held(instance="a"))):
        clock.advance(60)
        row = await database.write(lambda tx, who=who: tasks.renew(tx, who, LOCK))  # type: ignore[misc]
        assert row is not None
        assert (row["expires_at"], row["instance"], row["role"]) == (AT + seconds * SECOND + LOCK, "a", "pm")
    lock = await one(database, "task_locks", task_id="tsk_1")
    assert (lock["claimed_at"], lock["renewed_at"]) == (AT, AT + 180 * SECOND)


@pytest.mark.parametrize("who", NOT_THE_HOLDER, ids=str)
async def test_nobody_else_renews(database: Database, who: tasks.Hold) -> None:
    """BRD-2."""
    await add_held(database)
    assert await database.write(lambda tx: tasks.renew(tx, who, 2 * LOCK)) is None
    assert (await one(database, "task_locks", task_id="tsk_1"))["expires_at"] == AT + LOCK


@pytest.mark.parametrize("who", NOT_THE_HOLDER, ids=str)
async def test_nobody_else_releases(database: Database, who: tasks.Hold) -> None:
    """BRD-3."""
    await add_held(database)
    assert await database.write(lambda tx: tasks.release(tx, who)) is None
    assert await one(database, "task_locks", task_id="tsk_1")


async def test_the_holder_releases_once(database: Database) -> None:
    """BRD-3."""
    await add_held(database)
    row = await database.write(lambda tx: tasks.release(tx, held()))
    assert row is not None
    assert (row["instance"], row["role"]) == ("a", "pm")
    assert await database.write(lambda tx: tasks.release(tx, held())) is None
    assert await database.write(lambda tx: tasks.renew(tx, held(), LOCK)) is None


async def test_a_person_releases_whoever_holds_it(database: Database) -> None:
    await add_held(database, fence=8)
    row = await database.write(lambda tx: tasks.release_by_force(tx, "tsk_1"))
    assert row is not None
    assert (row["fence"], row["instance"]) == (8, "a")
    assert await database.write(lambda tx: tasks.release_by_force(tx, "tsk_1")) is None


async def test_what_a_holder_says_in_the_middle_is_kept(database: Database) -> None:
    """BRD-6: by the holder's fence alone."""
    await add_held(database)
    await database.write(lambda tx: tasks.note(tx, "tsk_1", 2, said(note="zombie")))
    assert (await read(database)).last_report is None
    await database.write(lambda tx: tasks.note(tx, "tsk_1", 1, said()))
    report = (await read(database)).last_report
    assert report is not None
    assert (report.note, report.result, report.at) == (SAID["note"], SAID["result"], START)
    await execute(database, "UPDATE tasks SET status = 'blocked'")
    await database.write(lambda tx: tasks.note(tx, "tsk_1", 1, said(note="late")))
    assert (await one(database, "tasks", id="tsk_1"))["last_report"] == said()


@pytest.mark.parametrize(
    ("before", "status", "forced", "after"),
    [
        (0, "done", False, 0),
        (1, "done", False, 0),
        (1, "blocked", False, 0),
        (1, "backlog", False, 1),
        (0, "backlog", False, 0),
        (0, "backlog", True, 1),
    ],
)
async def test_who_reports_has_looked_and_who_gives_back_has_not(
    database: Database, before: int, status: str, *, forced: bool, after: int
) -> None:
    """BRD-6."""
    await add_held(database)
    await execute(database, "UPDATE tasks SET half_done = :before", before=before)
    assert await move(database, status, half_done=forced)
    row = await one(database, "tasks", id="tsk_1")
    assert (row["status"], row["half_done"]) == (status, after)


async def test_a_task_moves_on_once_and_under_its_fence(database: Database, clock: FrozenClock) -> None:
    """BRD-3."""
    await add_held(database)
    assert not await move(database, "done", fence=2)
    clock.advance(5)
    assert await move(database, "backlog", role="qa", last_report=said(status="backlog"))
    row = await one(database, "tasks", id="tsk_1")
    assert (row["role"], row["status"], row["last_report"]) == ("qa", "backlog", said(status="backlog"))
    assert row["reported_at"] == row["updated_at"] == AT + 5 * SECOND
    assert not await move(database, "done")
    assert (await read(database)).status is TaskStatus.BACKLOG


async def test_a_release_without_a_word_keeps_the_last_one(database: Database) -> None:
    """BRD-6: what the last holder reported stays."""
    await add_held(database)
    await database.write(lambda tx: tasks.note(tx, "tsk_1", 1, said()))
    assert await move(database, "backlog", half_done=True)
    report = (await read(database)).last_report
    assert report is not None
    assert report.note == SAID["note"]


# --- taken from the silent --------------------------------------------------------------------------------------------


async def test_a_window_that_is_over_is_seen_with_its_reason(database: Database, clock: FrozenClock) -> None:
    """BRD-4."""
    await add_held(database)
    await execute(database, "UPDATE instances SET last_heartbeat_at = :later", later=AT + 999 * SECOND)
    clock.advance(119.999999)
    assert await expired(database) == []
    clock.advance(0.000001)
    [row] = await expired(database)
    assert (row["task_id"], row["fence"], row["why"], row["instance"]) == ("tsk_1", 1, "lease", "a")


async def test_a_silent_holder_is_seen_although_its_window_is_open(
    database: Database, clock: FrozenClock
) -> None:
    """BRD-4."""
    await add_held(database, expires_at=AT + 999 * SECOND)
    clock.advance(119.999999)
    assert await expired(database) == []
    clock.advance(0.000001)
    [row] = await expired(database)
    assert row["why"] == "heartbeat"


@pytest.mark.parametrize(("calm", "seen"), [(None, 2), (121, 2), (120, 0), (1, 0)])
async def test_after_a_jump_nothing_is_taken_for_the_length_of_a_window(
    database: Database, clock: FrozenClock, calm: int | None, seen: int
) -> None:
    """RUN-5b: neither what looks expired nor whose holder looks silent."""
    await add_held(database)
    await add_held(database, "tsk_2", expires_at=AT + 9_999 * SECOND)
    clock.advance(600)
    found = await expired(database, calm_us=None if calm is None else calm * SECOND)
    assert len(found) == seen


async def test_what_is_taken_goes_back_to_the_backlog_possibly_half_done(
    database: Database, clock: FrozenClock
) -> None:
    """BRD-4, BRD-6; a limit takes the longest overdue."""
    await add_held(database)
    await add_held(database, "tsk_2", fence=7, expires_at=AT + LOCK - 1)
    clock.advance(300)
    assert [row["task_id"] for row in await expired(database, limit=1)] == ["tsk_2"]
    rows = await expired(database)
    assert await database.write(lambda tx: tasks.expire(tx, rows)) == {"tsk_1", "tsk_2"}
    for task_id, fence in (("tsk_1", 1), ("tsk_2", 7)):
        found = await read(database, task_id)
        assert (found.status, found.possibly_half_done, found.held_by, found.fence) == (
            TaskStatus.BACKLOG,
            True,
            None,
            fence,
        )
    assert await database.write(lambda tx: tasks.expire(tx, rows)) == set(), "two sweeps take a claim once"


async def test_what_was_renewed_or_claimed_anew_since_it_was_seen_stays(
    database: Database, clock: FrozenClock
) -> None:
    """BRD-4: a sweep takes what it saw and nothing else."""
    for number in (1, 2, 3):
        await add_held(database, f"tsk_{number}")
    clock.advance(300)
    rows = await expired(database)
    await database.write(lambda tx: tasks.renew(tx, held(), LOCK))
    await execute(database, "UPDATE task_locks SET fence = 2 WHERE task_id = 'tsk_2'")
    assert await database.write(lambda tx: tasks.expire(tx, rows)) == {"tsk_3"}
    for task_id in ("tsk_1", "tsk_2"):
        assert (await read(database, task_id)).status is TaskStatus.IN_PROGRESS


async def test_the_next_end_is_of_what_is_still_held(database: Database, clock: FrozenClock) -> None:
    """BRD-5."""
    assert await database.read(tasks.next_end) is None
    await add_held(database)
    await add_held(database, "tsk_2", expires_at=AT + 2 * LOCK)
    assert await database.read(tasks.next_end) == LOCK
    clock.advance(120)
    assert await database.read(tasks.next_end) == LOCK


# --- the schema -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"role": ""},
        {"title": ""},
        {"title": "x" * 201},
        {"body": "x" * 100_001},
        {"priority": 1_000_001},
        {"priority": -1_000_001},
        {"status": "doing"},
        {"status": "in_progress"},
        {"unmet": -1},
        {"fence": -1},
        {"half_done": 2},
        {"last_report": "{}"},
        {"reported_at": 1},
        {"dedup_key": "k"},
        {"dedup_key": "", "dedup_mark": "m"},
    ],
    ids=",".join,
)
async def test_the_schema_refuses_what_can_t_be(database: Database, changes: dict[str, Any]) -> None:
    """CAD-1's rule for the board: what the API bounds, the database bounds too."""
    with pytest.raises(CheckViolation):
        await add(database, "tasks", TASK, **changes)


@pytest.mark.parametrize("changes", [{"fence": 0}, {"claim_id": ""}, {"expires_at": AT}])
async def test_the_schema_refuses_a_lock_that_can_t_be(database: Database, changes: dict[str, Any]) -> None:
    with pytest.raises(CheckViolation):
        await add(database, "task_locks", LOCK_ROW, **changes)


async def test_the_schema_refuses_a_task_that_needs_itself(database: Database) -> None:
    """BRD-8."""
    with pytest.raises(CheckViolation):
        await add_needs(database, ("tsk_1", "tsk_1"))
