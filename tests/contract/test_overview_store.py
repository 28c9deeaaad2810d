"""The overview's numbers and usage on every engine: what is counted, and by which index (UI-1, HOUSE rule 5)."""

from typing import Any

import pytest

from gnomon.domain.ids import Kind, make_id
from gnomon.domain.usage import Grouping
from gnomon.stores import overview
from gnomon.stores.database import Database
from support.board import LOCK_ROW, add_task
from support.plans import plan, scanned
from support.rows import (
    AGENT,
    AT,
    RUN,
    SCHEDULE,
    SECOND,
    add,
    add_many,
    add_process,
    add_run,
    add_running,
    add_schedule,
)

DAY = 86_400 * SECOND
ALL = Grouping.of({"day", "target", "principal"})
JOB: dict[str, Any] = {
    **{name: SCHEDULE[name] for name in ("cadence", "unit", "every", "anchor_at", "next_fire_at")},
    **{name: SCHEDULE[name] for name in ("created_at", "created_by", "updated_at", "updated_by")},
    "role": "pm",
    "name": "Digest",
    "payload": "{}",
    "dedup_key": "d",
    "enabled": 1,
    "version": 1,
}
TRIGGER: dict[str, Any] = {
    "job_id": "job_1",
    "dedup_key": "d",
    "payload": "{}",
    "status": "pending",
    "wait_until": AT + DAY,
    "created_at": AT,
}
INSTANCE = {"role": "pm", "last_heartbeat_at": AT, "created_at": AT}


