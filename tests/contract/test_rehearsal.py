"""What a process goes through before its loops start: the real statements, on every connection, and nothing written."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from gnomon.services.gates import Gates
from gnomon.services.rehearsal import Rehearsal
from gnomon.stores.database import Database
from gnomon.stores.postgres.connection import Connection
from gnomon.stores.postgres.database import CONNECTIONS
from support.databases import START
from support.house import AGENT, House, a_schedule, an_agent, rows

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
TABLES = ("schedules", "occurrences", "runs", "sessions", "attempts", "audit", "status_changes", "processes")


@pytest.fixture
async def house(database: Database, clock: Any, mint: Any) -> Any:
    """A process with a slot that is due and a run that is asked for: what a rehearsal must leave alone."""
    built = await House(database, clock, mint).open()
    await an_agent(database)
    await a_schedule(database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    yield built
    built.close()


def rehearsal(house: House) -> Rehearsal:
    return Rehearsal(
        database=house.database,
        clock=house.clock,
        mint=house.mint,
        gates=Gates(),
        process_id=house.engine.process_id,
    )


async def everything(house: House) -> dict[str, list[str]]:
    found = {}
    for table in TABLES:
        found[table] = sorted(map(str, await house.rows(f"SELECT * FROM {table}")))
    return found


async def test_nothing_is_written_and_what_is_due_is_left_alone(house: House) -> None:
    """DSP-3, DSP-6: neither the slot that is due nor the run that is asked for is taken."""
    await rows(
        house.database,
        "INSERT INTO runs (id, trigger_kind, status, priority, target_kind, target_id, scheduled_for, claimable_at, "
        "lease_seconds, query) VALUES ('run_1', 'invoke', 'queued', 0, 'agent', :agent, 0, 0, 60, '')",
        agent=AGENT,
    )
    before = await everything(house)
    await rehearsal(house).run(dispatch=True, work=True)
    assert await everything(house) == before
    await house.dispatch()
    await house.claim()
    await house.idle()
    assert len(house.runtime.calls) == 2


@pytest.mark.parametrize("engine", ["postgres"])
async def test_it_is_the_work_itself_on_every_connection(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that differs in one word would be planned anew at the first slot."""
    said: Counter[str] = Counter()
    send = Connection._send

    async def spied(self: Connection) -> list[Any]:
        said[self._catalogue.together(self._put_off)] += 1
        return await send(self)

    monkeypatch.setattr(Connection, "_send", spied)
    await rehearsal(house).run(dispatch=True, work=True)
    rehearsed = Counter(said)
    said.clear()
    await house.dispatch()
    await house.idle()
    assert set(said) <= set(rehearsed), "a claim of a slot, and the end of its run"
    assert set(rehearsed.values()) == {CONNECTIONS}


async def test_a_database_that_is_away_keeps_no_process_from_starting(house: House) -> None:
    """OPS-5a: what is refused here its loops find out by themselves, and try again."""
    await house.database.close()
    await rehearsal(house).run(dispatch=True, work=True)
