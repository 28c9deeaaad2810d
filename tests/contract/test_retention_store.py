"""What is too old goes in bounded batches, and nothing else goes, on every engine (RUN-11, DSP-9a, SEC-7)."""

from typing import Any

import pytest

from gnomon.stores import retention
from gnomon.stores.database import CheckViolation, Database
from support.job_rows import add_trigger
from support.rows import AT, OCCURRENCE, RUN, add, add_many, add_run, add_schedule, execute

OVER = {"status": "succeeded", "claimable_at": None, "finished_at": AT}
SCHEDULE = OCCURRENCE["schedule_id"]


async def add_over(database: Database, number: int, session: str, **changes: object) -> None:
    """A run that is over, with a row in each table that hangs on it."""
    run_id = f"run_{number}"
    await add_run(database, **{**OVER, "id": run_id, "session_id": session, **changes})
    await add(database, "attempts", {"run_id": run_id, "number": 1, "fence": 1, "outcome": "failed"})
    await add(
        database,
        "checkpoints",
        {"run_id": run_id, "node": "a", "fence": 1, "output": "x", "created_at": AT},
    )
    await add(database, "run_events", {"run_id": run_id, "seq": 1, "at": AT, "kind": "log", "data": "{}"})


async def ids(database: Database, table: str, column: str) -> list[Any]:
    rows = await execute(database, f"SELECT {column} FROM {table} ORDER BY {column}")
    return [row[column] for row in rows]


async def test_old_runs_go_with_all_that_hangs_on_them(database: Database) -> None:
    """RUN-11."""
    sessions = [{"id": f"ses_{number}", "created_at": AT} for number in (1, 2, 3)]
    await add_many(database, "sessions", sessions)
    for number in (1, 2, 3):
        await add_over(database, number, f"ses_{number}")
    assert await database.write(lambda tx: retention.old_runs(tx, "run_3", 9)) == 2
    assert await ids(database, "runs", "id") == ["run_3"]
    for table in ("attempts", "checkpoints", "run_events"):
        assert await ids(database, table, "run_id") == ["run_3"]
    assert await ids(database, "sessions", "id") == ["ses_3"]


async def test_a_schedule_knows_no_run_that_is_gone(database: Database) -> None:
    """RUN-11, OPS-7: its last run goes with the others, and is then nobody's lock."""
    for number in (1, 2):
        await add_schedule(database, id=f"sch_{number}", in_flight_run_id=f"run_{number + 1}")
        await add_over(database, number, f"ses_{number}")
    await execute(database, "UPDATE runs SET schedule_id = 'sch_1'")
    assert await database.write(lambda tx: retention.old_runs(tx, "run_9", 9)) == 2
    found = await execute(database, "SELECT id, in_flight_run_id FROM schedules ORDER BY id")
    assert [tuple(row.values()) for row in found] == [("sch_1", None), ("sch_2", "run_3")]


async def test_a_batch_is_no_larger_than_asked_for_and_takes_the_oldest(database: Database) -> None:
    for number in (1, 2, 3):
        await add_over(database, number, f"ses_{number}")
    assert await database.write(lambda tx: retention.old_runs(tx, "run_9", 2)) == 2
    assert await ids(database, "runs", "id") == ["run_3"]


async def test_a_run_that_is_not_over_stays(database: Database) -> None:
    await add_run(database, id="run_1")
    assert await database.write(lambda tx: retention.old_runs(tx, "run_9", 9)) == 0
    assert await ids(database, "runs", "id") == ["run_1"]


async def test_a_session_stays_while_something_needs_it(database: Database) -> None:
    """RUN-12: another run in it, the run whose own it was, a schedule that will go on with it."""
    names = ("ses_shared", "ses_own", "ses_schedule", "ses_free", "ses_gone")
    await add_many(database, "sessions", [{"id": name, "created_at": AT} for name in names])
    for number, name in enumerate(names):
        await add_over(database, number, name)
    await add_over(database, 9, "ses_shared")
    await add_run(database, id="run_own", session_id=None)
    await add_schedule(database, session_mode="fixed", session_id="ses_schedule")
    await add_schedule(
        database, id="sch_gone", session_mode="fixed", session_id="ses_gone", deleted_at=AT, status="paused"
    )
    assert await database.write(lambda tx: retention.old_runs(tx, "run_9", 9)) == 5
    assert await ids(database, "sessions", "id") == ["ses_own", "ses_schedule", "ses_shared"]


