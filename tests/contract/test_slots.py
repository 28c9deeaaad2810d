"""Due slots in the store: who is claimed, what is recorded, how a schedule moves on (DSP-3, DSP-5, DSP-6, SCH-3)."""

from typing import Any

import pytest

from gnomon.domain.schedule import ScheduleStatus
from gnomon.stores import slots
from gnomon.stores.database import Database, Landed, Row, Tx, UniqueViolation
from gnomon.testing.clock import FrozenClock
from support.rows import AT, OCCURRENCE, RUNNING, SCHEDULE, SECOND, add_run, add_schedule, execute, one

pytestmark = pytest.mark.anyio
SCH = SCHEDULE["id"]
ADVANCE: dict[str, Any] = {
    "id": SCH,
    "claimed_at": AT,
    "next_fire_at": AT + 3_600 * SECOND,
    "recorded_until": AT,
    "fired_at": AT,
    "fired": 1,
    "in_flight_run_id": "run_new",
    "waiting_run_id": None,
    "granted": 1,
    "seen_at": AT,
    "seen_revision": 1,
    "seen_runs": 0,
    "seen_fence": 0,
    "seen_in_flight": None,
    "seen_waiting": None,
}
LEDGER: dict[str, Any] = {
    "reason": None,
    "coalesced_first": None,
    "coalesced_last": None,
    "coalesced_count": None,
    **{name: value for name, value in OCCURRENCE.items() if name != "created_at"},
}


async def due(database: Database, limit: int = 100) -> list[Row]:
    found = await database.write(lambda tx: slots.claim_due(tx, limit))
    return [each._asdict() for each in found]


async def stop(database: Database, *ids: str, **changes: Any) -> set[str]:
    changes = {"status": "error", "by": "watchdog", "reason": "why", **changes}
    stops = [slots.Stop(one, **changes) for one in ids or (SCH,)]
    landed = await database.write(lambda tx: slots.stop(tx, stops))
    return set(landed.ids)


# --- the claim ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unfinished", [True, False])
async def test_a_run_locks_its_schedule_while_it_is_unfinished(database: Database, unfinished: bool) -> None:
    """RUN-3, DSP-8: a schedule keeps the run it let through last; finished, it locks nothing."""
    await add_schedule(database, in_flight_run_id="run_1")
    await add_run(database, **{**RUNNING, "id": "run_1", "schedule_id": SCH})
    if not unfinished:
        await execute(database, "UPDATE runs SET status = 'failed', finished_at = 1, lease_until = NULL")
    [found] = await database.look(lambda tx: slots.claim_due(tx, 9))
    assert (found.in_flight_run_id, found.unfinished_run_id) == ("run_1", "run_1" if unfinished else None)


async def test_what_is_due_comes_the_longest_waiting_first_up_to_the_limit(database: Database) -> None:
    """DSP-3, SCH-3."""
    for name, late in (("b", 5), ("c", 1), ("a", 9), ("d", 0)):
        await add_schedule(database, id=f"sch_{name}", next_fire_at=AT - late)
    assert [row["id"] for row in await due(database)] == ["sch_a", "sch_b", "sch_c", "sch_d"]
    assert [row["id"] for row in await due(database, 2)] == ["sch_a", "sch_b"]


async def test_due_is_at_the_database_s_instant_and_not_a_microsecond_before(
    database: Database, clock: FrozenClock
) -> None:
    """DSP-3: the clock is the database's."""
    await add_schedule(database, next_fire_at=AT + 1)
    assert await due(database) == []
    clock.advance(0.000_001)
    (row,) = await due(database)
    assert (row["now"], row["next_fire_at"]) == (AT + 1, AT + 1)


@pytest.mark.parametrize(
    "status", [status for status in ScheduleStatus if status is not ScheduleStatus.ACTIVE]
)
async def test_what_is_not_active_is_never_due(database: Database, status: ScheduleStatus) -> None:
    """SCH-2."""
    await add_schedule(database, status=status.value, next_fire_at=None)
    assert await due(database) == []
    assert await database.read(slots.next_due) is None


