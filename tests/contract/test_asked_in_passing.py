"""The small questions that services ask of the stores between their writes, on every engine."""

from datetime import UTC, datetime

import pytest

from gnomon.domain import definition as definitions
from gnomon.domain.invocation import Usage
from gnomon.domain.run import RunStatus
from gnomon.domain.schedule import Schedule
from gnomon.stores import calendars, history, processes, runs, schedules, slots, targets, verify
from gnomon.stores.database import Database
from support.rows import (
    AGENT,
    AT,
    RUN,
    SCHEDULE,
    SECOND,
    TEAM,
    add,
    add_process,
    add_run,
    add_running,
    add_schedule,
    one,
)

SCHEDULE_ID, RUN_ID = SCHEDULE["id"], RUN["id"]
RUNTIME = '{"kind":"llm","model":"test"}'
CALENDAR = {
    "id": "cal_1",
    "slug": "de",
    "name": "Germany",
    "dates": "[]",
    "version": 1,
    "created_at": AT,
    "created_by": "test",
    "updated_at": AT + 5,
}


async def standing(database: Database) -> Schedule:
    found = await database.read(lambda tx: schedules.get(tx, SCHEDULE_ID))
    assert found is not None
    return found


async def test_the_gates_find_what_lives_by_id_and_by_slug(database: Database) -> None:
    """RUN-2."""
    await add(database, "agents", AGENT, runtime=RUNTIME)
    await add(database, "agents", AGENT, runtime=RUNTIME, id="agt_2", slug="gone", deleted_at=AT)
    await add(database, "teams", TEAM)
    await add(database, "teams", TEAM, id="tea_2", slug="gone", deleted_at=AT)
    names = [AGENT["id"], "agent", "gone", "agt_2", "nobody", TEAM["id"]]
    agents = await database.read(lambda tx: targets.live_agents(tx, names))
    assert sorted(agents) == sorted([AGENT["id"], "agent"])
    assert agents["agent"].id == AGENT["id"]
    teams = await database.read(lambda tx: targets.live_teams(tx, [*names, "tea_2"]))
    assert sorted(teams) == sorted([TEAM["id"], "agent"])


async def test_what_a_grant_needs_of_a_run(database: Database) -> None:
    """RUN-4: the run, its query, the policies of its schedule."""
    await add_schedule(database, max_attempts=3, on_lost="resume")
    await add_running(database, schedule_id=SCHEDULE_ID, session_id="ses_x")
    await add_run(database, id="run_other")
    (row,) = await database.read(lambda tx: runs.by_ids(tx, [RUN_ID, "run_nobody"]))
    wanted = {"id": RUN_ID, "query": "go", "fence": 7, "session_id": "ses_x", "max_attempts": 3}
    assert {name: row[name] for name in wanted} == wanted
    assert row["on_lost"] == "resume"


async def test_what_a_process_holds(database: Database) -> None:
    """RUN-5a: by its name, and by the claim that it made."""
    await add_running(database, claim_id="clm_1")
    await add_running(database, id="run_2", session_id="ses_2", fence=9, claim_id="clm_2")
    await add_running(database, id="run_3", session_id="ses_3", owner="prc_other", claim_id="clm_1")
    held = await database.read(lambda tx: runs.held_by(tx, "prc_mine"))
    assert held == {(RUN_ID, 7), ("run_2", 9)}
    assert await database.read(lambda tx: runs.under_claim(tx, "prc_mine", "clm_1")) == [(RUN_ID, 7)]
    told = await database.read(lambda tx: processes.holds(tx, "prc_mine"))
    assert sorted(row["id"] for row in told) == sorted([RUN_ID, "run_2"])


@pytest.mark.parametrize(
    ("owner", "fence", "landed"), [("prc_mine", 7, True), ("prc_mine", 6, False), ("prc_x", 7, False)]
)
async def test_only_its_holder_defers_a_run(database: Database, owner: str, fence: int, landed: bool) -> None:
    await add_running(database)
    assert await database.write(lambda tx: runs.defer(tx, RUN_ID, owner, fence, 60 * SECOND)) is landed
    assert (await one(database, "runs", id=RUN_ID))["deferred"] == int(landed)


@pytest.mark.parametrize(
    ("changes", "landed"),
    [
        ({}, True),
        ({"owner": "prc_x"}, False),
        ({"fence": 8}, False),
        ({"duration_us": 6}, False),
        ({"status": "failed"}, False),
    ],
)
async def test_a_close_is_known_again_by_who_made_it_and_how_long_it_took(
    database: Database, changes: dict[str, object], landed: bool
) -> None:
    """RUN-5a."""
    over = {"status": "succeeded", "claimable_at": None, "finished_at": AT}
    await add_run(database, **(over | {"owner": "prc_mine", "fence": 7, "duration_us": 5} | changes))
    assert (
        await database.read(lambda tx: history.closed_as(tx, RUN_ID, "prc_mine", 7, RunStatus.SUCCEEDED, 5))
        is landed
    )


async def test_a_run_that_is_not_over_was_not_closed(database: Database) -> None:
    await add_running(database, duration_us=5)
    assert not await database.read(
        lambda tx: history.closed_as(tx, RUN_ID, "prc_mine", 7, RunStatus.SUCCEEDED, 5)
    )


