"""The queue: who is claimed, in which order, under which fence (RUN-1, RUN-4, RUN-6, DSP-10)."""

from dataclasses import replace
from typing import Any

import pytest

from gnomon.domain.audit import Action
from gnomon.domain.instants import from_micros
from gnomon.stores import audit, runs, sessions
from gnomon.stores.database import Database, Row, UniqueViolation, Value
from gnomon.stores.run_rows import NewRun
from gnomon.testing.clock import FrozenClock
from support.rows import (
    AT,
    RUNNING,
    SCHEDULE,
    SECOND,
    add_run,
    add_schedule,
    execute,
    one,
)

pytestmark = pytest.mark.anyio
SCH = SCHEDULE["id"]
NEW = NewRun(
    id="run_1",
    trigger="schedule",
    priority=10,
    target_kind="agent",
    target_id="agt_1",
    schedule_id=SCH,
    revision=2,
    nominal_fire_at=AT - 5,
    session_id="ses_1",
    query="go",
    scheduled_for=AT,
    claimable_at=AT,
    lease_seconds=330,
)


async def insert(database: Database, *new: NewRun) -> None:
    await database.write(lambda tx: runs.insert(tx, new))


async def queue(database: Database, run_id: str, **changes: Any) -> None:
    """A queued run."""
    await add_run(database, **{"id": run_id, "session_id": f"ses_{run_id}", **changes})


async def claim(database: Database, limit: int = 10, owner: str = "prc_mine") -> list[Row]:
    return await database.write(lambda tx: runs.claim(tx, owner, "clm_1", limit))


# --- inserting ------------------------------------------------------------------------------------------------------


async def test_a_run_is_born_queued_with_its_session_and_its_query(database: Database) -> None:
    """DSP-5."""
    await insert(database, NEW)
    row = await one(database, "runs", id="run_1")
    assert (row["status"], row["claimable_at"], row["fence"], row["attempt"]) == ("queued", AT, 0, 0)
    assert (row["owner"], row["claim_id"], row["lease_until"], row["started_at"], row["attempt_at"]) == (
        None,
    ) * 5
    session = await database.read(lambda tx: sessions.find(tx, "ses_1"))
    assert session is not None
    assert (session.created_at, session.turn_count) == (from_micros(AT), 1)
    assert (row["session_id"], row["query"], row["output"], row["created_at"]) == (None, "go", None, AT)


async def test_a_run_can_be_born_claimed_with_its_lease_by_the_database_s_clock(database: Database) -> None:
    """DSP-3."""
    await insert(database, replace(NEW, owner="prc_mine", claim_id="clm_1", fence=4))
    row = await one(database, "runs", id="run_1")
    assert (row["status"], row["claimable_at"], row["owner"], row["fence"]) == (
        "running",
        None,
        "prc_mine",
        4,
    )
    assert (row["attempt"], row["started_at"], row["created_at"]) == (1, AT, None)
    assert (row["claim_id"], row["lease_until"]) == ("clm_1", AT + 330 * SECOND)


async def test_a_run_that_waits_is_claimable_by_nobody(database: Database) -> None:
    """DSP-8."""
    await add_schedule(database)
    await insert(database, replace(NEW, claimable_at=None, waits_for="run_0"))
    assert await claim(database) == []
    assert await database.read(runs.next_claimable) is None


async def test_runs_that_share_a_session_add_their_turns_to_it(database: Database) -> None:
    """SCH-7."""
    await insert(database, NEW, replace(NEW, id="run_2"))
    await insert(database, replace(NEW, id="run_3"))
    named = await execute(database, "SELECT id, session_id FROM runs ORDER BY id")
    assert [row["session_id"] for row in named] == [None, "ses_1", "ses_1"], "a run's own is not written"
    found = await database.read(lambda tx: sessions.turns(tx, "ses_1", "", 9))
    assert [turn.run_id for turn in found] == ["run_1", "run_2", "run_3"]


async def test_a_run_is_there_once_and_a_second_leaves_nothing_behind(database: Database) -> None:
    """DSP-5: all of it, or none."""
    await insert(database, NEW)
    with pytest.raises(UniqueViolation):
        await insert(database, replace(NEW, id="run_2", session_id="ses_2"), NEW)
    assert [row["id"] for row in await execute(database, "SELECT id FROM runs")] == ["run_1"]


# --- order ----------------------------------------------------------------------------------------------------------