async def test_a_claim_carries_what_the_decision_needs(database: Database) -> None:
    """DSP-4, DSP-7: each column is the row's own, the lease is worked out by the database."""
    given: dict[str, Any] = {
        "max_attempts": 3,
        "starts_at": AT - 10,
        "ends_at": AT + 10,
        "max_runs": 9,
        "run_count": 4,
        "recorded_until": AT - 77,
        "last_fire_at": AT - 78,
        "in_flight_run_id": "run_1",
        "waiting_run_id": "run_2",
        "fence": 12,
        "misfire_grace_seconds": 60,
        "overlap": "queue_one",
        "catch_up": "none",
        "jitter_seconds": 5,
        "dedup_key": "k",
        "calendar": "de",
    }
    await add_schedule(database, **given)
    (row,) = await due(database)
    assert {name: row[name] for name in given} == given
    assert row["lease_seconds"] == 3 * 300 + 10 + 20 + 30


async def test_the_wait_for_the_next_slot(database: Database, clock: FrozenClock) -> None:
    """DSP-1: microseconds by the database's clock, negative where one is due already, none without any."""
    assert await database.read(slots.next_due) is None
    await add_schedule(database, id="sch_a", next_fire_at=AT + 90 * SECOND)
    await add_schedule(database, id="sch_b", next_fire_at=AT + 30 * SECOND)
    await add_schedule(database, id="sch_c", status="paused")
    assert await database.read(slots.next_due) == 30 * SECOND
    clock.advance(40)
    assert await database.read(slots.next_due) == -10 * SECOND


# --- the ledger -----------------------------------------------------------------------------------------------------


async def test_a_slot_is_recorded_once_and_the_second_is_told(database: Database) -> None:
    """DSP-6: losing is a return value; the first record stays as it was."""
    assert await database.write(lambda tx: slots.record(tx, [LEDGER])) == {SCH}
    skipped = LEDGER | {"disposition": "skipped", "reason": "missed", "run_id": None, "session_id": None}
    other = LEDGER | {"schedule_id": "sch_other"}
    assert await database.write(lambda tx: slots.record(tx, [skipped, other])) == {"sch_other"}
    row = await one(database, "occurrences", schedule_id=SCH)
    assert (row["disposition"], row["run_id"], row["created_at"]) == ("fired", LEDGER["run_id"], AT)


# --- moving on ------------------------------------------------------------------------------------------------------


async def test_a_fired_slot_moves_everything_on(database: Database) -> None:
    """DSP-5."""
    await add_schedule(database, run_count=4, fence=6)
    seen = {"seen_runs": 4, "seen_fence": 6}
    assert (await database.write(lambda tx: slots.advance(tx, [ADVANCE | seen]))).ids == {SCH}
    row = await one(database, "schedules", id=SCH)
    assert (row["next_fire_at"], row["recorded_until"], row["last_fire_at"]) == (AT + 3_600 * SECOND, AT, AT)
    assert (row["run_count"], row["in_flight_run_id"], row["waiting_run_id"], row["fence"]) == (
        5,
        "run_new",
        None,
        7,
    )


async def test_a_slot_that_did_not_fire_leaves_count_lock_and_fence(database: Database) -> None:
    """SCH-9."""
    before = {
        "run_count": 4,
        "fence": 6,
        "in_flight_run_id": "run_1",
        "waiting_run_id": "run_2",
        "last_fire_at": AT - 9,
    }
    await add_schedule(database, **before)
    unfired: dict[str, Any] = {"fired_at": None, "fired": 0, "in_flight_run_id": None, "granted": 0}
    unfired |= {"seen_runs": 4, "seen_fence": 6, "seen_in_flight": "run_1", "seen_waiting": "run_2"}
    await database.write(lambda tx: slots.advance(tx, [ADVANCE | unfired]))
    row = await one(database, "schedules", id=SCH)
    assert {name: row[name] for name in before} == before
    assert (row["next_fire_at"], row["recorded_until"]) == (AT + 3_600 * SECOND, AT)


async def test_a_scan_without_a_slot_leaves_the_ledger_s_mark(database: Database) -> None:
    """DSP-6: a realignment does not forget what was recorded."""
    await add_schedule(database, recorded_until=AT - 5)
    await database.write(lambda tx: slots.advance(tx, [ADVANCE | {"recorded_until": None}]))
    assert (await one(database, "schedules", id=SCH))["recorded_until"] == AT - 5


