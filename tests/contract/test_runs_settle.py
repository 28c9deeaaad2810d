"""What a schedule learns when a run of it ends: the lock is off, whoever waits is let go (RUN-3, DSP-8, SCH-8)."""

from typing import Any

import pytest

from gnomon.stores import runs
from gnomon.stores.database import Database, Value
from gnomon.testing.clock import FrozenClock
from support.rows import (
    AT,
    RUN,
    SCHEDULE,
    SECOND,
    add_run,
    add_running,
    add_schedule,
    execute,
    one,
)

pytestmark = pytest.mark.anyio
ID, SCH = RUN["id"], SCHEDULE["id"]


async def settle(database: Database, *run_ids: str, schedule_id: str = SCH, clears: int = 0) -> None:
    rows: list[dict[str, Value]] = [
        {"run_id": run_id, "schedule_id": schedule_id, "clears": clears} for run_id in run_ids
    ]
    await database.write(lambda tx: runs.settle(tx, rows))


async def locks(database: Database) -> tuple[Any, Any]:
    row = await one(database, "schedules", id=SCH)
    return row["in_flight_run_id"], row["waiting_run_id"]


# --- the lock -------------------------------------------------------------------------------------------------------


async def test_the_run_in_flight_takes_its_lock_off(database: Database) -> None:
    """RUN-3."""
    await add_schedule(database, in_flight_run_id=ID)
    await settle(database, ID)
    assert await locks(database) == (None, None)


async def test_another_run_s_end_leaves_the_lock(database: Database) -> None:
    """RUN-3, SCH-11: a late ending of an older run frees nothing that a newer one holds."""
    await add_schedule(database, in_flight_run_id="run_newer", waiting_run_id="run_next")
    await settle(database, ID)
    assert await locks(database) == ("run_newer", "run_next")


async def test_another_schedule_s_lock_is_left(database: Database) -> None:
    """RUN-3."""
    await add_schedule(database, in_flight_run_id=ID)
    await add_schedule(database, id="sch_other", in_flight_run_id=ID)
    await settle(database, ID, schedule_id="sch_other")
    assert await locks(database) == (ID, None)


async def test_the_waiting_run_moves_up(database: Database) -> None:
    """DSP-8."""
    await add_schedule(database, in_flight_run_id=ID, waiting_run_id="run_next")
    await settle(database, ID)
    assert await locks(database) == ("run_next", None)


async def test_a_waiting_run_that_ends_first_only_stops_waiting(database: Database) -> None:
    """DSP-8: cancelled while it waited."""
    await add_schedule(database, in_flight_run_id="run_now", waiting_run_id=ID)
    await settle(database, ID)
    assert await locks(database) == ("run_now", None)


# --- letting go -----------------------------------------------------------------------------------------------------


async def test_whoever_waits_is_claimable_from_its_own_instant_on(
    database: Database, clock: FrozenClock
) -> None:
    """DSP-8, CAD-10: at once where its instant has passed, else at that instant."""
    await add_schedule(database, in_flight_run_id=ID)
    for name, instant in (("run_past", AT - 50), ("run_ahead", AT + 90 * SECOND)):
        await add_run(database, id=name, claimable_at=None, waits_for=ID, scheduled_for=instant)
    clock.advance(10)
    await settle(database, ID)
    rows = {row["id"]: row for row in await execute(database, "SELECT * FROM runs")}
    assert [rows[name]["waits_for"] for name in ("run_past", "run_ahead")] == [None, None]
    assert rows["run_past"]["claimable_at"] == AT + 10 * SECOND
    assert rows["run_ahead"]["claimable_at"] == AT + 90 * SECOND


async def test_whoever_waits_for_another_waits_on(database: Database) -> None:
    """DSP-8."""
    await add_schedule(database)
    await add_run(database, claimable_at=None, waits_for="run_other")
    await settle(database, "run_ended")
    row = await one(database, "runs", id=ID)
    assert (row["claimable_at"], row["waits_for"]) == (None, "run_other")