def ended(number: int, status: str, at: int, **changes: Any) -> dict[str, Any]:
    """A run that ended at an instant, under an id of that instant."""
    run_id = make_id(Kind.RUN, at // 1_000, number)
    return {**RUN, "id": run_id, "status": status, "claimable_at": None, "finished_at": at, **changes}


async def test_schedules_jobs_instances_and_processes_are_counted(database: Database) -> None:
    for number, status in enumerate(("active", "active", "paused", "error")):
        await add_schedule(database, id=f"sch_{number}", status=status)
    await add_schedule(database, id="sch_gone", deleted_at=AT)
    aside = {"enabled": 0, "next_fire_at": None, "error": "no slot"}
    await add(database, "jobs", JOB, id="job_1", slug="a")
    await add(database, "jobs", JOB, id="job_2", slug="b", **aside)
    await add(database, "jobs", JOB, id="job_3", slug="c", next_fire_at=None, deleted_at=AT)
    for name, status in (("a", "online"), ("b", "online"), ("c", "offline")):
        await add(database, "instances", INSTANCE, id=f"ins_{name}", name=name, status=status)
    await add_process(database, id="prc_1")
    await add_process(database, id="prc_2", heartbeat_at=AT - 120 * SECOND)
    await add_process(database, id="prc_3", stopped_at=AT)
    assert await database.read(overview.schedules) == {"active": 2, "paused": 1, "error": 1}
    jobs = dict(await database.read(overview.jobs))
    assert jobs == {"all_jobs": 2, "enabled": 1, "set_aside": 1}
    assert {type(count) for count in jobs.values()} == {int}  # one engine's sums are numbers of another kind
    found = [tuple(row.values()) for row in await database.read(overview.instances)]
    assert found == [("pm", "offline", 1), ("pm", "online", 2)]
    assert await database.read(lambda tx: overview.processes(tx, 120 * SECOND)) == 1


async def test_what_waits_and_what_is_late_is_counted(database: Database) -> None:
    await add_schedule(database, id="sch_1", next_fire_at=AT - 61 * SECOND)
    await add_schedule(database, id="sch_2", next_fire_at=AT - 59 * SECOND)
    await add(database, "jobs", JOB, id="job_1", slug="a", next_fire_at=AT - 61 * SECOND)
    await add_run(database, id="run_1", claimable_at=AT - 61 * SECOND)
    await add_run(database, id="run_2", priority=0, claimable_at=AT + SECOND)
    await add_run(database, id="run_3", claimable_at=None, waits_for="run_1")
    await add_running(database, id="run_4")
    await add(database, "triggers", TRIGGER, id="trg_1", nominal_fire_at=AT)
    found = dict(await database.read(lambda tx: overview.queue(tx, 60 * SECOND)))
    assert found == {
        "queued": 2,
        "waiting": 1,
        "running": 1,
        "late_runs": 1,
        "late_slots": 1,
        "late_jobs": 1,
        "waiting_triggers": 1,
    }


async def test_what_ended_is_counted_among_the_newest(database: Database) -> None:
    days = (("succeeded", 0), ("succeeded", 1), ("failed", 1), ("succeeded", 9))
    runs = [ended(n, status, AT - day * DAY) for n, (status, day) in enumerate(days)]
    await add_many(database, "runs", runs)
    from_id = make_id(Kind.RUN, (AT - 8 * DAY) // 1_000, 0)

    async def counted(most: int) -> set[tuple[Any, ...]]:
        rows = await database.read(
            lambda tx: overview.runs_ended(tx, from_id, AT - 7 * DAY, AT - DAY // 2, most)
        )
        assert {type(count) for row in rows for count in list(row.values())[1:]} == {int}
        return {tuple(row.values()) for row in rows}

    assert await counted(9) == {("succeeded", 2, 2, 1), ("failed", 1, 1, 0)}
    assert await counted(1) == {("succeeded", 1, 1, 1)}


async def test_triggers_that_ended_are_counted_alike(database: Database) -> None:
    for number, (status, reason) in enumerate((("succeeded", None), ("missed", "no_instance"))):
        over = {"status": status, "reason": reason, "finished_at": AT, "payload": None}
        trigger_id = make_id(Kind.TRIGGER, AT // 1_000, number)
        await add(database, "triggers", TRIGGER, id=trigger_id, nominal_fire_at=AT + number, **over)
    rows = await database.read(lambda tx: overview.triggers_ended(tx, "trg_", AT - DAY, AT, 9))
    assert {tuple(row.values()) for row in rows} == {("succeeded", 1, 1, 1), ("missed", 1, 1, 1)}


async def test_locks_that_expired_are_counted_by_what_they_were_on(database: Database) -> None:
    entry = {"actor": "watchdog", "action": "EXPIRE", "subject_id": "x"}
    for at, kind in ((AT, "run"), (AT, "task"), (AT, "task"), (AT - DAY, "run")):
        await add(database, "audit", entry, at=at, subject_kind=kind)
    await add(database, "audit", {**entry, "action": "CLAIM"}, at=AT, subject_kind="run")
    assert await database.read(lambda tx: overview.expired(tx, AT)) == {"run": 1, "task": 2}


async def test_tasks_are_counted_by_role_and_state(database: Database) -> None:
    for task_id, role, changes in (
        ("tsk_1", "pm", {}),
        ("tsk_2", "pm", {"unmet": 1}),
        ("tsk_3", "pm", {"status": "in_review"}),
        ("tsk_4", "dev", {"status": "blocked", "unmet": 2}),
        ("tsk_5", "dev", {"status": "in_progress", "fence": 1}),
        ("tsk_6", "dev", {"status": "done"}),
        ("tsk_7", "dev", {"status": "done", "updated_at": AT - DAY}),
        ("tsk_8", "dev", {"status": "cancelled"}),
    ):
        await add_task(database, task_id, role=role, **changes)
    await add(database, "task_locks", LOCK_ROW, task_id="tsk_5")
    found = {tuple(row.values()) for row in await database.read(overview.tasks_open)}
    assert found == {
        ("pm", "claimable", 1),
        ("pm", "gated", 1),
        ("pm", "in_review", 1),
        ("dev", "blocked", 1),
        ("dev", "in_progress", 1),
    }
    assert await database.read(lambda tx: overview.tasks_done(tx, AT)) == 1


async def spend(database: Database) -> None:
    """Runs with usage on two days, of two targets, asked for by two people."""
    await add(database, "agents", AGENT)
    await add_schedule(database, invoke_as="ana@example.org")
    used = {"model_calls": 1, "input_tokens": 10, "output_tokens": 5, "cost": 0.25}
    await add_many(
        database,
        "runs",
        [
            ended(1, "succeeded", AT, **used, invoked_by="key_1", schedule_id=None),
            ended(2, "failed", AT, **used, invoked_by=None, schedule_id=SCHEDULE["id"]),
            ended(3, "succeeded", AT - DAY, **used, invoked_by="key_1", schedule_id=None),
            ended(4, "succeeded", AT, **used, invoked_by="key_1", schedule_id=None) | {"target_id": "agt_2"},
        ],
    )
    await add_many(database, "runs", [ended(5, "succeeded", AT)])  # told of no usage
    silent = {**used, "input_tokens": None, "output_tokens": None, "cost": None}
    await add_many(database, "runs", [ended(6, "succeeded", AT - 3 * DAY, **silent)])


async def test_usage_is_summed_over_what_it_is_not_told_apart_by(database: Database) -> None:
    await spend(database)
    day, target = AT // DAY, AGENT["id"]

    async def summed(grouping: Grouping, since: int, skip: int = 0, limit: int = 9) -> list[tuple[Any, ...]]:
        rows = await database.read(lambda tx: overview.usage(tx, grouping, since, AT + 1, skip, limit))
        names = (
            "day",
            "target_id",
            "slug",
            "principal",
            "runs",
            "model_calls",
            "input_tokens",
            "output_tokens",
            "cost",
        )
        assert {type(row["runs"]) for row in rows} | {type(row["model_calls"]) for row in rows} <= {int}
        assert {type(row["cost"]) for row in rows} <= {float}
        return [tuple(row[name] for name in names) for row in rows]

    one = (1, 1, 10, 5, 0.25)
    assert await summed(ALL, AT - DAY) == [
        (day - 1, target, "agent", "key_1", *one),
        (day, target, "agent", "ana@example.org", *one),
        (day, target, "agent", "key_1", *one),
        (day, "agt_2", "", "key_1", *one),
    ]
    assert await summed(Grouping.of(set()), AT - DAY) == [(0, "", "", "", 4, 4, 40, 20, 1.0)]
    assert await summed(Grouping.of({"principal"}), AT - DAY, skip=1, limit=1) == [
        (0, "", "", "key_1", 3, 3, 30, 15, 0.75)
    ]
    assert await summed(Grouping.of({"day"}), AT - 3 * DAY, limit=1) == [
        (day - 3, "", "", "", 1, 1, 0, 0, 0.0)
    ]
    assert await summed(ALL, AT + 1) == []


GIVEN = {
    "from_id": "run_",
    "week": 0,
    "today": 0,
    "most": 9,
    "late_us": 1,
    "timeout_us": 1,
    "by_day": 1,
    "by_target": 1,
    "by_principal": 1,
    "since": 0,
    "until": 1,
    "skip": 0,
    "limit": 9,
}


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("runs_ended", "runs"),
        ("triggers_ended", "triggers"),
        ("expired", "audit_expired"),
        ("tasks_done", "tasks_done"),
        ("usage", "runs_usage"),
    ],
)
async def test_the_past_is_counted_by_an_index(database: Database, name: str, index: str) -> None:
    """HOUSE rule 5: no table that grows is read from end to end."""
    lines = await plan(database, f"overview.{name}", GIVEN)
    assert not scanned(lines) & {"runs", "triggers", "audit", "tasks", "r"}, lines
    assert any(index in line for line in lines), lines


async def test_the_present_is_counted_by_indexes_that_hold_nothing_else(database: Database) -> None:
    """HOUSE rule 5: what is over is not looked at."""
    for name in ("queue", "tasks_open"):
        lines = await plan(database, f"overview.{name}", GIVEN)
        whole = [line for line in lines if line.startswith("SCAN ") and "INDEX" not in line]
        # every claim is looked at: there are as many as instances hold
        assert [line for line in whole if not line.startswith(("SCAN l", "SCAN CONSTANT"))] == [], lines
        assert not any("Seq Scan" in line for line in lines), lines
