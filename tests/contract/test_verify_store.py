"""A whole database read and judged on every engine (OPS-7): the same rows, the same breaches, page after page."""

import pytest

from gnomon.domain.breach import Breach, Invariant
from gnomon.services.verify import Verify
from gnomon.stores import verify
from gnomon.stores.database import Database, Tx
from support.board import LOCK_ROW, add_held, add_needs, add_task
from support.job_rows import PUSHED, TRIGGER, add_job, add_trigger
from support.rows import (
    AGENT,
    AT,
    OCCURRENCE,
    add,
    add_many,
    add_process,
    add_run,
    add_running,
    add_schedule,
)

SCHEDULE = OCCURRENCE["schedule_id"]
HOUR = 3_600_000_000
HOURLY = '{"unit":"hour","every":1,"zone":"UTC"}'
_I = Invariant


async def judged(database: Database) -> list[Breach]:
    found: list[Breach] = []
    await Verify(database, gapless=False).run(found.append)
    return found


async def test_an_empty_database_is_clean(database: Database) -> None:
    """OPS-7."""
    assert await judged(database) == []
    counts = await database.read(verify.counts)
    assert set(counts.values()) == {0}


async def test_each_table_is_read_and_judged(database: Database) -> None:
    """OPS-7: one breach of each query, whatever the engine."""
    await add(database, "agents", AGENT)
    standing = {"cadence": HOURLY, "next_fire_at": AT + HOUR, "in_flight_run_id": "run_gone"}
    await add_schedule(database, created_at=AT - HOUR, updated_at=AT - HOUR, **standing)
    await add_running(database, id="run_1", schedule_id=SCHEDULE, trigger_kind="manual", session_id="ses_1")
    await add_run(database, id="run_2", trigger_kind="invoke", claimable_at=None, output="said")
    change = {"schedule_id": SCHEDULE, "seq": 2, "at": AT, "status": "active", "changed_by": "ana"}
    await add(database, "status_changes", change)
    await add(database, "occurrences", OCCURRENCE, schedule_id="sch_none")
    attempt = {"run_id": "run_0", "fence": 1, "number": 1, "outcome": "failed"}
    await add(database, "attempts", attempt)
    await add(
        database, "checkpoints", {"run_id": "run_0", "node": "a", "fence": 1, "output": "x", "created_at": AT}
    )
    await add(
        database, "run_events", {"run_id": "run_0", "seq": 1, "at": AT, "kind": "progress", "data": "{}"}
    )
    key = {"id": "key_1", "name": "k", "hint": "abcd", "created_at": 0, "created_by": "ana", "hash": b"1"}
    await add(database, "api_keys", key, target_kind="team", target_id="tea_none")
    await add_held(database, "tsk_1")
    await add_task(database, "tsk_2", unmet=2)
    await add_task(database, "tsk_3", unmet=1)
    await add_needs(database, ("tsk_2", "tsk_3"), ("tsk_3", "tsk_2"), ("tsk_none", "tsk_1"))
    await add(database, "task_locks", LOCK_ROW, task_id="tsk_gone")
    await add_job(database, next_fire_at=AT + 1)
    await add_trigger(database, **PUSHED)
    await add_trigger(database, id="trg_2", job_id="job_gone")
    stamped = {
        "at": AT,
        "actor": "ana",
        "action": "TAKE_BACK",
        "subject_kind": "trigger",
        "subject_id": TRIGGER["id"],
    }
    for action in ("PUSH", "ACKNOWLEDGE", "TAKE_BACK"):
        await add(database, "audit", stamped, action=action)
    found = {(breach.invariant, breach.rows[0].table) for breach in await judged(database)}
    assert found == {
        (_I.LOCK_WITHOUT_RUN, "schedules"),
        (_I.SLOT_UNACCOUNTED, "schedules"),
        (_I.STATUS_HISTORY_WRONG, "schedules"),
        (_I.RECORD_OF_NOTHING, "occurrences"),
        (_I.RUN_WITHOUT_LOCK, "runs"),
        (_I.RUN_HELD_BY_NOBODY, "runs"),
        (_I.FENCE_AHEAD, "runs"),
        (_I.END_WITHOUT_CLAIM, "runs"),
        (_I.RUN_NEVER_CLAIMABLE, "runs"),
        (_I.RUN_WITHOUT_TURN, "runs"),
        (_I.TASK_GATE_WRONG, "tasks"),
        (_I.END_WITHOUT_CLAIM, "task_locks"),
        (_I.TASK_NEEDS_ITSELF, "task_prerequisites"),
        (_I.STRAY_ROWS, "task_prerequisites"),
        (_I.STRAY_ROWS, "task_locks"),
        (_I.JOB_NEXT_SLOT_WRONG, "jobs"),
        (_I.TRIGGER_WRONG, "triggers"),
        (_I.TRIGGER_STEPS_WRONG, "audit"),
        (_I.STRAY_ROWS, "attempts"),
        (_I.STRAY_ROWS, "checkpoints"),
        (_I.STRAY_ROWS, "events"),
        (_I.KEY_OPENS_NOTHING, "api_keys"),
    }


async def test_runs_of_an_erased_slot_are_counted(database: Database) -> None:
    """DSP-6, RUN-12."""
    await add_schedule(database)
    erased = {"run_id": None, "session_id": None, "links_erased_at": AT}
    await add(database, "occurrences", OCCURRENCE, **erased)
    for number in (1, 2):
        await add_run(database, id=f"run_{number}", schedule_id=SCHEDULE, nominal_fire_at=AT, session_id="")

    async def pairs(tx: Tx) -> list[tuple[str, str]]:
        return [(row["first_run"], row["last_run"]) async for row in verify.twice_erased(tx)]

    assert await database.read(pairs) == [("run_1", "run_2")]


@pytest.mark.parametrize(
    "noun",
    [
        *("runs", "audit", "schedules", "occurrences", "tasks", "needs", "stray_locks"),
        *("jobs", "triggers"),
    ],
)
async def test_a_page_begins_where_the_one_before_it_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch, noun: str
) -> None:
    """OPS-7: every row once, however small a page is."""
    monkeypatch.setattr(verify, "PAGE", 3)
    await add_process(database)
    ids = [f"{number:02}" for number in range(10)]
    for number, name in enumerate(ids):
        await add_run(database, id=f"run_{name}")
        await add_schedule(database, id=f"sch_{name}")
        await add_job(database, id=f"job_{name}", slug=name)
        await add_trigger(
            database, id=f"trg_{name}", job_id=f"job_0{number % 2}", nominal_fire_at=AT + number
        )
        await add_task(database, f"tsk_{name}")
        await add_needs(database, ("tsk_00", f"tsk_1{name}"))
        await add(database, "task_locks", LOCK_ROW, task_id=f"tsk_1{name}")
        await add(database, "occurrences", OCCURRENCE, nominal_fire_at=AT + number)
    entry = {"at": AT, "actor": "ana", "action": "WARN", "subject_kind": "agent", "subject_id": "agt_1"}
    await add_many(database, "audit", [entry] * 10)

    async def count(tx: Tx) -> list[object]:
        found = verify.occurrences(tx, SCHEDULE) if noun == "occurrences" else getattr(verify, noun)(tx)
        return [tuple(sorted(row.items(), key=str)) async for row in found]

    rows = await database.read(count)
    assert len(rows) == 10
    assert len(set(rows)) == 10
