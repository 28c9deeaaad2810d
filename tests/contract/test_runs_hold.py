"""Writes by a holder: each is guarded on owner, fence and status; a stale one changes nothing (RUN-4, RUN-6).

Casebook lea-25 and lea-32: a release, a renewal or a report of attempt 1 must find nothing once attempt 2 has claimed,
and every write to run, checkpoint or event stream carries the claim's number.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gnomon.domain.invocation import Usage
from gnomon.stores import runs
from gnomon.stores.database import Database, Tx
from gnomon.testing.clock import FrozenClock
from support.rows import AT, RUN, SECOND, add_run, add_running, execute, one

pytestmark = pytest.mark.anyio
ID = RUN["id"]
OVER: dict[str, Any] = {"status": "succeeded", "lease_until": None, "finished_at": AT}
ENDING: dict[str, Any] = {
    "id": ID,
    "owner": "prc_mine",
    "fence": 7,
    "status": "failed",
    "duration_us": 42,
    "model_calls": 1,
    "input_tokens": 2,
    "output_tokens": 3,
    "cost": 0.5,
    "response_preview": "so far",
    "error_code": "boom",
    "error": "it broke",
    "output": "so far, and on",
}


def by_fence(ending: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in ending.items() if name not in {"owner", "duration_us"}}


ATTEMPT = {
    "run_id": ID,
    "fence": 7,
    "owner": "prc_mine",
    "outcome": "failed",
    "error_code": None,
    "error": "why",
}
Holder = Callable[[Tx, str, int], Awaitable[bool]]


async def _renew(tx: Tx, owner: str, fence: int) -> bool:
    return await runs.renew(tx, owner, [(ID, fence)]) == {ID}


async def _close(tx: Tx, owner: str, fence: int) -> bool:
    landed = await runs.close(tx, [ENDING | {"owner": owner, "fence": fence}])
    await tx.send()
    return landed.ids == {ID}


async def _requeue(tx: Tx, owner: str, fence: int) -> bool:
    return await runs.requeue(tx, ID, fence, AT + 9, owner=owner, half_done=False)


async def _attempt(tx: Tx, owner: str, fence: int) -> bool:
    return await runs.insert_attempt(tx, **ATTEMPT | {"owner": owner, "fence": fence})


async def _checkpoint(tx: Tx, owner: str, fence: int) -> bool:
    return await runs.checkpoint(tx, run_id=ID, node="a", owner=owner, fence=fence, output="out", usage=None)


HOLDERS: dict[str, Holder] = {
    "renew": _renew,
    "close": _close,
    "requeue": _requeue,
    "attempt": _attempt,
    "checkpoint": _checkpoint,
}
STALE = {
    "another owner": ("prc_other", 7),
    "an older fence": ("prc_mine", 6),
    "a fence that was never granted": ("prc_mine", 8),
    "both": ("prc_other", 6),
}


async def everything(database: Database) -> list[list[dict[str, Any]]]:
    tables = ("runs", "attempts", "checkpoints", "run_events")
    return [await execute(database, f"SELECT * FROM {table}") for table in tables]


@pytest.mark.parametrize("write", HOLDERS.values(), ids=HOLDERS.keys())
async def test_the_holder_s_own_write_lands(database: Database, write: Holder) -> None:
    """RUN-4: without this every refusal below could be for another reason."""
    await add_running(database)
    assert await database.write(lambda tx: write(tx, "prc_mine", 7))


@pytest.mark.parametrize(("owner", "fence"), STALE.values(), ids=STALE.keys())
@pytest.mark.parametrize("write", HOLDERS.values(), ids=HOLDERS.keys())
async def test_a_stale_write_changes_nothing(
    database: Database, write: Holder, owner: str, fence: int
) -> None:
    """RUN-4, RUN-6; casebook lea-25, lea-32."""
    await add_running(database)
    before = await everything(database)
    assert not await database.write(lambda tx: write(tx, owner, fence))
    assert await everything(database) == before


@pytest.mark.parametrize("write", HOLDERS.values(), ids=HOLDERS.keys())
async def test_a_write_after_the_end_changes_nothing(database: Database, write: Holder) -> None:
    """RUN-4: it never revives a released run, even under its last owner and fence."""
    await add_running(database, **OVER)
    before = await everything(database)
    assert not await database.write(lambda tx: write(tx, "prc_mine", 7))
    assert await everything(database) == before


@pytest.mark.parametrize("write", HOLDERS.values(), ids=HOLDERS.keys())
async def test_a_write_to_another_run_s_row_changes_nothing(database: Database, write: Holder) -> None:
    """RUN-6: owner and fence of one run open no other one."""
    await add_running(database, id="run_other", session_id="ses_other")
    before = await everything(database)
    assert not await database.write(lambda tx: write(tx, "prc_mine", 7))
    assert await everything(database) == before


# --- renewing -------------------------------------------------------------------------------------------------------


async def test_a_renewal_counts_from_now_by_the_database_s_clock(
    database: Database, clock: FrozenClock
) -> None:
    """RUN-4: the whole lease again, and nothing else of the row."""
    await add_running(database)
    before = await one(database, "runs", id=ID)
    clock.advance(100)
    await database.write(lambda tx: runs.renew(tx, "prc_mine", [(ID, 7)]))
    assert await one(database, "runs", id=ID) == before | {"lease_until": AT + 430 * SECOND}


async def test_renewals_go_together_and_say_which_were_held(database: Database) -> None:
    """RUN-4."""
    for name, fence in (("run_a", 1), ("run_b", 2), ("run_c", 3)):
        await add_running(database, id=name, fence=fence)
    held = [("run_a", 1), ("run_b", 9), ("run_c", 3), ("run_gone", 1)]
    assert await database.write(lambda tx: runs.renew(tx, "prc_mine", held)) == {"run_a", "run_c"}


# --- closing --------------------------------------------------------------------------------------------------------


async def test_a_close_writes_the_record_and_takes_the_lease_off(
    database: Database, clock: FrozenClock
) -> None:
    """RUN-2, RUN-3, RUN-9."""
    await add_running(database, claim_id="clm_1")
    clock.advance(3)
    assert (await database.write(lambda tx: runs.close(tx, [ENDING]))).ids == {ID}
    row = await one(database, "runs", id=ID)
    written = {name: value for name, value in ENDING.items() if name != "id"}
    assert {name: row[name] for name in written} == written
    assert (row["finished_at"], row["lease_until"], row["claim_id"]) == (AT + 3 * SECOND, None, None)


async def test_closes_go_together_and_only_the_held_land(database: Database) -> None:
    """RUN-6."""
    for name in ("run_a", "run_b"):
        await add_running(database, id=name)
    endings = [ENDING | {"id": "run_a"}, ENDING | {"id": "run_b", "fence": 6}]
    assert (await database.write(lambda tx: runs.close(tx, endings))).ids == {"run_a"}
    assert await database.write(lambda tx: runs.still_running(tx, ["run_a", "run_b", "run_c"])) == {"run_b"}


async def test_a_run_is_closed_once(database: Database) -> None:
    """RUN-1: the first ending stands."""
    await add_running(database)
    await database.write(lambda tx: runs.close(tx, [ENDING]))
    assert (await database.write(lambda tx: runs.close(tx, [ENDING | {"status": "succeeded"}]))).ids == set()
    assert (await one(database, "runs", id=ID))["status"] == "failed"


async def test_whoever_shows_the_fence_completes_a_run(database: Database, clock: FrozenClock) -> None:
    """RUN-6: a target that took the work knows the fence and no owner; the run's own times count."""
    await add_running(database)
    clock.advance(2)
    row = await database.write(lambda tx: runs.close_by_fence(tx, by_fence(ENDING)))
    assert row is not None
    assert (row["id"], row["trigger_kind"], row["fence"]) == (ID, "schedule", 7)
    closed = await one(database, "runs", id=ID)
    assert (closed["status"], closed["duration_us"], closed["lease_until"]) == ("failed", 2 * SECOND, None)
    assert (closed["query"], closed["output"]) == ("go", "so far, and on")


