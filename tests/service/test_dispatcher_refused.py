"""Slots that do not become a run use up none (SCH-9): refused by a gate, or in the ledger already (casebook win-04)."""

from datetime import timedelta

import pytest

from gnomon.domain.instants import to_micros
from support.databases import START
from support.house import AGENT, House, a_schedule, an_agent, rows

pytestmark = pytest.mark.anyio
EVERY_FIVE = {"unit": "minute", "every": 5}
ANCHOR = START - timedelta(hours=5)


async def test_a_refused_slot_leaves_the_last_run_to_a_later_one(house: House) -> None:
    """SCH-9, RUN-2, casebook win-04: the agent is off at the first slot and on at the second."""
    await an_agent(house.database, enabled=0)
    sid = await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=ANCHOR, max_runs=1)
    await house.dispatch()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["run_count"]) == ("active", 0)
    assert schedule["next_fire_at"] == to_micros(START + timedelta(minutes=5))
    [skipped] = await house.occurrences()
    assert (skipped["disposition"], skipped["reason"]) == ("skipped", "target_invalid")

    await rows(house.database, "UPDATE agents SET enabled = 1 WHERE id = :id", id=AGENT)
    await house.elapse(300)
    await house.dispatch()
    await house.idle()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["run_count"]) == ("completed", 1)
    assert len(house.runtime.calls) == 1


async def test_a_slot_that_the_ledger_holds_leaves_the_last_run_to_a_later_one(house: House) -> None:
    """DSP-6, SCH-9; casebook mis-08: it was recorded under a clock that was ahead, and the schedule forgot it."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=ANCHOR, max_runs=1)
    await rows(
        house.database,
        "INSERT INTO occurrences (schedule_id, nominal_fire_at, revision, disposition, reason, created_at) "
        "VALUES (:sid, :at, 1, 'skipped', 'already_running', :at)",
        sid=sid,
        at=to_micros(START),
    )
    for _ in range(2):
        await house.dispatch()
        await house.idle()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["run_count"]) == ("active", 0)
    assert schedule["next_fire_at"] == to_micros(START + timedelta(minutes=5))
    assert house.runtime.calls == []

    await house.elapse(300)
    await house.dispatch()
    await house.idle()
    assert (await house.schedule(sid))["status"] == "completed"
    assert len(house.runtime.calls) == 1