async def test_after_a_run_ended_the_waiting_one_is_claimed_under_the_next_fence(database: Database) -> None:
    """DSP-8, RUN-6: from in flight to claimed, in the store alone."""
    await add_schedule(database, in_flight_run_id=ID, waiting_run_id="run_next", fence=7)
    await add_running(database, schedule_id=SCH)
    waiting = {"id": "run_next", "session_id": "ses_next", "schedule_id": SCH}
    await add_run(database, **waiting, claimable_at=None, waits_for=ID)
    assert await database.write(lambda tx: runs.claim(tx, "prc_2", "clm_2", 9)) == []
    ending = {
        "id": ID,
        "owner": "prc_mine",
        "fence": 7,
        "status": "succeeded",
        "duration_us": 1,
        **dict.fromkeys(("model_calls", "input_tokens", "output_tokens", "cost"), None),
        **dict.fromkeys(("response_preview", "error_code", "error", "output"), None),
    }
    await database.write(lambda tx: runs.close(tx, [ending]))
    await settle(database, ID)
    claimed = await database.write(lambda tx: runs.claim(tx, "prc_2", "clm_2", 9))
    assert [(row["id"], row["fence"]) for row in claimed] == [("run_next", 8)]
    assert await locks(database) == ("run_next", None)


# --- parallel runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("overlap", "expected"), [("allow", "run_2"), ("skip", None)])
async def test_of_parallel_runs_another_unfinished_one_holds_the_lock(
    database: Database, overlap: str, expected: str | None
) -> None:
    """DSP-8, SCH-10: with ``allow`` the schedule is in flight until the last of its runs has ended."""
    await add_schedule(database, overlap=overlap, in_flight_run_id="run_3")
    over = {"status": "succeeded", "lease_until": None, "finished_at": AT}
    for name, changes in (("run_1", {}), ("run_2", {}), ("run_3", over), ("run_9", over)):
        await add_running(database, id=name, schedule_id=SCH, parallel=int(overlap == "allow"), **changes)
    await add_running(database, id="run_5", schedule_id="sch_other")
    await settle(database, "run_3")
    assert await locks(database) == (expected, None)


async def test_the_last_of_parallel_runs_leaves_the_schedule_free(database: Database) -> None:
    """DSP-8."""
    await add_schedule(database, overlap="allow", in_flight_run_id=ID)
    await add_running(database, schedule_id=SCH, status="failed", lease_until=None, finished_at=AT)
    await settle(database, ID)
    assert await locks(database) == (None, None)


async def test_a_lock_that_stands_is_not_moved_to_a_parallel_run(database: Database) -> None:
    """DSP-8."""
    await add_schedule(database, overlap="allow", in_flight_run_id="run_2")
    for name in ("run_2", "run_8"):
        await add_running(database, id=name, schedule_id=SCH)
    await settle(database, "run_1")
    assert await locks(database) == ("run_2", None)


# --- the streak -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clears", "expected"), [(0, 3), (1, 0)])
async def test_only_a_success_clears_the_streak(database: Database, clears: int, expected: int) -> None:
    """SCH-8."""
    await add_schedule(database, failure_streak=3, in_flight_run_id=ID)
    await settle(database, ID, clears=clears)
    assert (await one(database, "schedules", id=SCH))["failure_streak"] == expected


async def test_the_streak_is_read_with_its_limit_and_moved_with_the_last_failure(database: Database) -> None:
    """SCH-8: the last failure is kept; other schedules are not touched."""
    await add_schedule(database, failure_streak=3, failure_limit=7)
    await add_schedule(database, id="sch_other", failure_streak=1)
    found = await database.read(lambda tx: runs.streaks(tx, [SCH, "sch_gone"]))
    assert found == {SCH: (3, 7)}
    await database.write(lambda tx: runs.move_streaks(tx, [(SCH, 4, "boom", "it broke")]))
    moved = await one(database, "schedules", id=SCH)
    assert (moved["failure_streak"], moved["last_error_code"], moved["last_error"]) == (4, "boom", "it broke")
    assert (await one(database, "schedules", id="sch_other"))["failure_streak"] == 1