@pytest.mark.parametrize(("changes", "fence"), [({}, 6), ({}, 8), (OVER, 7)])
async def test_an_old_fence_completes_nothing(
    database: Database, changes: dict[str, Any], fence: int
) -> None:
    """RUN-6."""
    await add_running(database, **changes)
    before = await everything(database)
    assert (
        await database.write(lambda tx: runs.close_by_fence(tx, by_fence(ENDING | {"fence": fence}))) is None
    )
    assert await everything(database) == before


async def test_completing_after_the_clock_was_set_back_takes_no_time(
    database: Database, clock: FrozenClock
) -> None:
    """Casebook mis-11."""
    await add_running(database)
    clock.jump(-3_600)
    assert await database.write(lambda tx: runs.close_by_fence(tx, by_fence(ENDING))) is not None
    assert (await one(database, "runs", id=ID))["duration_us"] == 0


async def test_a_queued_run_is_closed_without_a_fence(database: Database) -> None:
    """RUN-1, RUN-10: nobody holds it, so nobody has to be asked."""
    await add_run(database, waits_for="run_before", claimable_at=None)
    row = await database.write(lambda tx: runs.close_queued(tx, ID, "cancelled", "cancelled", "by hand"))
    assert row is not None
    closed = await one(database, "runs", id=ID)
    assert (closed["status"], closed["claimable_at"], closed["waits_for"], closed["finished_at"]) == (
        "cancelled",
        None,
        None,
        AT,
    )
    assert (closed["error_code"], closed["error"]) == ("cancelled", "by hand")


