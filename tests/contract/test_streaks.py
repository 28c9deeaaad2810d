"""Runs that fail together: each moves its schedule's streak, as if one had ended after the other."""

import pytest

from gnomon.domain.run import RunError, RunStatus, Trigger
from gnomon.services.settling import Closed, settle
from gnomon.stores.database import Database
from support.rows import SCHEDULE, add_schedule, execute, one

SCHEDULE_ID = SCHEDULE["id"]
DAILY = '{"unit":"day","every":1,"at":["09:00"],"zone":"UTC"}'
pytestmark = pytest.mark.anyio


def closed(number: int, status: RunStatus = RunStatus.FAILED, schedule_id: str = SCHEDULE_ID) -> Closed:
    error = RunError("boom", f"failure {number}")
    return Closed(f"run_{number}", schedule_id, Trigger.SCHEDULE, status, error)


async def told(database: Database) -> list[tuple[str, str]]:
    rows = await execute(database, "SELECT action, subject_id FROM audit_entries ORDER BY seq")
    return [(row["action"], row["subject_id"]) for row in rows]


async def test_the_runs_of_one_schedule_count_one_by_one(database: Database) -> None:
    """SCH-8: warned of at half of the limit, stopped at the limit, once, with the last failure kept."""
    await add_schedule(database, overlap="allow", failure_limit=4, cadence=DAILY)
    await add_schedule(database, id="sch_other", failure_limit=4)
    runs = [closed(number) for number in range(5)]
    await database.write(lambda tx: settle(tx, [*runs, closed(9, schedule_id="sch_other")]))
    row = await one(database, "schedules", id=SCHEDULE_ID)
    assert (row["failure_streak"], row["status"], row["last_error"]) == (5, "error", "failure 4")
    assert row["status_reason"] == "4 failures in a row"
    other = await one(database, "schedules", id="sch_other")
    assert (other["failure_streak"], other["status"], other["last_error"]) == (1, "active", "failure 9")
    assert [entry for entry in await told(database) if entry[0] in {"WARN", "FAIL_OUT"}] == [
        ("WARN", SCHEDULE_ID),
        ("FAIL_OUT", SCHEDULE_ID),
    ]


async def test_a_schedule_whose_rule_can_t_be_computed_any_more_is_stopped_all_the_same(
    database: Database,
) -> None:
    """SCH-8, DSP-9a: else none of its runs could be closed again, by whoever."""
    await add_schedule(database, cadence="{}", failure_limit=1)
    await database.write(lambda tx: settle(tx, [closed(1)]))
    assert (await one(database, "schedules", id=SCHEDULE_ID))["status"] == "error"


async def test_a_cancel_among_them_moves_nothing_and_who_is_gone_has_no_streak(database: Database) -> None:
    """SCH-8, SCH-11."""
    await add_schedule(database, failure_streak=1, failure_limit=5)
    ended = [closed(1, RunStatus.CANCELLED), closed(2, RunStatus.LOST), closed(3, schedule_id="sch_gone")]
    await database.write(lambda tx: settle(tx, ended))
    assert (await one(database, "schedules", id=SCHEDULE_ID))["failure_streak"] == 2
