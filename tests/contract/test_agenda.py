"""What lies ahead of the loops of a process: each fact is seen, and found by the first entry of one index (DSP-2)."""

from collections.abc import Awaitable, Callable
from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from gnomon.domain.push import PushKey
from gnomon.stores import agenda, pushes
from gnomon.stores.agenda import Ahead
from gnomon.stores.database import Database
from support.board import add_held, add_task
from support.job_rows import ACKNOWLEDGED, add_instance, add_job, add_trigger
from support.plans import plan, scanned
from support.rows import AT, RUN, SECOND, add_run, add_running, add_schedule

pytestmark = pytest.mark.anyio
LATER = AT + 90 * SECOND
Fill = Callable[[Database], Awaitable[Any]]


async def read(database: Database) -> Ahead:
    return await database.look(lambda tx: agenda.ahead(tx, "prc_mine"))


async def a_push(database: Database) -> None:
    key = PushKey(RUN["id"], "", 1)
    await database.write_guarded(lambda tx: pushes.open_push(tx, key, "pm", "{}"))


FACTS: dict[str, tuple[Fill, dict[str, object]]] = {
    "a slot": (partial(add_schedule, next_fire_at=LATER), {"slot_at": LATER}),
    "a queued run": (partial(add_run, claimable_at=LATER), {"slot_run_at": LATER}),
    "an interactive run": (partial(add_run, claimable_at=LATER, priority=0), {"asked_run_at": LATER}),
    "a run": (partial(add_running, lease_until=LATER), {"lease_until": LATER}),
    "a cancel": (
        partial(add_running, lease_until=LATER, cancel_at=AT, cancel_by="x"),
        {"lease_until": LATER, "cancelled": "prc_mine"},
    ),
    "a cancel of somebody else's": (
        partial(add_running, owner="prc_else", lease_until=LATER, cancel_at=AT, cancel_by="x"),
        {"lease_until": LATER},
    ),
    "a pause": (partial(add_schedule, status="paused", status_until=LATER), {"paused_until": LATER}),
    "a job": (partial(add_job, next_fire_at=LATER), {"job_at": LATER}),
    "a trigger that waits": (partial(add_trigger, wait_until=LATER), {"trigger_waits": LATER}),
    "a trigger that is had": (
        partial(add_trigger, **ACKNOWLEDGED),
        {"trigger_held": ACKNOWLEDGED["instance_id"]},
    ),
    "a task": (add_task, {"claimable_role": "pm"}),
    "a task that waits": (partial(add_task, unmet=1), {}),
    "a claim of a task": (
        partial(add_held, expires_at=LATER),
        {"lock_until": LATER, "instance_heard_at": AT},
    ),
    "an instance": (partial(add_instance, last_heartbeat_at=AT - SECOND), {"instance_heard_at": AT - SECOND}),
    "one that is offline": (partial(add_instance, status="offline", server=None), {}),
    "a push": (a_push, {"pushed_run": RUN["id"]}),
}


async def test_an_empty_database_has_nothing_ahead(database: Database) -> None:
    assert await read(database) == Ahead(AT)


@pytest.mark.parametrize("fact", FACTS)
async def test_each_thing_that_a_loop_waits_for_is_seen(database: Database, fact: str) -> None:
    """Nothing else is told along with it, so that no loop looks for what is not there."""
    fill, seen = FACTS[fact]
    await fill(database)
    assert await read(database) == Ahead(AT, **seen)  # type: ignore[arg-type]


def test_every_field_has_its_fact() -> None:
    told = {name for _, seen in FACTS.values() for name in seen}
    assert {field.name for field in fields(Ahead)} == {"now"} | told


async def test_nothing_is_read_from_end_to_end(database: Database) -> None:
    """HOUSE rule 5: one entry of an index for each part, and nothing is sorted."""
    lines = await plan(database, "agenda.ahead", {"process_id": "prc_mine"})
    assert scanned(lines) <= {"CONSTANT"}, lines
    assert not [line for line in lines if "Sort" in line or "TEMP B-TREE" in line], lines
    indexes = {
        "schedules_due",
        "schedules_until",
        "runs_queue",
        "runs_cancels",
        "runs_leases",
        "jobs_due",
        "triggers_waiting",
        "triggers_held",
        "tasks_claimable",
        "task_locks_expiry",
        "instances_silence",
    }
    assert {index for index in indexes if not any(index in line for line in lines)} == set(), lines
