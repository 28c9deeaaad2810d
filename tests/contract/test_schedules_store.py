"""Schedules in the store: kept whole, edited under a guard, moved between statuses under a guard (SCH-2, SCH-4, SCH-10)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon.domain.definition import parse
from gnomon.domain.filters import EVER, LAST, RunFilter, RunPlace, ScheduleFilter
from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import maybe_micros, to_micros
from gnomon.domain.schedule import Definition, Schedule, ScheduleStatus
from gnomon.domain.target import Target, TargetKind
from gnomon.stores import history, schedules
from gnomon.stores.database import Database, Tx
from gnomon.stores.schedules import Move
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.rows import (
    AGENT,
    AT,
    OCCURRENCE,
    RUN,
    RUNNING,
    SECOND,
    add,
    add_many,
    add_run,
    add_schedule,
    execute,
)

ACTIVE, PAUSED = ScheduleStatus.ACTIVE, ScheduleStatus.PAUSED
FULL: dict[str, Any] = {
    "name": "full",
    "target": {"kind": "agent", "id": "agt_" + "0" * 20},
    "cadence": {
        "unit": "month",
        "every": 2,
        "weekday": "fri",
        "nth": -1,
        "at": ["09:00", "17:30:15"],
        "zone": "Europe/Berlin",
        "anchor": "2026-01-31T09:00:00Z",
        "exclude": ["2026-12-25"],
        "calendar": "feast",
    },
    "query": "{{date}} ä\n\t'\"; --",
    "session_mode": "fixed",
    "session_id": "ses_" + "1" * 20,
    "starts_at": "2026-12-01T00:00:00.000001Z",
    "ends_at": "2027-12-01T00:00:00+01:00",
    "max_runs": 7,
    "overlap": "queue_one",
    "catch_up": "none",
    "misfire_grace_seconds": 120,
    "timeout_seconds": 60,
    "retry": {"max_attempts": 4, "backoff_seconds": 5, "backoff_max_seconds": 50},
    "failure_limit": 3,
    "on_lost": "resume",
    "jitter_seconds": 30,
    "invoke_as": "ana@example.org",
    "scopes": ["runs:read", "schedules:run"],
    "dedup_key": "brief-{{date}}",
}
LEAST = {"name": "least", "target": FULL["target"], "cadence": {"unit": "hour"}}


def an_id(number: int = 0) -> str:
    return make_id(Kind.SCHEDULE, AT // 1_000 + number, 5)


async def make(database: Database, definition: Definition, number: int = 0) -> Schedule:
    async def work(tx: Tx) -> Schedule:
        await schedules.insert(
            tx, an_id(number), definition, anchor_at=AT, next_fire_at=AT + SECOND, by="ana", now=AT
        )
        found = await schedules.get(tx, an_id(number))
        assert found is not None
        return found

    return await database.write(work)


async def read(database: Database, number: int = 0) -> Schedule:
    found = await database.read(lambda tx: schedules.get(tx, an_id(number)))
    assert found is not None
    return found


async def locked(database: Database, schedule_id: str, run_id: str) -> bool:
    return schedule_id in (await database.write(lambda tx: schedules.lock(tx, schedule_id, run_id))).ids


@pytest.mark.parametrize(
    "written",
    [
        FULL,
        LEAST,
        *(
            {**LEAST, "cadence": cadence}
            for cadence in (
                {"unit": "minute", "every": 5},
                {"unit": "day", "at": "09:00"},
                {"unit": "week", "days": ["mon"], "at": "09:00"},
                {"unit": "month", "day": 31, "at": "09:00"},
                {"unit": "month", "day": "last", "at": "09:00"},
                {"unit": "once", "at": "2026-12-24T18:00:00"},
                {"cron": "0 9 * * 1-5"},
                {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "at": ["09:00"]},
            )
        ),
    ],
)
async def test_what_is_kept_comes_back_whole(database: Database, written: dict[str, Any]) -> None:
    """SCH-1, SCH-14: every field, every form of cadence."""
    definition = parse(written)
    made = await make(database, definition)
    assert made.definition == definition
    assert (made.status, made.revision, made.created_by, made.updated_by) == (ACTIVE, 1, "ana", "ana")
    assert made.anchor_at == made.created_at == made.status_detail.at == START
    assert (made.run_count, made.failure_streak, made.last_error, made.in_flight_run_id) == (0, 0, None, None)
    assert maybe_micros(made.next_fire_at) == AT + SECOND


async def revise(database: Database, standing: Schedule, definition: Definition, **how: Any) -> bool:
    given: dict[str, Any] = {
        "status": ACTIVE,
        "next_fire_at": AT + 5 * SECOND,
        "by": "bo",
        "now": AT + SECOND,
    } | how
    return await database.write(lambda tx: schedules.revise(tx, standing, definition, **given))


async def test_an_edit_keeps_what_it_replaces(database: Database) -> None:
    """SCH-4."""
    made = await make(database, parse(FULL))
    assert await revise(database, made, parse(LEAST))
    stands = await read(database)
    assert (stands.revision, stands.definition, stands.updated_by) == (2, parse(LEAST), "bo")
    assert (stands.created_by, to_micros(stands.updated_at)) == ("ana", AT + SECOND)
    assert await revise(database, stands, parse(FULL), by="cy", now=AT + 3 * SECOND)
    stands = await read(database)

    found = await database.read(lambda tx: schedules.revisions(tx, stands, EVER, 10))
    assert [(r.revision, r.author, parse(r.definition)) for r in found] == [
        (3, "cy", parse(FULL)),
        (2, "bo", parse(LEAST)),
        (1, "ana", parse(FULL)),
    ]
    for at, revision in (
        (0, None),
        (1, 1),
        (SECOND, 1),
        (SECOND + 1, 2),
        (3 * SECOND, 2),
        (3 * SECOND + 1, 3),
    ):
        stood = await database.read(lambda tx, at=AT + at: schedules.revision_at(tx, stands, at))  # type: ignore[misc]
        assert (None if stood is None else stood.revision) == revision


async def test_an_edit_of_a_revision_that_is_gone_changes_nothing(database: Database) -> None:
    """SCH-4: one conditional statement; losing is an answer, no error."""
    made = await make(database, parse(FULL))
    assert await revise(database, made, parse(LEAST))
    before = await execute(database, "SELECT * FROM schedules")
    assert not await revise(database, made, parse(FULL))
    assert await execute(database, "SELECT * FROM schedules") == before
    assert len(await execute(database, "SELECT * FROM revisions")) == 1


@pytest.mark.parametrize("column", ["in_flight_run_id = 'run_1'", "deleted_at = 1, next_fire_at = NULL"])
async def test_neither_a_run_in_flight_nor_a_deletion_is_overtaken(database: Database, column: str) -> None:
    """SCH-10: also where the check before it was of a moment ago."""
    made = await make(database, parse(LEAST))
    await add_run(database, **{**RUNNING, "id": "run_1", "schedule_id": made.id})
    await execute(database, f"UPDATE schedules SET {column}")
    assert not await revise(database, made, parse(FULL))
    assert not await database.write(lambda tx: schedules.delete(tx, made.id, "bo"))
    assert not (column.startswith("in_f") and await locked(database, made.id, "run_2"))


async def test_an_edit_that_revives_writes_who_and_why(database: Database) -> None:
    """SCH-2: and one that does not leaves the status as it is told."""
    made = await make(database, parse(LEAST))
    done = Move(ACTIVE, ScheduleStatus.COMPLETED, "dispatcher", "no slot is left")
    assert await database.write(lambda tx: schedules.set_status(tx, made.id, done))
    stands = await read(database)
    assert await revise(database, stands, parse(FULL), status=ScheduleStatus.COMPLETED, next_fire_at=None)
    stands = await read(database)
    assert (stands.status_detail.by, stands.status_detail.reason) == ("dispatcher", "no slot is left")
    assert await revise(database, stands, parse(LEAST))
    stands = await read(database)
    assert (stands.status, stands.status_detail.by) == (ACTIVE, "bo")
    rows = await execute(database, "SELECT status, changed_by FROM status_changes ORDER BY seq")
    assert [(row["status"], row["changed_by"]) for row in rows] == [
        ("completed", "dispatcher"),
        ("active", "bo"),
    ]


async def test_a_status_moves_only_from_where_it_is(database: Database, clock: FrozenClock) -> None:
    """SCH-2, DSP-9."""
    made = await make(database, parse(LEAST))
    clock.advance(1)
    pause = Move(ACTIVE, PAUSED, "bo", "why", until=AT + 9 * SECOND)
    assert await database.write(lambda tx: schedules.set_status(tx, made.id, pause))
    assert not await database.write(lambda tx: schedules.set_status(tx, made.id, pause))
    stands = await read(database)
    detail = stands.status_detail
    assert (stands.status, stands.next_fire_at) == (PAUSED, None)
    assert (detail.by, detail.reason, to_micros(detail.at)) == ("bo", "why", AT + SECOND)
    assert maybe_micros(detail.until) == AT + 9 * SECOND
    await execute(database, "UPDATE schedules SET failure_streak = 4")
    clock.advance(1)
    resume = Move(PAUSED, ACTIVE, "cy", None, next_fire_at=AT + 20 * SECOND, clears_streak=True)
    assert await database.write(lambda tx: schedules.set_status(tx, made.id, resume))
    stands = await read(database)
    assert (stands.failure_streak, maybe_micros(stands.next_fire_at)) == (0, AT + 20 * SECOND)
    assert stands.status_detail.until is None
    before = await database.read(lambda tx: history.status_before(tx, made.id, AT + SECOND))
    after = await database.read(lambda tx: history.status_before(tx, made.id, AT + SECOND + 1))
    assert before is None
    assert after is not None
    assert (after.status, after.by, after.reason) == ("paused", "bo", "why")


async def test_pauses_that_are_over_are_found_by_the_database_s_clock(
    database: Database, clock: FrozenClock
) -> None:
    assert await database.read(schedules.next_pause_end) is None
    for number, until in enumerate((AT + 5 * SECOND, AT + 9 * SECOND, None)):
        made = await make(database, parse(LEAST), number)
        move = Move(ACTIVE, PAUSED, "bo", None, until=until)
        await database.write(lambda tx, made=made, move=move: schedules.set_status(tx, made.id, move))  # type: ignore[misc]
    assert await database.read(schedules.next_pause_end) == 5 * SECOND
    clock.advance(5)
    assert await database.read(schedules.next_pause_end) == 0
    over = await database.read(lambda tx: schedules.pauses_over(tx, 10))
    assert [schedule.id for schedule in over] == [an_id(0)]


async def test_the_lock_has_one_holder_and_a_disabled_schedule_has_none(database: Database) -> None:
    """SCH-11."""
    made = await make(database, parse(LEAST))
    assert await locked(database, made.id, "run_1")
    await add_run(database, **{**RUNNING, "id": "run_1", "schedule_id": made.id})
    assert not await locked(database, made.id, "run_2")
    assert (await read(database)).in_flight_run_id == "run_1"
    over = "UPDATE runs SET status = 'succeeded', finished_at = 1, lease_until = NULL, claim_id = NULL"
    await execute(database, over)
    assert (await read(database)).in_flight_run_id is None, "a run that is over locks nothing (RUN-3)"
    assert await locked(database, made.id, "run_2")
    await add_schedule(database, id=an_id(1), status="disabled")
    assert not await locked(database, an_id(1), "run_3")


async def test_a_deleted_schedule_is_seen_by_no_query(database: Database) -> None:
    """SCH-10."""
    made = await make(database, parse(FULL))
    assert await database.write(lambda tx: schedules.delete(tx, made.id, "bo"))
    assert not await database.write(lambda tx: schedules.delete(tx, made.id, "bo"))
    target = made.definition.target

    async def work(tx: Tx) -> list[object]:
        return [
            await schedules.get(tx, made.id) or [],
            await schedules.page(tx, ScheduleFilter(), "", 9),
            await schedules.of_target(tx, target, "full"),
            await schedules.of_calendar(tx, "feast", "", 9),
            await schedules.pauses_over(tx, 9),
        ]

    assert await database.read(work) == [[]] * 5


async def test_a_page_holds_its_filters(database: Database) -> None:
    definition = parse(LEAST)
    team = Target(TargetKind.TEAM, "tea_" + "0" * 20)
    for number in range(4):
        await make(database, replace(definition, target=team if number % 2 else definition.target), number)

    async def ids(after: str = "", limit: int = 9, **chosen: Any) -> list[str]:
        found = await database.read(lambda tx: schedules.page(tx, ScheduleFilter(**chosen), after, limit))
        return [schedule.id for schedule in found]

    everyone = [an_id(number) for number in range(4)]
    assert await ids() == everyone
    assert await ids(everyone[1], 1) == everyone[2:3]
    assert await ids(target_kind=TargetKind.TEAM) == everyone[1::2]
    assert await ids(target=team.id, status=ACTIVE, name="least") == everyone[1::2]
    assert await ids(status=PAUSED) == await ids(name="other") == []


async def test_references_are_looked_up_among_the_living(database: Database) -> None:
    """SCH-14, casebook tar-03."""
    await add(database, "agents", AGENT)
    await execute(database, "INSERT INTO sessions VALUES ('ses_gone', 1, 2)")

    async def work(tx: Tx) -> list[object]:
        return [
            await schedules.target_named(tx, Target(TargetKind.AGENT, "agent")),
            await schedules.target_named(tx, Target(TargetKind.AGENT, AGENT["id"])),
            await schedules.target_named(tx, Target(TargetKind.TEAM, "agent")),
            await schedules.begin_session(tx, "ses_new"),
            await schedules.begin_session(tx, "ses_new"),
            await schedules.begin_session(tx, "ses_gone"),
        ]

    named = (AGENT["id"], "agent")
    assert await database.write(work) == [named, named, None, True, True, False]
    await execute(database, "UPDATE agents SET deleted_at = 1")
    gone = await database.read(lambda tx: schedules.target_named(tx, Target(TargetKind.AGENT, "agent")))
    assert gone is None


KINDS = st.lists(st.booleans(), max_size=25)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=KINDS, limit=st.integers(1, 7))
async def test_pages_of_a_schedule_s_runs_lose_and_repeat_none(
    database: Database, kinds: list[bool], limit: int
) -> None:
    """RUN-11: two orders, of slots and of what people started, merged into one list."""
    for table in ("runs", "occurrences"):
        if table == "occurrences":
            await execute(database, "UPDATE retention_floor SET occurrences_before = :all", all=EVER)
        await execute(database, f"DELETE FROM {table}")
    schedule_id = "sch_" + "0" * 20
    runs, ledger = [], []
    for number, scheduled in enumerate(kinds):
        run_id = make_id(Kind.RUN, number, 0)
        nominal = AT + number * SECOND if scheduled else None
        runs.append({**RUN, "id": run_id, "schedule_id": schedule_id, "nominal_fire_at": nominal})
        if scheduled:
            ledger.append({**OCCURRENCE, "nominal_fire_at": nominal, "run_id": run_id})
    if runs:
        await add_many(database, "runs", runs)
    if ledger:
        await add_many(database, "occurrences", ledger)
    place, told = RunPlace(), []
    for _ in range(len(kinds) + 1):
        page = await database.read(
            lambda tx, place=place: history.runs_of_schedule(tx, schedule_id, None, place, limit)  # type: ignore[misc]
        )
        assert len(page.runs) <= limit
        told += [run.id for run in page.runs]
        if page.rest is None:
            break
        place = page.rest
    assert told == [run["id"] for run in reversed(runs)]


async def test_a_run_tells_all_its_attempts(database: Database) -> None:
    """RUN-9: those that ended without ending it, and the last one, which is the run's own row."""
    base = {**RUN, "claimable_at": None, "started_at": AT, "attempt_at": AT, "owner": "prc_b"}
    await add(
        database,
        "runs",
        base,
        status="failed",
        attempt=2,
        fence=9,
        finished_at=AT + SECOND,
        error_code="x",
        error="y",
    )
    first = {
        "run_id": RUN["id"], "fence": 8, "number": 1, "worker": "prc_a", "started_at": AT, "finished_at": AT,
        "outcome": "timed_out", "error_code": "timeout", "error": "late",
    }  # fmt: skip
    await add(database, "attempts", first)
    await add(database, "runs", RUN, id="run_queued", attempt=1, fence=8)
    await add(database, "attempts", first, run_id="run_queued")
    found = await database.read(lambda tx: history.runs(tx, RunFilter(), LAST, 10))
    told = {
        run.id: [(a.number, a.fence, a.worker, a.outcome, a.error and a.error.code) for a in run.attempts]
        for run in found
    }
    early = (1, 8, "prc_a", "timed_out", "timeout")
    assert told == {RUN["id"]: [early, (2, 9, "prc_b", "failed", "x")], "run_queued": [early]}
