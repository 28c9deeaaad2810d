"""What is taken from the dead, and when nothing is taken from anybody (RUN-5b, RUN-7; casebook lea-05, lea-09, lea-18)."""

from typing import Any

import pytest

from gnomon.domain.run import RunError, RunStatus
from gnomon.stores import processes, runs
from gnomon.stores.database import Database, Row
from gnomon.testing.clock import FrozenClock
from support.rows import (
    AT,
    RUN,
    SCHEDULE,
    SECOND,
    add_process,
    add_run,
    add_running,
    add_schedule,
    execute,
    one,
)

pytestmark = pytest.mark.anyio
ID, SCH = RUN["id"], SCHEDULE["id"]
TIMEOUT = 120 * SECOND


async def expired(database: Database, calm_us: int | None = None, limit: int = 100) -> list[Row]:
    return await database.write(lambda tx: runs.expired(tx, TIMEOUT, calm_us, limit))


async def names(database: Database, **given: Any) -> list[str]:
    return [row["id"] for row in await expired(database, **given)]


async def lose(database: Database, fence: int = 7) -> bool:
    return await database.write(
        lambda tx: runs.lose(tx, ID, fence, RunStatus.LOST, RunError("lost", "no word"))
    )


# --- what looks expired ---------------------------------------------------------------------------------------------


DEFERRED = {"deferred": 1, "deadline_at": AT + 60 * SECOND}


@pytest.mark.parametrize(
    ("seconds", "changes", "process", "why"),
    [
        (59, {}, {"heartbeat_at": 0}, None),
        (60, {}, {"heartbeat_at": 0}, "deadline"),
        (60, {}, {"stopped_at": AT}, "deadline"),
        (60, {}, {"heartbeat_at": AT}, None),  # whoever sent it lives, and stops it by his own clock
        (1, {"cancel_at": AT}, {"stopped_at": AT}, "cancel"),
        (1, {"cancel_at": AT}, {}, None),
        (60, {"deferred": 0}, {"heartbeat_at": 0}, "heartbeat"),
    ],
)
async def test_what_a_target_took_ends_at_its_timeout_where_nobody_watches_it(
    database: Database, clock: FrozenClock, *, seconds: int, changes: Any, process: Any, why: str | None
) -> None:
    """RUN-2, RUN-7: neither the silence of its process nor its lease ends it before."""
    await add_process(database, **process)
    await add_running(database, **{**DEFERRED, **changes})
    clock.advance(seconds)
    assert [row["why"] for row in await expired(database)] == ([] if why is None else [why])


@pytest.mark.parametrize(("calm_us", "found"), [(330 * SECOND, []), (330 * SECOND + 1, [ID])])
async def test_after_a_jump_a_timeout_that_nobody_watches_waits_too(
    database: Database, clock: FrozenClock, calm_us: int, found: list[str]
) -> None:
    """RUN-5b."""
    await add_running(database, **DEFERRED)
    clock.advance(60)
    assert await names(database, calm_us=calm_us) == found


async def test_a_run_keeps_its_deadline_when_its_target_takes_it(database: Database) -> None:
    """RUN-2: counted from the attempt that was taken, not from the first one."""
    await add_running(database, started_at=AT - 100 * SECOND, attempt_at=AT - 10 * SECOND)
    await database.write(lambda tx: runs.defer(tx, ID, "prc_mine", 7, 60 * SECOND))
    assert (await one(database, "runs", id=ID))["deadline_at"] == AT + 50 * SECOND
    await execute(database, "UPDATE runs SET attempt_at = NULL")
    await database.write(lambda tx: runs.defer(tx, ID, "prc_mine", 7, 60 * SECOND))
    assert (await one(database, "runs", id=ID))["deadline_at"] == AT - 40 * SECOND


async def test_a_run_that_its_deadline_ended_is_not_half_done(database: Database) -> None:
    await add_running(database)
    error = RunError("timeout", "Out of time.")
    assert await database.write(lambda tx: runs.lose(tx, ID, 7, RunStatus.TIMED_OUT, error))
    row = await one(database, "runs", id=ID)
    assert (row["status"], row["half_done"], row["error_code"]) == ("timed_out", 0, "timeout")


async def test_a_run_under_a_lease_and_a_heartbeat_is_left_alone(database: Database) -> None:
    """RUN-7; casebook lea-05: how long ago it started has no part in it."""
    await add_process(database)
    await add_running(database, started_at=AT - 7_200 * SECOND)
    assert await expired(database) == []


