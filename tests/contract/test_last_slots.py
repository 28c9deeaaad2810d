"""Schedules whose last slot comes due together: each ends, and all of them in as many trips as one."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from gnomon.services.mint import Mint
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
async def house(database: Database, clock: FrozenClock, mint: Mint) -> AsyncIterator[House]:
    built = await House(database, clock, mint).open()
    await an_agent(database)
    yield built
    built.close()


async def due(house: House, count: int, **changes: Any) -> None:
    for number in range(count):
        await a_schedule(
            house.database,
            {"unit": "hour", "every": 1},
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{count:010}{number:010}",
            max_runs=1,
            **changes,
        )


async def test_each_ends_with_its_slot(house: House) -> None:
    """SCH-5, DSP-5, DSP-9: completed, with its history and its entry, and the run is made."""
    await due(house, 7)
    await house.dispatch()
    await house.idle()
    found = await house.rows("SELECT status, status_reason, next_fire_at FROM schedules")
    assert [tuple(row.values()) for row in found] == [("completed", "max_runs reached", None)] * 7
    changes = await house.rows("SELECT schedule_id, seq, status FROM status_changes")
    assert len(changes) == 7
    assert {(row["seq"], row["status"]) for row in changes} == {(1, "completed")}
    told = await house.audit("COMPLETE")
    assert len({row["subject_id"] for row in told}) == len(told) == 7
    assert len(house.runtime.calls) == 7


@pytest.mark.parametrize("engine", ["postgres"])
async def test_ten_end_in_as_many_trips_as_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    for name in ("fetch", "execute"):
        monkeypatch.setattr(asyncpg.Connection, name, _spied(getattr(asyncpg.Connection, name), said))

    async def trips(count: int) -> int:
        await due(house, count)
        await house.beat()
        said.clear()
        await house.engine.dispatcher.tick()
        scan = [text for text in said if "schedules" in text or "status_changes" in text or "audit" in text]
        await house.idle()
        return len(scan)

    one = await trips(1)
    assert await trips(10) == one


def _spied(real: Any, said: list[str]) -> Any:
    async def spied(self: Any, text: str, *given: Any, **options: Any) -> Any:
        said.append(text)
        return await real(self, text, *given, **options)

    return spied