@pytest.mark.parametrize(
    ("changes", "landed"),
    [({}, True), ({"number": 2}, False), ({"fence": 8}, False), ({"outcome": "lost"}, False)],
)
async def test_an_attempt_is_known_again_by_its_number_its_fence_and_its_outcome(
    database: Database, changes: dict[str, object], landed: bool
) -> None:
    """RUN-5a."""
    attempt = {"run_id": RUN_ID, "number": 1, "fence": 7, "outcome": "failed"} | changes
    await add(database, "attempts", attempt)
    assert await database.read(lambda tx: history.tried_as(tx, RUN_ID, 1, 7, RunStatus.FAILED)) is landed


async def test_what_the_nodes_of_a_fence_cost(database: Database) -> None:
    """TGT-3, RUN-9."""
    node = {"run_id": RUN_ID, "output": "x", "created_at": AT, "fence": 7}
    spent = '{"model_calls":1,"input_tokens":2,"output_tokens":3,"cost":0.5}'
    await add(database, "checkpoints", node, node="a", usage=spent)
    await add(database, "checkpoints", node, node="b", usage=spent, fence=6)
    await add(database, "checkpoints", node, node="c", usage=None)
    found = await database.read(lambda tx: runs.spent_on_nodes(tx, RUN_ID, 7))
    assert found == [Usage(model_calls=1, input_tokens=2, output_tokens=3, cost=0.5)]


async def test_who_uses_a_calendar_and_when_it_changed(database: Database) -> None:
    """CAD-9."""
    await add(database, "calendars", CALENDAR)
    await add_schedule(database, calendar="de")
    await add_schedule(database, id="sch_2", calendar="de", deleted_at=AT, status="paused")
    await add_schedule(database, id="sch_3")
    assert await database.read(lambda tx: calendars.users(tx, "de", 9)) == [SCHEDULE_ID]
    assert await database.read(lambda tx: schedules.calendar_changed_at(tx, "de")) == AT + 5
    assert await database.read(lambda tx: schedules.calendar_changed_at(tx, "fr")) is None
    await database.write(lambda tx: calendars.delete(tx, "cal_1"))
    assert await database.read(lambda tx: calendars.find(tx, "de")) is None


async def test_the_newest_recorded_slot_is_noted(database: Database) -> None:
    await add_schedule(database)
    assert await database.read(lambda tx: schedules.recorded_until(tx, SCHEDULE_ID)) is None
    await database.write(lambda tx: schedules.set_recorded(tx, SCHEDULE_ID, AT))
    assert await database.read(lambda tx: schedules.recorded_until(tx, SCHEDULE_ID)) == AT
    assert await database.read(lambda tx: schedules.recorded_until(tx, "sch_nobody")) is None


@pytest.mark.parametrize(("status", "moved"), [("active", True), ("paused", False)])
async def test_only_an_active_schedule_gets_another_next_slot(
    database: Database, status: str, moved: bool
) -> None:
    await add_schedule(database, status=status)
    await database.write(lambda tx: schedules.set_next(tx, SCHEDULE_ID, AT + SECOND))
    stands = (await one(database, "schedules", id=SCHEDULE_ID))["next_fire_at"]
    assert stands == (AT + SECOND if moved else None)


async def test_one_revision_by_its_number(database: Database) -> None:
    """SCH-4: the present one is the schedule itself."""
    cadence = '{"unit":"hour","every":1,"zone":"UTC"}'
    await add_schedule(database, revision=2, cadence=cadence)
    schedule = await standing(database)
    assert (
        await database.read(lambda tx: schedules.revision(tx, schedule, 2))
    ) == schedules.present_revision(schedule)
    assert await database.read(lambda tx: schedules.revision(tx, schedule, 1)) is None
    old = definitions.canonical(schedule.definition)
    kept = {"schedule_id": SCHEDULE_ID, "revision": 1, "definition": old, "author": "anna", "created_at": AT}
    await add(database, "revisions", kept)
    first = await database.read(lambda tx: schedules.revision(tx, schedule, 1))
    assert first is not None
    assert (first.author, first.created_at) == ("anna", datetime(2026, 11, 29, 9, tzinfo=UTC))
    (told,) = await database.read(lambda tx: verify.revisions(tx, SCHEDULE_ID))
    assert (told["revision"], told["created_at"]) == (1, AT)


async def test_what_verify_asks_of_the_whole_and_of_one_schedule(database: Database) -> None:
    """OPS-7."""
    await add_process(database, zone_data="2026a")
    await add_schedule(database)
    await database.write(lambda tx: slots.note_status(tx, SCHEDULE_ID, "paused", "anna", "holiday"))
    facts = await database.read(verify.facts)
    assert (facts["now"], facts["occurrences_before"], facts["jumps"], facts["zone_data"]) == (
        AT,
        0,
        0,
        "2026a",
    )
    (change,) = await database.read(lambda tx: verify.status_changes(tx, SCHEDULE_ID))
    assert (change["at"], change["status"]) == (AT, "paused")


async def test_the_zone_data_of_the_newest_process(database: Database) -> None:
    """CAD-8."""
    assert await database.read(processes.zone_data) is None
    await add_process(database, zone_data="2026a")
    await add_process(database, id="prc_2", zone_data="2026b", started_at=AT + 1)
    assert await database.read(processes.zone_data) == "2026b"