@pytest.mark.parametrize(("after_us", "found"), [(-1, False), (0, True), (1, True)])
async def test_a_lease_is_over_at_its_instant(database: Database, after_us: int, found: bool) -> None:
    """RUN-7: by the database's clock, to the microsecond."""
    await add_process(database)
    await add_running(database, lease_until=AT - after_us)
    rows = await expired(database)
    assert [(row["id"], row["why"]) for row in rows] == ([(ID, "lease")] if found else [])


@pytest.mark.parametrize(("silent_us", "found"), [(TIMEOUT - 1, False), (TIMEOUT, True), (TIMEOUT + 1, True)])
async def test_a_process_is_silent_after_the_heartbeat_timeout(
    database: Database, silent_us: int, found: bool
) -> None:
    """RUN-7: recovery waits for the earlier of lease and heartbeat."""
    await add_process(database, heartbeat_at=AT - silent_us)
    await add_running(database)
    rows = await expired(database)
    assert [(row["id"], row["why"]) for row in rows] == ([(ID, "heartbeat")] if found else [])


@pytest.mark.parametrize(
    ("process", "changes", "until"),
    [
        ({"heartbeat_at": AT}, {}, AT + TIMEOUT),
        ({"heartbeat_at": AT}, {"lease_until": AT + SECOND}, AT + SECOND),
        ({"heartbeat_at": AT}, {"deferred": 1, "deadline_at": AT + 60 * SECOND}, AT + 330 * SECOND),
        (None, {}, AT),
    ],
)
async def test_until_when_others_hold_runs_that_nobody_renews(
    database: Database, process: Any, changes: Any, until: int
) -> None:
    """RUN-7: never later than `expired` finds them, and one's own are not among them."""
    if process is not None:
        await add_process(database, **process)
    await add_running(database, **changes)
    assert await database.read(lambda tx: runs.elsewhere(tx, "prc_new", TIMEOUT)) == (1, until)
    assert await database.read(lambda tx: runs.elsewhere(tx, "prc_mine", TIMEOUT)) == (0, None)


async def test_a_run_whose_process_has_no_row_is_expired(database: Database) -> None:
    """RUN-7: nobody can speak up for it."""
    await add_running(database)
    assert [row["why"] for row in await expired(database)] == ["heartbeat"]


async def test_another_process_s_heartbeat_helps_nobody(database: Database) -> None:
    """RUN-5a; casebook lea-04: a restarted process has another id, so that its orphans look dead."""
    await add_process(database, heartbeat_at=AT - TIMEOUT)
    await add_process(database, id="prc_restarted")
    await add_running(database)
    await add_running(database, id="run_young", session_id="ses_young", owner="prc_restarted")
    assert await names(database) == [ID]


async def test_what_is_queued_or_over_is_never_swept(database: Database) -> None:
    """RUN-7."""
    await add_run(database, id="run_queued")
    await add_running(database, status="succeeded", lease_until=None, finished_at=AT)
    assert await expired(database) == []


async def test_the_longest_expired_come_first_up_to_the_limit(database: Database) -> None:
    """RUN-7: in bounded batches."""
    for name, ago in (("a", 1), ("b", 3), ("c", 2)):
        await add_running(database, id=f"run_{name}", lease_until=AT - ago)
    assert await names(database) == ["run_b", "run_c", "run_a"]
    assert await names(database, limit=2) == ["run_b", "run_c"]


async def test_an_expired_run_comes_with_the_policy_of_its_schedule(database: Database) -> None:
    """RUN-8: without a schedule it is not repeated."""
    await add_schedule(database, on_lost="resume", max_attempts=3)
    await add_running(database, schedule_id=SCH, lease_until=AT - 2, attempt=2, cancel_at=AT - 1)
    await add_running(database, id="run_b", session_id="ses_b", lease_until=AT - 1)
    policies = [
        (row["on_lost"], row["max_attempts"], row["attempt"], row["cancel_at"])
        for row in await expired(database)
    ]
    assert policies == [("resume", 3, 2, AT - 1), ("fail", 1, 1, None)]


# --- the clock guard ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calm_seconds", "found"),
    [(None, True), (0, False), (329, False), (330, False), (331, True)],
)
async def test_after_a_jump_a_lease_is_left_alone_for_its_own_length(
    database: Database, calm_seconds: int | None, found: bool
) -> None:
    """RUN-5b: the run's lease is 330 seconds long, and so is the time its holder has to speak up."""
    await add_process(database)
    await add_running(database, lease_until=AT - 3_600 * SECOND)
    calm_us = None if calm_seconds is None else calm_seconds * SECOND
    assert await names(database, calm_us=calm_us) == ([ID] if found else [])