@pytest.mark.parametrize("changes", [{}, OVER])
async def test_a_run_that_somebody_holds_or_that_is_over_is_not_closed_as_queued(
    database: Database, changes: dict[str, Any]
) -> None:
    """RUN-1."""
    await add_running(database, **changes)
    before = await everything(database)
    assert await database.write(lambda tx: runs.close_queued(tx, ID, "cancelled")) is None
    assert await everything(database) == before


@pytest.mark.parametrize("output", ["x" * 300_000, "", None])
async def test_an_answer_is_kept_in_full_with_its_own_run(database: Database, output: str | None) -> None:
    """RUN-9: a long one, an empty one, which is another thing than none."""
    await add_running(database, query="q" * 100_000)
    await add_running(database, id="run_other")
    await database.write(lambda tx: runs.close(tx, [ENDING | {"output": output}]))
    closed = await one(database, "runs", id=ID)
    assert (closed["query"], closed["output"], closed["finished_at"]) == ("q" * 100_000, output, AT)
    assert (await one(database, "runs", id="run_other"))["output"] is None


# --- back into the queue --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("half_done", "before", "after"), [(False, 0, 0), (False, 1, 1), (True, 0, 1), (True, 1, 1)]
)
async def test_a_requeue_keeps_the_mark_of_what_was_half_done(
    database: Database, half_done: bool, before: int, after: int
) -> None:
    """RUN-8."""
    await add_running(database, half_done=before, claim_id="clm_1")
    assert await database.write(
        lambda tx: runs.requeue(tx, ID, 7, AT + 60 * SECOND, owner="prc_mine", half_done=half_done)
    )
    row = await one(database, "runs", id=ID)
    assert (row["status"], row["owner"], row["claim_id"], row["lease_until"]) == ("queued", None, None, None)
    assert (row["claimable_at"], row["scheduled_for"]) == (AT + 60 * SECOND,) * 2
    assert (row["half_done"], row["fence"], row["attempt"]) == (after, 7, 1)


async def test_what_attempts_spend_adds_up_under_the_present_fence(database: Database) -> None:
    """RUN-9: an attempt that is not the last, then the last; nothing where nothing was told."""
    columns = ("model_calls", "input_tokens", "output_tokens", "cost")
    await add_running(database)
    for fence in (7, 7, 6):
        await database.write(lambda tx, fence=fence: runs.spend(tx, ID, fence, Usage(1, 10, 20, 0.5)))  # type: ignore[misc]
    row = await one(database, "runs", id=ID)
    assert tuple(row[name] for name in columns) == (2, 20, 40, 1.0)
    silent = ENDING | dict.fromkeys(columns)
    assert (await database.write(lambda tx: runs.close(tx, [silent]))).ids == {ID}
    await database.write(lambda tx: runs.spend(tx, ID, 7, Usage(1, 10, 20, 0.5)))
    row = await one(database, "runs", id=ID)
    assert tuple(row[name] for name in columns) == (2, 20, 40, 1.0), "a run that is over spends no more"


@pytest.mark.parametrize(("fence", "lands"), [(7, True), (6, False)])
async def test_the_watchdog_requeues_by_fence_alone(database: Database, fence: int, lands: bool) -> None:
    """RUN-8, RUN-7: two sweeps resume a run once."""
    await add_running(database)

    async def resume(tx: Tx) -> bool:
        return await runs.requeue(tx, ID, fence, AT, owner=None, half_done=True)

    assert await database.write(resume) is lands
    assert not await database.write(resume)


async def test_the_record_of_an_attempt_is_the_run_s_own_and_kept_once(
    database: Database, clock: FrozenClock
) -> None:
    """RUN-9."""
    await add_running(database, attempt=2, attempt_at=AT + 5)
    clock.advance(1)
    for code in ("first", "second"):
        await database.write(lambda tx, code=code: runs.insert_attempt(tx, **ATTEMPT | {"error_code": code}))  # type: ignore[misc]
    (kept,) = await execute(database, "SELECT * FROM attempts")
    assert kept == {
        "run_id": ID,
        "number": 2,
        "fence": 7,
        "worker": "prc_mine",
        "started_at": AT + 5,
        "finished_at": AT + SECOND,
        "outcome": "failed",
        "error_code": "first",
        "error": "why",
    }