# --- a session's history --------------------------------------------------------------------------------------------


async def test_a_run_sees_the_answered_turns_before_it_the_oldest_first(database: Database) -> None:
    """SCH-7: what came later, what has no answer and what is another session's is not shown."""
    turns = [
        (None, "run_1", "one"),
        ("ses_1", "run_2", None),
        ("ses_1", "run_3", "three"),
        ("ses_1", "run_4", "four"),
        ("ses_1", "run_6", "six"),
        ("ses_2", "run_0", "other"),
        ("", "run_40", "erased"),
        (None, "run_41", "another's own"),
        (None, "run_42", None),
    ]
    for session_id, run_id, output in turns:
        await add_run(database, session_id=session_id, id=run_id, query=f"q {output}", output=output)

    async def history(limit: int, of: str = "ses_1", run_id: str = "run_5") -> list[tuple[str, str]]:
        return await database.read(lambda tx: runs.history_of_session(tx, of, run_id, limit))

    assert await history(10) == [("q one", "one"), ("q three", "three"), ("q four", "four")]
    assert await history(2) == [("q three", "three"), ("q four", "four")]
    assert await history(3) == await history(10), "the one whose own session it was is among them"
    assert await history(9, "ses_3") == [], "it is in another one"
    assert await history(9, "ses_41", "run_40") == await history(9, "ses_42", "run_5") == []


# --- the common end -------------------------------------------------------------------------------------------------

ENDING: dict[str, Value] = {
    "owner": "prc_mine",
    "fence": 7,
    "status": "succeeded",
    "duration_us": 5,
    "model_calls": None,
    "input_tokens": None,
    "output_tokens": None,
    "cost": None,
    "response_preview": "said",
    "error_code": None,
    "error": None,
    "output": "said",
}


async def test_of_one_write_only_the_runs_that_were_held_end(database: Database) -> None:
    """RUN-3, RUN-6: a zombie's end changes nothing, whatever it is written together with; nobody's schedule is touched."""
    others = ("sch_other", "run_other")
    for sch, run, fence in ((SCH, ID, 7), (*others, 8)):
        await add_schedule(database, id=sch, in_flight_run_id=run)
        await add_running(database, id=run, schedule_id=sch, fence=fence)
    before = await execute(database, "SELECT * FROM schedules")
    endings = [ENDING | {"id": run} for run in (ID, others[1])]
    assert (await database.write_guarded(lambda tx: runs.close(tx, endings, plain=True))).ids == {ID}
    said = {row["id"]: row["output"] for row in await execute(database, "SELECT id, output FROM runs")}
    assert said == {ID: "said", others[1]: None}
    assert await execute(database, "SELECT * FROM schedules") == before


async def test_a_run_without_a_schedule_ends_the_same_way(database: Database) -> None:
    """RUN-3."""
    await add_running(database)
    landed = await database.write_guarded(lambda tx: runs.close(tx, [ENDING | {"id": ID}], plain=True))
    assert landed.ids == {ID}


@pytest.mark.parametrize("changes", [{"owner": "prc_x"}, {"fence": 6}, {"fence": 8}])
async def test_only_its_holder_ends_a_run(database: Database, changes: dict[str, Value]) -> None:
    """RUN-6."""
    await add_schedule(database, in_flight_run_id=ID)
    await add_running(database, schedule_id=SCH)
    landed = await database.write_guarded(
        lambda tx: runs.close(tx, [ENDING | {"id": ID} | changes], plain=True)
    )
    assert landed.ids == set()
    again = [ENDING | {"id": ID}]
    assert (await database.write_guarded(lambda tx: runs.close(tx, again, plain=True))).ids == {ID}
    assert (await database.write_guarded(lambda tx: runs.close(tx, again, plain=True))).ids == set()