async def test_a_schedule_that_has_moved_since_it_was_read_is_left_alone(database: Database) -> None:
    """HOUSE rule 6: one of two who read the same slot moves it on."""
    await add_schedule(database)
    await database.write(lambda tx: slots.advance(tx, [ADVANCE]))
    before = await one(database, "schedules", id=SCH)
    again = ADVANCE | {
        "next_fire_at": AT + 9 * SECOND,
        "seen_runs": 1,
        "seen_fence": 1,
        "seen_in_flight": "run_new",
    }
    assert not (await database.write(lambda tx: slots.advance(tx, [again]))).ids
    assert await one(database, "schedules", id=SCH) == before


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"revision": 2},
        {"run_count": 1},
        {"fence": 1},
        {"in_flight_run_id": "run_1"},
        {"waiting_run_id": "run_2"},
        {"status": "paused", "next_fire_at": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_what_was_decided_over_another_state_is_not_written(
    database: Database, meanwhile: dict[str, Any]
) -> None:
    """DSP-5: edited, fired, granted, ended or paused between the look and the writing."""
    await add_schedule(database, **meanwhile)
    before = await one(database, "schedules", id=SCH)
    assert not (await database.write(lambda tx: slots.advance(tx, [ADVANCE]))).ids
    assert await one(database, "schedules", id=SCH) == before


@pytest.mark.parametrize(("seconds", "written"), [(-1, False), (0, True), (5, True), (6, False)])
async def test_what_was_decided_long_ago_or_by_a_clock_that_was_set_is_not_written(
    database: Database, clock: FrozenClock, seconds: int, written: bool
) -> None:
    """DSP-7, RUN-5b: a process that stood still in between decides anew; and never before the slot."""
    await add_schedule(database)
    clock.jump(seconds)
    landed = await database.write(lambda tx: slots.advance(tx, [ADVANCE]))
    assert landed.ids == ({SCH} if written else set())


async def test_the_ledger_says_which_slots_it_holds(database: Database) -> None:
    """DSP-6: by schedule and instant, not by either."""
    await database.write(lambda tx: slots.record(tx, [LEDGER]))
    asked = [LEDGER, LEDGER | {"schedule_id": "sch_other"}, LEDGER | {"nominal_fire_at": AT + SECOND}]
    assert await database.read(lambda tx: slots.recorded(tx, asked)) == {SCH}


async def test_a_window_of_what_is_due_begins_where_another_ends(database: Database) -> None:
    """DSP-3."""
    for name, late in (("b", 5), ("c", 1), ("a", 9)):
        await add_schedule(database, id=f"sch_{name}", next_fire_at=AT - late)
    second = await database.write(lambda tx: slots.claim_due(tx, 2, 2))
    assert [each.id for each in second] == ["sch_c"]


async def test_each_schedule_has_its_own_way_and_its_own_fence(database: Database) -> None:
    """DSP-5, RUN-6."""
    for name, fence in (("sch_a", 0), ("sch_b", 40)):
        await add_schedule(database, id=name, fence=fence)
    steps = [
        ADVANCE | {"id": name, "in_flight_run_id": f"run_{name}", "seen_fence": fence}
        for name, fence in (("sch_a", 0), ("sch_b", 40))
    ]
    await database.write(lambda tx: slots.advance(tx, steps))
    rows = await execute(database, "SELECT id, fence, in_flight_run_id FROM schedules ORDER BY id")
    assert [(row["fence"], row["in_flight_run_id"]) for row in rows] == [(1, "run_sch_a"), (41, "run_sch_b")]


# --- stopping -------------------------------------------------------------------------------------------------------


async def test_a_stop_says_who_when_and_why_and_clears_the_next_instant(database: Database) -> None:
    """SCH-2, DSP-9: in the row, and in the history of statuses."""
    await add_schedule(database, status_until=AT + 5)
    assert await stop(database, error_code="cadence", error="bad rule")
    row = await one(database, "schedules", id=SCH)
    assert (row["status"], row["status_by"], row["status_at"], row["status_reason"]) == (
        "error",
        "watchdog",
        AT,
        "why",
    )
    assert (row["next_fire_at"], row["status_until"]) == (None, None)
    assert (row["last_error_code"], row["last_error"]) == ("cadence", "bad rule")
    (change,) = await execute(database, "SELECT * FROM status_changes")
    assert change == {
        "schedule_id": SCH,
        "seq": 1,
        "at": AT,
        "status": "error",
        "changed_by": "watchdog",
        "reason": "why",
    }


async def test_a_stop_without_an_error_keeps_the_last_one(database: Database) -> None:
    """SCH-8: the last failure is kept."""
    await add_schedule(database, last_error_code="boom", last_error="it broke")
    assert await stop(database, status="completed")
    row = await one(database, "schedules", id=SCH)
    assert (row["last_error_code"], row["last_error"]) == ("boom", "it broke")


async def test_a_stop_from_another_status_changes_nothing(database: Database) -> None:
    """SCH-2: two who stop a schedule stop it once, for the reason of the first."""
    await add_schedule(database)
    assert await stop(database, reason="first")
    before = await one(database, "schedules", id=SCH)
    assert not await stop(database, reason="second")
    assert await one(database, "schedules", id=SCH) == before
    assert len(await execute(database, "SELECT * FROM status_changes")) == 1


async def test_a_deleted_schedule_is_not_stopped(database: Database) -> None:
    """SCH-10."""
    await add_schedule(database, deleted_at=AT)
    assert not await stop(database)
    assert await execute(database, "SELECT * FROM status_changes") == []


async def test_many_are_stopped_at_once_and_each_keeps_its_own_history(database: Database) -> None:
    """DSP-9: who was not active any more is not, and has no change noted."""
    for name in ("sch_a", "sch_b", "sch_c"):
        await add_schedule(database, id=name)
    assert await stop(database, "sch_b") == {"sch_b"}
    assert await stop(database, "sch_a", "sch_b", "sch_c", status="completed") == {"sch_a", "sch_c"}
    rows = await execute(
        database, "SELECT schedule_id, seq, status FROM status_changes ORDER BY schedule_id, seq"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("sch_a", 1, "completed"),
        ("sch_b", 1, "error"),
        ("sch_c", 1, "completed"),
    ]


async def test_changes_of_status_are_numbered_for_each_schedule(database: Database) -> None:
    """DSP-9."""
    for name in ("sch_a", "sch_b", "sch_a"):
        await database.write(lambda tx, name=name: slots.note_status(tx, name, "paused", "usr", None))  # type: ignore[misc]
    rows = await execute(database, "SELECT schedule_id, seq FROM status_changes ORDER BY schedule_id, seq")
    assert [(row["schedule_id"], row["seq"]) for row in rows] == [("sch_a", 1), ("sch_a", 2), ("sch_b", 1)]


# --- realignment and calendars --------------------------------------------------------------------------------------


async def test_far_ahead_walks_active_schedules_in_pages(database: Database) -> None:
    """Casebook mis-08."""
    for number in range(4):
        await add_schedule(database, id=f"sch_{number}", next_fire_at=AT + (9 - number) * SECOND)
    await add_schedule(database, id="sch_9", status="paused")
    page = await database.read(lambda tx: slots.far_ahead(tx, 0, "", 3))
    assert [row["id"] for row in page] == ["sch_3", "sch_2", "sch_1"]
    after = page[-1]["next_fire_at"]
    rest = await database.read(lambda tx: slots.far_ahead(tx, after, "sch_1", 3))
    assert [row["id"] for row in rest] == ["sch_0"]
    assert rest[0]["now"] == AT


async def test_realigning_leaves_alone_what_has_moved_since(database: Database) -> None:
    """Casebook mis-08, HOUSE rule 6."""
    await add_schedule(database)
    change = {"id": SCH, "claimed_at": AT, "next_fire_at": AT + 5 * SECOND}
    await database.write(lambda tx: slots.realign(tx, [change]))
    assert (await one(database, "schedules", id=SCH))["next_fire_at"] == AT + 5 * SECOND
    await database.write(lambda tx: slots.realign(tx, [change | {"next_fire_at": AT + 99}]))
    assert (await one(database, "schedules", id=SCH))["next_fire_at"] == AT + 5 * SECOND


async def test_holidays_come_by_slug_and_a_calendar_that_is_gone_has_none(database: Database) -> None:
    """CAD-9."""
    insert = (
        "INSERT INTO calendars (id, slug, name, dates, version, created_at, created_by, updated_at) "
        "VALUES ('cal_1', 'de', 'DE', '[\"2026-12-25\",\"2026-12-26\"]', 1, 0, 't', 0)"
    )
    await execute(database, insert)
    found = await database.read(lambda tx: slots.holidays(tx, ["de", "gone"]))
    assert {slug: sorted(day.isoformat() for day in days) for slug, days in found.items()} == {
        "de": ["2026-12-25", "2026-12-26"]
    }


# --- what depends on what landed ------------------------------------------------------------------------------------

OTHER = "sch_other"


async def entered(database: Database) -> set[str]:
    return {row["schedule_id"] for row in await execute(database, "SELECT schedule_id FROM occurrences")}


async def test_only_what_moved_on_is_entered_into_the_ledger(database: Database) -> None:
    """DSP-5: one write, of which each row stands or falls with its schedule."""
    await add_schedule(database)
    await add_schedule(database, id=OTHER, revision=2)

    async def work(tx: Tx) -> Landed:
        landed = await slots.advance(tx, [ADVANCE, ADVANCE | {"id": OTHER}])
        await slots.enter(tx, [LEDGER, LEDGER | {"schedule_id": OTHER}], landed, [SCH, OTHER])
        return landed

    assert (await database.write_guarded(work)).ids == {SCH}
    assert await entered(database) == {SCH}


async def test_what_comes_after_the_guard_was_sent_is_kept_to_what_landed_as_well(database: Database) -> None:
    await add_schedule(database)
    await add_schedule(database, id=OTHER, revision=2)

    async def work(tx: Tx) -> None:
        landed = await slots.advance(tx, [ADVANCE, ADVANCE | {"id": OTHER}])
        await tx.send()
        assert landed.ids == {SCH}
        await slots.enter(tx, [LEDGER, LEDGER | {"schedule_id": OTHER}], landed, [SCH, OTHER])

    await database.write_guarded(work)
    assert await entered(database) == {SCH}


async def test_a_slot_that_is_in_the_ledger_undoes_all_of_it(database: Database) -> None:
    """DSP-6."""
    await add_schedule(database)
    await database.write(lambda tx: slots.record(tx, [LEDGER]))

    async def work(tx: Tx) -> None:
        landed = await slots.advance(tx, [ADVANCE])
        await slots.enter(tx, [LEDGER], landed, [SCH])

    with pytest.raises(UniqueViolation):
        await database.write_guarded(work)
    assert (await one(database, "schedules", id=SCH))["next_fire_at"] == AT


async def test_what_is_looked_at_without_a_transaction_is_what_stands(database: Database) -> None:
    await add_schedule(database)
    assert await database.look(slots.next_due) == 0
    assert [each.id for each in await database.look(lambda tx: slots.claim_due(tx, 9))] == [SCH]
    assert [each.id for each in await database.look(lambda tx: slots.claim_due(tx, 9, hold=True))] == [SCH]


@pytest.mark.parametrize("stale", [0, 1])
async def test_of_many_at_once_only_those_that_moved_on_are_entered(database: Database, stale: int) -> None:
    """DSP-5: told by their number where all did, and one by one where one did not."""
    names = [f"sch_{number:020d}" for number in range(20)]
    for number, name in enumerate(names):
        await add_schedule(database, id=name, revision=2 if number < stale else ADVANCE["seen_revision"])

    async def work(tx: Tx) -> Landed:
        landed = await slots.advance(tx, [ADVANCE | {"id": name} for name in names])
        await slots.enter(tx, [LEDGER | {"schedule_id": name} for name in names], landed, names)
        return landed

    assert (await database.write_guarded(work)).ids == set(names[stale:])
    assert await entered(database) == set(names[stale:])
    moved = await execute(database, "SELECT id FROM schedules WHERE run_count > 0")
    assert {row["id"] for row in moved} == set(names[stale:])


async def test_what_rows_have_in_common_is_each_row_s_own_as_well(database: Database) -> None:
    """Given once or with each row, it is the same that is written: alike, unlike, and missing."""
    names = [f"sch_{number:020d}" for number in range(12)]
    await database.write(lambda tx: slots.record(tx, [LEDGER | {"schedule_id": name} for name in names]))
    mixed = [
        LEDGER | {"schedule_id": f"sch_{number:020x}", "nominal_fire_at": AT + 1, "reason": None, **changes}
        for number, changes in enumerate(
            [
                {"coalesced_first": 1, "coalesced_last": 2, "coalesced_count": 1},
                {"coalesced_first": 1, "coalesced_last": 3, "coalesced_count": 2},
                {},
            ]
        )
    ]
    await database.write(lambda tx: slots.record(tx, mixed))
    found = await execute(
        database,
        "SELECT nominal_fire_at AS at, disposition, coalesced_first AS first, coalesced_last AS last, coalesced_count AS count "
        "FROM occurrences ORDER BY nominal_fire_at, schedule_id",
    )
    alike = [(AT, LEDGER["disposition"], None, None, None)] * 12
    unlike = [
        (AT + 1, LEDGER["disposition"], *numbers) for numbers in ((1, 2, 1), (1, 3, 2), (None, None, None))
    ]
    assert [tuple(row.values()) for row in found] == alike + unlike