async def test_the_floor_rises_and_never_sinks(database: Database) -> None:
    """DSP-9a."""
    for given, stands in ((10, 10), (5, 10), (20, 20)):
        await database.write(lambda tx, given=given: retention.raise_floor(tx, given, given, given))  # type: ignore[misc]
        [row] = await execute(database, "SELECT * FROM retention_floor")
        assert row == {
            "id": 1,
            "occurrences_before": stands,
            "audit_before": stands,
            "runs_before": stands,
        }


async def test_slots_below_the_floor_go_but_for_the_two_newest(database: Database) -> None:
    """DSP-9a: the ledger never forgets where a schedule stands."""
    rows = [{**OCCURRENCE, "nominal_fire_at": AT + n} for n in range(5)]
    await add_many(database, "occurrences", rows)
    with pytest.raises(CheckViolation):
        await database.write(lambda tx: retention.old_occurrences(tx, SCHEDULE, AT + 9, 9))
    await database.write(lambda tx: retention.raise_floor(tx, AT + 9, 0, 0))
    assert await database.write(lambda tx: retention.old_occurrences(tx, SCHEDULE, AT + 9, 1)) == 1
    assert await database.write(lambda tx: retention.old_occurrences(tx, SCHEDULE, AT + 2, 9)) == 1
    assert await database.write(lambda tx: retention.old_occurrences(tx, SCHEDULE, AT + 9, 9)) == 1
    left = await execute(database, "SELECT nominal_fire_at FROM occurrences ORDER BY nominal_fire_at")
    assert [row["nominal_fire_at"] for row in left] == [AT + 3, AT + 4]


async def test_ledgers_are_walked_one_schedule_after_the_other(database: Database) -> None:
    for schedule_id in ("sch_a", "sch_b"):
        await add_many(
            database,
            "occurrences",
            [{**OCCURRENCE, "schedule_id": schedule_id, "nominal_fire_at": AT + n} for n in range(2)],
        )
    walked = ["", "sch_a", "sch_b"]
    found = [await database.read(lambda tx, at=at: retention.next_ledger(tx, at)) for at in walked]  # type: ignore[misc]
    assert found == ["sch_a", "sch_b", None]


async def test_old_audit_goes_below_the_floor_alone(database: Database) -> None:
    """SEC-7."""
    entry = {"actor": "a", "action": "create", "subject_kind": "schedule", "subject_id": RUN["id"]}
    await add_many(database, "audit", [{**entry, "at": AT + n} for n in range(3)])
    with pytest.raises(CheckViolation):
        await database.write(lambda tx: retention.old_audit(tx, AT + 2, 9))
    await database.write(lambda tx: retention.raise_floor(tx, 0, AT + 2, 0))
    assert await database.write(lambda tx: retention.old_audit(tx, AT + 2, 1)) == 1
    assert await database.write(lambda tx: retention.old_audit(tx, AT + 2, 9)) == 1
    assert await ids(database, "audit", "at") == [AT + 2]


async def test_old_triggers_go_once_they_are_over(database: Database) -> None:
    """RUN-11."""
    over = {"status": "missed", "reason": "missed", "finished_at": AT, "payload": None}
    for number in range(4):
        await add_trigger(
            database, id=f"trg_{number}", nominal_fire_at=AT + number, **(over if number != 1 else {})
        )
    assert await database.write(lambda tx: retention.old_triggers(tx, "trg_3", 1)) == 1
    assert await database.write(lambda tx: retention.old_triggers(tx, "trg_3", 9)) == 1
    assert await ids(database, "triggers", "id") == ["trg_1", "trg_3"]