@pytest.mark.parametrize(
    ("calm_seconds", "found"),
    [(None, True), (0, False), (119, False), (120, False), (121, True)],
)
async def test_after_a_standstill_a_heartbeat_is_left_alone_for_its_timeout(
    database: Database, calm_seconds: int | None, found: bool
) -> None:
    """RUN-5b; casebook lea-18: a watchdog that stood still itself waits one full heartbeat timeout."""
    await add_process(database, heartbeat_at=AT - 3_600 * SECOND)
    await add_running(database)
    calm_us = None if calm_seconds is None else calm_seconds * SECOND
    assert await names(database, calm_us=calm_us) == ([ID] if found else [])


async def test_after_a_jump_short_leases_come_back_before_long_ones(database: Database) -> None:
    """RUN-5b: each by its own length."""
    await add_process(database)
    for name, length in (("short", 40), ("long", 4_000)):
        await add_running(database, id=f"run_{name}", lease_seconds=length, lease_until=AT - 1)
    assert await names(database, calm_us=100 * SECOND) == ["run_short"]


# --- losing ---------------------------------------------------------------------------------------------------------


async def test_a_lost_run_is_closed_and_marked_as_half_done(database: Database, clock: FrozenClock) -> None:
    """RUN-7, RUN-8."""
    await add_running(database, claim_id="clm_1")
    clock.advance(9)
    assert await lose(database)
    row = await one(database, "runs", id=ID)
    assert (row["status"], row["half_done"], row["lease_until"], row["claim_id"]) == ("lost", 1, None, None)
    assert (row["finished_at"], row["duration_us"]) == (AT + 9 * SECOND, 9 * SECOND)
    assert (row["error_code"], row["error"], row["owner"]) == ("lost", "no word", "prc_mine")


async def test_losing_after_the_clock_was_set_back_takes_no_time(
    database: Database, clock: FrozenClock
) -> None:
    """Casebook mis-11."""
    await add_running(database)
    clock.jump(-3_600)
    assert await lose(database)
    assert (await one(database, "runs", id=ID))["duration_us"] == 0


async def test_two_sweeps_lose_a_run_once(database: Database) -> None:
    """RUN-7; casebook lea-09: one state change, by compare and set; and it is not found again."""
    await add_running(database)
    assert await names(database) == [ID]
    assert [await lose(database) for _ in range(3)] == [True, False, False]
    assert await names(database) == []


async def test_a_run_that_was_claimed_anew_is_not_lost_for_its_former_holder(database: Database) -> None:
    """RUN-6, RUN-7."""
    await add_running(database, fence=8)
    before = await one(database, "runs", id=ID)
    assert not await lose(database, 7)
    assert await one(database, "runs", id=ID) == before


async def test_a_run_that_ended_meanwhile_is_not_lost(database: Database) -> None:
    """RUN-7: the last word of its holder stands."""
    await add_running(database, status="succeeded", lease_until=None, finished_at=AT)
    assert not await lose(database)
    assert (await one(database, "runs", id=ID))["status"] == "succeeded"


async def test_a_renewal_takes_a_run_out_of_the_sweep_and_a_loss_ends_renewals(database: Database) -> None:
    """RUN-4: a heartbeat never takes a lost one back."""
    await add_process(database)
    await add_running(database, lease_until=AT - 1)
    assert await names(database) == [ID]
    assert await database.write(lambda tx: runs.renew(tx, "prc_mine", [(ID, 7)])) == {ID}
    assert await names(database) == []
    assert await lose(database)
    assert await database.write(lambda tx: runs.renew(tx, "prc_mine", [(ID, 7)])) == set()
    assert (await one(database, "runs", id=ID))["status"] == "lost"


# --- processes are told apart by their beat -------------------------------------------------------------------------


async def test_a_beat_brings_a_process_s_runs_back_out_of_the_sweep(database: Database) -> None:
    """RUN-4, RUN-7."""
    await add_process(database, heartbeat_at=AT - TIMEOUT)
    await add_running(database)
    assert await names(database) == [ID]
    assert await database.write(lambda tx: processes.beat(tx, "prc_mine", None, None))
    assert await names(database) == []
    (row,) = await execute(database, "SELECT heartbeat_at FROM processes")
    assert row["heartbeat_at"] == AT
