"""Two tenants in databases of their own, worked on by one process: neither starves the other (RUN-1, DSP-2)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.services.mint import Mint
from gnomon.services.places import Places
from gnomon.stores import runs
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.databases import open_database
from support.house import House, an_agent

PLACES = 10
QUEUED = """INSERT INTO {into} SELECT {what} FROM (
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many) SELECT i FROM n)"""
OWN = "printf('run_%020d', i)"


async def queue_runs(house: House, many: int) -> None:
    """So many runs of no schedule in the queue, all claimable."""
    run = QUEUED.format(
        into="runs (id, trigger_kind, status, priority, target_kind, target_id, scheduled_for, claimable_at, lease_seconds)",
        what=f"{OWN}, 'invoke', 'queued', 10, 'agent', 'agt_' || printf('%020d', 0), 0, i, 330",
    )
    await house.rows(run, many=many)


@pytest.fixture
async def tenants(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[tuple[House, House]]:
    places, houses = Places(PLACES), []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        database = await open_database(folder, clock)
        await an_agent(database)
        house = House(database, clock, Mint(clock, SeededEntropy(number)), places=places)
        houses.append(await house.open())
    first, second = houses
    yield first, second
    for house in houses:
        house.direct.close()
        await house.database.close()


async def test_a_long_queue_delays_another_s_single_run_by_no_more_than_what_is_in_work(
    tenants: tuple[House, House],
) -> None:
    """RUN-1: a hundred thousand queued; the other's run starts with the first place that gets free."""
    long, single = tenants
    await queue_runs(long, 100_000)
    holds = [long.runtime.hangs() for _ in range(PLACES)]
    await long.claim()
    await long.runtime.started(PLACES)
    await queue_runs(single, 1)
    await single.claim()
    assert not single.runtime.calls, "every place is taken"
    woken = single.signal.version
    holds[0].release()
    await long.until(lambda: long.engine.runner.in_work == PLACES - 1)
    assert single.signal.version > woken
    await long.claim()
    assert long.engine.runner.in_work == PLACES - 1, "it asked first, and holds back"
    await single.claim()
    await single.runtime.started(1)
    await single.idle()
    later = long.runtime.hangs()
    await long.claim()
    await long.runtime.started(PLACES + 1)
    for hold in (*holds[1:], later):
        hold.release()
    await long.idle()
    assert len({call.invocation.run_id for call in long.runtime.calls}) == len(long.runtime.calls)


async def test_places_that_nobody_else_wants_are_all_for_one(tenants: tuple[House, House]) -> None:
    """RUN-1: fairness costs nothing while there is nobody to be fair to."""
    long, idle = tenants
    await queue_runs(long, 30)
    await idle.claim()
    await long.claim()
    assert long.engine.runner.in_work + len(long.runtime.calls) >= PLACES
    await long.idle()


async def test_a_tenant_whose_database_is_gone_holds_no_place_back(
    tenants: tuple[House, House], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSP-2: it waited for a place when its database went."""
    long, dead = tenants
    await queue_runs(long, 30)
    holds = [long.runtime.hangs() for _ in range(PLACES)]
    await long.claim()
    await queue_runs(dead, 1)
    await dead.claim()
    assert dead.engine.runner._share.waits
    read = dead.database.read

    async def gone(work: Any) -> Any:
        if work is runs.next_claimable:
            raise Unavailable("The database is gone.", code="database_failed")
        return await read(work)

    monkeypatch.setattr(dead.database, "read", gone)
    await long.runtime.started(PLACES)
    holds[0].release()
    await long.until(lambda: long.engine.runner.in_work == PLACES - 1)
    with pytest.raises(Unavailable):
        await dead.claim()
    await long.claim()
    await long.runtime.started(PLACES + 1)
    for hold in holds[1:]:
        hold.release()
    await long.idle()
