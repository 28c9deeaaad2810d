"""What happens between a scan's look and its writing: nobody is kept out meanwhile, so the plan may be stale (DSP-5)."""

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from gnomon.cadence import Cadence
from gnomon.domain.instants import to_micros
from gnomon.stores.database import Database
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
Meanwhile = Callable[[House], Awaitable[object]]


class Interrupted:
    """A database in which something happens once, after a scan has planned and before it writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def write_planned(self, read: Any, plan: Any, write: Any, **_: bool) -> Any:
        planned = plan(await self._database.look(read))
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return None if planned is None else await self._database.write(lambda tx: write(tx, planned))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def a_slow_house(house: House, **changes: Any) -> tuple[House, Interrupted]:
    path = Interrupted(house.database)
    slow = await house.neighbour(database=path)
    house.others.append(slow)
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5), **changes)
    return slow, path


async def test_a_schedule_that_was_edited_meanwhile_fires_as_it_is_now(house: House) -> None:
    """SCH-4, DSP-5."""
    slow, path = await a_slow_house(house)
    path.meanwhile = lambda: house.rows("UPDATE schedules SET query = 'anew', revision = 2")
    await slow.dispatch()
    await slow.idle()
    assert [call.invocation.query for call in slow.runtime.calls] == ["anew"]
    [slot] = await house.occurrences()
    assert slot["revision"] == 2


async def test_a_schedule_that_was_paused_meanwhile_does_not_fire(house: House) -> None:
    """SCH-2, DSP-5."""
    slow, path = await a_slow_house(house)
    path.meanwhile = lambda: house.rows("UPDATE schedules SET status = 'paused', next_fire_at = NULL")
    await slow.dispatch()
    assert not slow.runtime.calls
    assert not await house.occurrences()
    assert not await house.audit("CLAIM")


async def test_a_slot_that_another_process_took_meanwhile_fires_once(house: House) -> None:
    """A1, A2: both have planned it; the later one writes nothing at all."""
    slow, path = await a_slow_house(house)
    path.meanwhile = house.dispatch
    await slow.dispatch()
    await house.idle()
    assert (len(house.runtime.calls), len(slow.runtime.calls)) == (1, 0)
    assert len(await house.occurrences()) == 1
    assert len(await house.rows("SELECT id FROM runs")) == 1
    assert len(await house.audit("CLAIM")) == 1


async def test_a_process_that_stood_still_meanwhile_judges_anew(house: House) -> None:
    """DSP-7, Z1: what was on time when it was planned is long past its grace when it could be written."""
    slow, path = await a_slow_house(house, misfire_grace_seconds=60)

    async def stand_still() -> None:
        house.clock.advance(600)
        await slow.beat()

    path.meanwhile = stand_still
    await slow.dispatch()
    assert not slow.runtime.calls
    [slot] = await house.occurrences()
    assert (slot["disposition"], slot["nominal_fire_at"]) == ("missed", to_micros(START))


async def test_a_broken_rule_that_was_mended_meanwhile_is_not_set_aside(house: House) -> None:
    """DSP-9a: the scan judged a rule that is not there any more."""
    slow, path = await a_slow_house(house, cadence='{"x":1}')
    mended = "UPDATE schedules SET revision = 2, cadence = :cadence"
    path.meanwhile = lambda: house.rows(mended, cadence=json.dumps(Cadence.parse(HOURLY).to_json()))
    await slow.dispatch()
    await slow.idle()
    assert [row["status"] for row in await house.rows("SELECT status FROM schedules")] == ["active"]
    assert not await house.audit("SET_ASIDE")
    assert len(slow.runtime.calls) == 1


async def test_a_broken_rule_that_two_have_seen_is_set_aside_once(house: House) -> None:
    """DSP-9a: one entry in the audit, one change of status."""
    slow, path = await a_slow_house(house, cadence='{"x":1}')
    path.meanwhile = house.dispatch
    await slow.dispatch()
    assert len(await house.audit("SET_ASIDE")) == 1
    assert len(await house.rows("SELECT seq FROM status_changes")) == 1


async def test_whoever_loses_looks_elsewhere_in_the_list_and_comes_back(house: House) -> None:
    """DSP-3: two that plan over one list share it out, and what is left at its begin is not forgotten."""
    slow, path = await a_slow_house(house)
    for number in range(1, 6):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{number:020d}",
        )
    slow.engine.dispatcher._batch = house.engine.dispatcher._batch = 2
    path.meanwhile = house.dispatch
    await slow.dispatch()
    assert slow.engine.dispatcher._spread > 1
    await house.elapse(3_600)
    await slow.dispatch()
    await slow.idle()
    await house.idle()
    again = await house.rows(
        "SELECT DISTINCT schedule_id FROM occurrences WHERE nominal_fire_at > :at", at=to_micros(START)
    )
    assert len(again) == 6
