"""What happens between a scan's look and its writing: nobody is kept out meanwhile, so the plan may be stale (DSP-5)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from gnomon.cadence import Cadence
from gnomon.domain.errors import Unavailable
from gnomon.domain.instants import to_micros
from gnomon.services import dispatcher
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

    async def write_guarded(self, work: Any) -> Any:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await self._database.write(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def a_slow_house(house: House, **changes: Any) -> tuple[House, Interrupted]:
    path = Interrupted(house.database)
    slow = await house.neighbour(database=path)
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


async def test_the_schedule_alone_keeps_two_leaders_apart_dbl_11(house: House) -> None:
    """DSP-3: the other one has served the slot, and the ledger has lost it."""
    slow, path = await a_slow_house(house)

    async def taken() -> None:
        await house.dispatch()
        await house.idle()
        await house.rows("UPDATE retention_floor SET occurrences_before = :at", at=house.clock.micros() + 1)
        await house.rows("DELETE FROM occurrences")

    path.meanwhile = taken
    await slow.dispatch()
    await slow.idle()
    assert (len(house.runtime.calls), len(slow.runtime.calls)) == (1, 0)
    assert await house.occurrences() == []


async def test_the_ledger_alone_keeps_two_leaders_apart_dbl_11(house: House) -> None:
    """DSP-6: the other one has served the slot, and its schedule stands as if it had not."""
    slow, path = await a_slow_house(house)
    [before] = await house.rows("SELECT * FROM schedules")
    moved = ("next_fire_at", "recorded_until", "last_fire_at", "run_count", "in_flight_run_id", "fence")

    async def taken() -> None:
        await house.dispatch()
        await house.idle()
        house.clock.advance(1)
        back = ", ".join(f"{name} = :{name}" for name in moved)
        await house.rows(f"UPDATE schedules SET {back}", **{name: before[name] for name in moved})

    path.meanwhile = taken
    await slow.dispatch()
    await slow.idle()
    assert (len(house.runtime.calls), len(slow.runtime.calls)) == (1, 0)
    assert len(await house.occurrences()) == len(await house.rows("SELECT id FROM runs")) == 1


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


async def test_whoever_loses_looks_elsewhere_in_the_list_and_comes_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(dispatcher, "ABREAST", 1)  # nothing of it is on its way when the other comes
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


async def many_due(house: House, count: int) -> None:
    await an_agent(house.database)
    for number in range(count):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{number:020d}",
        )


class Slow:
    """A database that counts its looks at what is due, and in which the first claim waits to be written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.looks = 0
        self.fails = False
        self.go = asyncio.Event()
        self.second = asyncio.Event()
        self._writes = 0

    async def look(self, work: Any) -> Any:
        self.looks += getattr(work, "func", work).__name__ == "_look"
        return await self._database.look(work)

    async def write_guarded(self, work: Any) -> Any:
        self._writes += 1
        if self._writes == 1:
            await self.go.wait()
            if self.fails:
                raise Unavailable("The line broke.")
        elif self._writes == 2:
            self.second.set()
        return await self._database.write_guarded(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def test_a_batch_is_planned_while_the_one_before_it_is_being_written(house: House) -> None:
    """DSP-5: both come of one look, and each schedule fires once."""
    await many_due(house, 5)
    path = Slow(house.database)
    slow = await house.neighbour(database=path)
    slow.engine.dispatcher._batch = 2
    ticking = asyncio.create_task(slow.dispatch())
    await asyncio.wait_for(path.second.wait(), 10)  # it was sent, though the first one has not been written
    path.go.set()
    await ticking
    await slow.idle()
    assert path.looks == 1
    assert sorted(row["schedule_id"] for row in await house.occurrences()) == [
        f"sch_{number:020d}" for number in range(5)
    ]
    assert len({call.invocation.run_id for call in slow.runtime.calls}) == len(slow.runtime.calls) == 5


async def test_a_batch_that_can_t_be_written_takes_no_other_with_it(house: House) -> None:
    """RUN-5a: what landed beside it is worked on, and its own places come back."""
    await many_due(house, 4)
    path = Slow(house.database)
    path.fails = True
    path.go.set()
    slow = await house.neighbour(database=path)
    slow.engine.dispatcher._batch = 2
    with pytest.raises(Unavailable):
        await slow.dispatch()
    await slow.idle()
    assert len(slow.runtime.calls) == 2
    assert slow.engine.runner.places == slow.pace.concurrency
    await slow.dispatch()
    await slow.idle()
    assert len({call.invocation.run_id for call in slow.runtime.calls}) == len(slow.runtime.calls) == 4


async def test_a_batch_without_room_waits_for_the_one_before_it(house: House) -> None:
    """DSP-10: it would only take the long way through the queue, while places are about to get free."""
    await many_due(house, 9)
    house.engine.dispatcher._batch = 6  # of ten places
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 9
    assert not await house.audit("FIRE"), "all were born claimed"


async def test_a_process_that_stops_leaves_the_rest_of_a_long_list_alone(house: House) -> None:
    """DSP-10: a backlog of any length is not worked off first."""
    await many_due(house, 40)
    path = Interrupted(house.database)
    slow = await house.neighbour(database=path)
    slow.engine.dispatcher._batch = 1
    path.meanwhile = slow.engine.drain
    await slow.dispatch()
    assert len(await house.occurrences()) <= dispatcher.ABREAST