async def test_the_interactive_come_before_the_scheduled_and_the_oldest_first(database: Database) -> None:
    """RUN-1."""
    for run_id, priority, waited in [("a", 10, 9), ("b", 0, 1), ("c", 10, 50), ("d", 0, 7), ("e", 10, 1)]:
        await queue(database, f"run_{run_id}", priority=priority, claimable_at=AT - waited)
    assert [row["id"] for row in await claim(database)] == ["run_d", "run_b", "run_c", "run_a", "run_e"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_the_limit_is_over_both_queues_and_the_rest_stays(database: Database, limit: int) -> None:
    """RUN-1."""
    for run_id, priority, waited in [("a", 10, 9), ("b", 0, 1), ("c", 10, 50), ("d", 0, 7)]:
        await queue(database, f"run_{run_id}", priority=priority, claimable_at=AT - waited)
    expected = ["run_d", "run_b", "run_c", "run_a"]
    assert [row["id"] for row in await claim(database, limit)] == expected[:limit]
    assert [row["id"] for row in await claim(database)] == expected[limit:]


@pytest.mark.parametrize("priority", [0, 10])
async def test_of_one_queue_the_oldest_are_taken(database: Database, priority: int) -> None:
    """RUN-1."""
    for run_id, waited in [("a", 2), ("b", 3), ("c", 1)]:
        await queue(database, f"run_{run_id}", priority=priority, claimable_at=AT - waited)
    assert [row["id"] for row in await claim(database, 2)] == ["run_b", "run_a"]


async def test_nothing_is_claimable_before_its_instant(database: Database, clock: FrozenClock) -> None:
    """RUN-1: ``scheduled_for`` is only the earliest instant; of either queue."""
    await queue(database, "run_a", claimable_at=AT + 1, priority=10)
    await queue(database, "run_b", claimable_at=AT + 1, priority=0)
    assert await claim(database) == []
    clock.advance(0.000_001)
    assert [row["id"] for row in await claim(database)] == ["run_b", "run_a"]


async def test_a_run_whose_instant_lies_ahead_takes_nobody_s_place_and_no_fence(database: Database) -> None:
    """RUN-1, RUN-6: it is not even looked at."""
    await add_schedule(database, fence=6)
    await queue(database, "run_ahead", claimable_at=AT + 1, priority=0)
    await queue(database, "run_later", claimable_at=AT + 1, priority=10, schedule_id=SCH)
    await queue(database, "run_due", claimable_at=AT, priority=10)
    assert [row["id"] for row in await claim(database, 1)] == ["run_due"]
    assert await claim(database) == []
    assert (await one(database, "schedules", id=SCH))["fence"] == 6


@pytest.mark.parametrize(
    "changes",
    [
        {**RUNNING},
        {"claimable_at": None, "waits_for": "run_0"},
        {"claimable_at": AT + 1},
        {**RUNNING, "status": "lost", "lease_until": None, "finished_at": AT},
    ],
    ids=["running", "waiting", "ahead", "over"],
)
async def test_the_claim_looks_again_at_what_was_found(database: Database, changes: dict[str, Any]) -> None:
    """HOUSE rule 6: one conditional statement, whatever became of the run since the queue was read."""
    await queue(database, "run_a", **changes)
    before = await one(database, "runs", id="run_a")
    asked: dict[str, Value] = {"id": "run_a", "owner": "prc_2", "claim_id": "clm_2", "fence": 99}
    assert await database.write(lambda tx: tx.many("runs.claim", [asked])) == []
    assert await one(database, "runs", id="run_a") == before


async def test_the_wait_for_the_next_run_looks_at_both_queues(database: Database, clock: FrozenClock) -> None:
    """RUN-1, DSP-1."""
    assert await database.read(runs.next_claimable) is None
    await queue(database, "run_a", claimable_at=AT + 30, priority=10)
    assert await database.read(runs.next_claimable) == 30
    await queue(database, "run_b", claimable_at=AT + 20, priority=0)
    assert await database.read(runs.next_claimable) == 20
    await queue(database, "run_c", claimable_at=AT + 10, priority=10)
    assert await database.read(runs.next_claimable) == 10
    clock.advance(1)
    assert await database.read(runs.next_claimable) == 10 - SECOND


# --- the grant ------------------------------------------------------------------------------------------------------


async def test_a_claim_stamps_owner_fence_attempt_and_lease(database: Database, clock: FrozenClock) -> None:
    """DSP-3, RUN-4, RUN-5a."""
    await add_schedule(database, fence=6)
    await queue(database, "run_a", schedule_id=SCH, attempt=1, started_at=AT - 100, fence=3, lease_seconds=50)
    clock.advance(5)
    (row,) = await claim(database)
    assert (row["id"], row["fence"], row["attempt"], row["query"], row["timeout_seconds"]) == (
        "run_a",
        7,
        2,
        "go",
        300,
    )
    stored = await one(database, "runs", id="run_a")
    assert (stored["status"], stored["owner"], stored["claim_id"]) == ("running", "prc_mine", "clm_1")
    assert (stored["claimable_at"], stored["fence"]) == (None, 7)
    assert stored["started_at"] == AT - 100, "the actual start is the first attempt's"
    assert (stored["attempt_at"], stored["lease_until"]) == (AT + 5 * SECOND, AT + 55 * SECOND)


async def test_the_first_attempt_is_the_actual_start(database: Database) -> None:
    """RUN-9."""
    await queue(database, "run_a")
    await claim(database)
    row = await one(database, "runs", id="run_a")
    assert (row["started_at"], row["attempt_at"]) == (AT, None), "kept apart from the second attempt on"


async def test_a_run_is_claimed_once(database: Database) -> None:
    """RUN-1, PRF-3: the second finds nothing."""
    await queue(database, "run_a")
    assert len(await claim(database)) == 1
    assert await claim(database, owner="prc_other") == []
    assert (await one(database, "runs", id="run_a"))["owner"] == "prc_mine"


async def test_fences_grow_with_each_grant_over_the_runs_of_one_schedule(database: Database) -> None:
    """RUN-6: each grant of a schedule is newer than every one before it, whichever run it is for."""
    await add_schedule(database, fence=10)
    await add_schedule(database, id="sch_other", fence=0)
    for run_id, schedule_id, waited in [("a", SCH, 3), ("b", "sch_other", 2), ("c", SCH, 1)]:
        await queue(database, f"run_{run_id}", schedule_id=schedule_id, claimable_at=AT - waited)
    found = {row["id"]: row["fence"] for row in await claim(database)}
    assert found == {"run_a": 11, "run_b": 1, "run_c": 12}
    assert (await one(database, "schedules", id=SCH))["fence"] == 12
    await database.write(lambda tx: runs.requeue(tx, "run_a", 11, AT, owner="prc_mine", half_done=False))
    assert [(row["id"], row["fence"]) for row in await claim(database)] == [("run_a", 13)]


async def test_a_run_without_a_schedule_has_a_fence_of_its_own(database: Database) -> None:
    """RUN-6."""
    await queue(database, "run_a", fence=4, priority=0)
    assert [row["fence"] for row in await claim(database)] == [5]


async def test_a_fence_never_falls_even_where_the_schedule_s_is_behind(database: Database) -> None:
    """RUN-6: whatever was restored from where."""
    await add_schedule(database, fence=1)
    await queue(database, "run_a", schedule_id=SCH, fence=40)
    assert [row["fence"] for row in await claim(database)] == [41]


async def test_a_run_whose_schedule_is_gone_can_still_be_claimed(database: Database) -> None:
    """SCH-10: deleting a schedule touches no existing run."""
    await queue(database, "run_a", schedule_id="sch_gone", fence=2)
    (row,) = await claim(database)
    assert (row["fence"], row["timeout_seconds"]) == (3, None)


@pytest.mark.parametrize("count", [1, 3])
async def test_a_claim_is_in_the_audit_with_the_fence_of_each(database: Database, count: int) -> None:
    """SEC-7: one entry for each run, whether it came alone or with others, in the order of the queue."""
    for number in range(count):
        await queue(database, f"run_{number}", claimable_at=AT - 10 + number, attempt=number)
    claimed = await claim(database)
    assert await claim(database) == []
    found = await database.read(lambda tx: audit.after(tx, 0, 9))
    assert [
        (entry.actor, entry.action, entry.subject_kind, entry.subject_id, entry.fence, entry.detail)
        for entry in found
    ] == [
        ("prc_mine", Action.CLAIM, "run", row["id"], row["fence"], {"attempt": number + 1})
        for number, row in enumerate(claimed)
    ]
    assert {entry.at for entry in found} == {from_micros(AT)}
    assert len(claimed) == count


async def test_a_claim_that_takes_nothing_says_nothing(database: Database) -> None:
    """SEC-7."""
    assert await claim(database) == []
    assert await database.read(lambda tx: audit.after(tx, 0, 9)) == []
