"""The dedup key on its way: from a schedule's template to whoever does the work (IDM-1, IDM-3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gnomon.domain.errors import Invalid
from gnomon.domain.run import Run
from gnomon.stores import history
from gnomon.stores.database import Tx
from support.databases import START
from support.desk import Desk, a_desk
from support.house import AGENT, House, a_schedule, a_team, an_agent

pytestmark = pytest.mark.anyio
DAILY = {"unit": "day", "at": "00:30", "zone": "Asia/Tokyo"}
SLOT = datetime(2026, 11, 28, 15, 30, tzinfo=UTC)  # half past midnight of the 29th in Tokyo


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


async def due(house: House, **changes: Any) -> str:
    """A schedule whose slot has just come due; its id."""
    fields: dict[str, Any] = {"next_fire_at": SLOT, "anchor": START - timedelta(days=9)}
    return await a_schedule(house.database, DAILY, **(fields | {"misfire_grace_seconds": 86_400} | changes))


async def told(house: House) -> list[str | None]:
    """The keys that the target was told, once every run is over."""
    await house.idle()
    return [invocation.dedup_key for invocation in house.runtime.invocations]


async def read(house: House) -> list[str | None]:
    """The keys of the runs as people read them."""
    rows = await house.rows("SELECT id FROM runs ORDER BY id")

    async def work(tx: Tx) -> list[str | None]:
        found = [await history.run(tx, row["id"]) for row in rows]
        return [run[0].dedup_key for run in found if run is not None]

    return await house.database.read(work)


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("brief-{{date}}", "brief-2026-11-29"),
        ("{{iso_week}}/{{month}}/{{year}}/{{hour}}", "2026-W48/2026-11/2026/2026-11-29T00+09:00"),
        ("v1.2.0", "v1.2.0"),
    ],
)
async def test_a_slot_s_run_carries_the_key_of_the_slot(desk: Desk, template: str, key: str) -> None:
    """IDM-1, IDM-3: over the slot's local time, in the run's record and at its target."""
    await due(desk.house, dedup_key=template)
    await desk.house.dispatch()
    assert await told(desk.house) == [key]
    assert await read(desk.house) == [key]


async def test_a_schedule_without_a_key_gives_each_run_its_slot(desk: Desk) -> None:
    """IDM-3: nobody who does the work is without a name for it; the row keeps nothing for that."""
    sid = await due(desk.house)
    await desk.house.dispatch()
    assert await told(desk.house) == [f"{sid}/2026-11-28T15:30:00Z"]
    assert await read(desk.house) == [f"{sid}/2026-11-28T15:30:00Z"]
    assert (await desk.house.run())["dedup_key"] is None


@pytest.mark.parametrize("template", [None, "brief-{{date}}"])
async def test_a_run_out_of_the_queue_has_the_same_key(desk: Desk, template: str | None) -> None:
    """IDM-3: claimed at its birth or later, by whichever process."""
    front = await desk.house.neighbour(work=False)
    sid = await due(desk.house, dedup_key=template)
    await front.dispatch()
    assert (await desk.house.run())["owner"] is None
    await desk.house.claim()
    assert await told(desk.house) == ["brief-2026-11-29" if template else f"{sid}/2026-11-28T15:30:00Z"]


async def test_each_node_of_a_team_has_a_key_of_its_own(desk: Desk) -> None:
    """IDM-3, TGT-3: two nodes are two effects; the second does not find the first's name taken."""
    nodes = [
        {"id": "a", "agent": AGENT, "query": "", "after": []},
        {"id": "b", "agent": AGENT, "query": "", "after": ["a"]},
    ]
    team = await a_team(desk.house.database, "tea_" + "0" * 20, nodes, "b")
    await due(desk.house, target_kind="team", target_id=team, dedup_key="brief-{{date}}")
    await desk.house.dispatch()
    assert await told(desk.house) == ["brief-2026-11-29/a", "brief-2026-11-29/b"]
    assert await read(desk.house) == ["brief-2026-11-29"]


async def test_a_run_by_hand_stands_at_the_instant_it_was_asked_for(desk: Desk) -> None:
    """IDM-1, SCH-11: today's report is not made a second time; without a key each run has another."""
    with_key = await desk.make({"unit": "day", "at": "23:00"}, dedup_key="brief-{{date}}")
    without = await desk.make({"unit": "day", "at": "23:00"})
    run = await desk.run_now.run(with_key.id, "bo")
    bare = await desk.run_now.run(without.id, "bo")
    assert isinstance(run, Run)
    assert isinstance(bare, Run)
    assert run.dedup_key == "brief-2026-11-29"
    assert bare.dedup_key == f"{without.id}/{START.isoformat().replace('+00:00', 'Z')}"


async def test_a_key_that_could_name_nothing_is_refused_at_save(desk: Desk) -> None:
    """IDM-1."""
    with pytest.raises(Invalid) as caught:
        await desk.make(dedup_key="{{week}} {{payload.a}} {{now")
    assert [fault.field for fault in caught.value.faults] == ["dedup_key"] * 3
