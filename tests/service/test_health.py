"""What readiness depends on: each vital sick in turn, and well again by itself (OPS-5a; casebook dbl-22, lea-19)."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.services import health as health_of
from gnomon.services.health import Health
from gnomon.services.loop import Loop
from gnomon.services.signal import Signal
from gnomon.stores import migrations
from gnomon.stores.database import Database
from support.databases import START
from support.house import House, a_schedule, an_agent
from support.job_world import Server

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
Ticked = Callable[[], tuple[float, int] | None]


NEWEST = migrations.load("sqlite")[-1].number


def a_health(
    house: House,
    last_tick: Ticked = lambda: None,
    *,
    dispatches: bool = True,
    migration: int = NEWEST,
    hears: Callable[[], bool] | None = None,
) -> Health:
    return Health(
        database=house.database,
        clock=house.clock,
        tick_seconds=30,
        dispatches=dispatches,
        last_tick=last_tick,
        zone_data="2026f",
        migration=migration,
        hears=hears,
    )


async def sick(health: Health) -> list[str]:
    return [vital.name for vital in await health.vitals() if not vital.ok]


async def test_a_slot_that_nobody_records_is_told_dbl_22(house: House) -> None:
    """A schedule whose slot has waited for four ticks: somebody forgot it, whatever else looks healthy."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    health = a_health(house, dispatches=False)
    house.clock.advance(120)
    assert await sick(health) == []
    house.clock.advance(1)
    assert await sick(health) == ["slots"]
    [told] = [vital.detail for vital in await health.vitals() if vital.name == "slots"]
    assert told == "a slot has waited 121 s for its record"
    await house.dispatch()
    assert await sick(health) == []
    await house.idle()


class Hanging:
    """A database that accepts a read and answers when it is let go."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.free = asyncio.Event()
        self.asked = 0

    async def read(self, work: Any) -> Any:
        self.asked += 1
        await self.free.wait()
        return await self._database.read(work)


async def test_a_database_that_hangs_is_told_soon_and_asked_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-5a: whoever asks, asks again and again, and gives up long before a statement does."""
    monkeypatch.setattr(health_of, "PATIENCE_SECONDS", 0.01)
    hanging = Hanging(house.database)
    health = a_health(house)
    health._database = hanging  # type: ignore[assignment]
    for _ in range(3):
        assert await sick(health) == ["database"]
    assert hanging.asked == 1
    monkeypatch.setattr(health_of, "PATIENCE_SECONDS", 10.0)
    hanging.free.set()
    assert await sick(health) == []


async def test_a_job_s_slot_that_nobody_records_is_told(house: House) -> None:
    """OPS-5a."""
    server = await Server(house.database, house.clock, house.mint).open()
    await server.job()
    health = a_health(house, dispatches=False)
    house.clock.advance(300 + 120)
    assert await sick(health) == []
    house.clock.advance(1)
    assert await sick(health) == ["jobs"]
    [told] = [vital.detail for vital in await health.vitals() if vital.name == "jobs"]
    assert told == "a slot has waited 121 s for its trigger"
    await server.tick()
    assert await sick(health) == []


async def test_a_restart_of_everything_finds_what_is_due_dbl_22(house: House) -> None:
    """DSP-5: nothing that fires is kept in a process; after each restart the next one fires the slot."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    for seed in (11, 12, 13):
        process = await house.neighbour(seed=seed)
        await process.dispatch()
        await process.idle()
        assert len(process.runtime.calls) == 1
        house.clock.advance(3_600)


async def test_a_loop_that_hangs_is_told_after_two_ticks_lea_19(house: House) -> None:
    """The dispatcher's tick never comes back: a minute later the process says so itself."""
    hangs = asyncio.Event()
    ticks = 0

    async def tick() -> float | None:
        nonlocal ticks
        ticks += 1
        if ticks > 1:
            hangs.set()
            await asyncio.get_running_loop().create_future()
        return 0.0

    loop = Loop("dispatch", tick, clock=house.clock, wakeup=Signal(), most_seconds=30)
    health = a_health(house, lambda: None if loop.ticked_at is None else (loop.ticked_at, 0))
    loop.start()
    await asyncio.wait_for(hangs.wait(), 10)
    house.clock.advance(60)
    assert await sick(health) == []
    house.clock.advance(1)
    assert await sick(health) == ["dispatcher"]
    assert loop._task is not None
    loop._task.cancel()


async def test_a_dispatcher_that_never_started_is_told(house: House) -> None:
    health = a_health(house)
    assert await sick(health) == []
    house.clock.advance(61)
    assert await sick(health) == ["dispatcher"]
    assert await sick(a_health(house, dispatches=False)) == []


async def test_a_database_that_is_away_is_the_one_thing_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = a_health(house)

    async def away(_: object) -> object:
        raise Unavailable("the file is gone")

    with monkeypatch.context() as patch:
        patch.setattr(house.database, "read", away)
        [vital] = await health.vitals()
        assert (vital.name, vital.ok, vital.detail) == ("database", False, "the file is gone")
    assert await sick(health) == []


async def test_the_zone_data_in_use_is_told_tzd_07(house: House) -> None:
    """CAD-11, OPS-5a."""
    told = {vital.name: vital.detail for vital in await a_health(house).vitals()}
    assert told["zones"] == "IANA data 2026f"


async def test_a_database_that_another_version_has_migrated_is_told(house: House) -> None:
    """OPS-3: a newer process migrates under an older one, which says so until it is restarted."""
    health = a_health(house, migration=NEWEST - 1)
    [told] = [vital for vital in await health.vitals() if vital.name == "database"]
    assert not told.ok
    assert f"at migration {NEWEST}, this program knows {NEWEST - 1}" in told.detail


async def test_what_the_driver_said_is_not_told_to_everybody(house: House) -> None:
    """/readyz is open to all: a sentence of ours, without hosts and users."""

    async def read(_: object) -> None:
        raise Unavailable("The database can't be reached. (Connect call failed ('10.1.2.3', 5432))")

    health = a_health(house)
    house.database.read = read  # type: ignore[method-assign, assignment]
    health._database = house.database
    [vital] = await health.vitals()
    assert vital.detail == "The database can't be reached."


@pytest.mark.parametrize(("hears", "detail"), [(True, "are heard"), (False, "waits for a tick")])
async def test_a_process_that_hears_no_other_is_well_and_says_so(
    house: House, hears: bool, detail: str
) -> None:
    """OPS-1: the wakeup only shortens a wait."""
    health = a_health(house, dispatches=False, hears=lambda: hears)
    assert await sick(health) == []
    [told] = [vital for vital in await health.vitals() if vital.name == "wakeup"]
    assert detail in told.detail
