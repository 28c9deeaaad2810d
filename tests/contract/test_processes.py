"""Processes and their heartbeats (RUN-4, RUN-5a, OPS-5a)."""

import pytest

from gnomon.stores import processes
from gnomon.stores.database import Database, UniqueViolation
from gnomon.testing.clock import FrozenClock
from support.rows import AT, SECOND, add_process, add_running, execute, one

pytestmark = pytest.mark.anyio


async def beat(
    database: Database, process_id: str = "prc_1", ticked: int | None = None, lag: int | None = None
) -> bool:
    return await database.write(lambda tx: processes.beat(tx, process_id, ticked, lag, 7)) is not None


async def start(database: Database) -> None:
    await database.write(lambda tx: processes.start(tx, "prc_1", "host", 42, "1.0", "2026a"))


async def test_a_process_writes_its_row_once(database: Database) -> None:
    """RUN-5a."""
    await start(database)
    row = await one(database, "processes", id="prc_1")
    assert (row["host"], row["pid"], row["version"], row["zone_data"]) == ("host", 42, "1.0", "2026a")
    assert (row["started_at"], row["heartbeat_at"], row["stopped_at"]) == (AT, AT, None)
    with pytest.raises(UniqueViolation):
        await start(database)


async def test_a_beat_is_stamped_by_the_database_s_clock(database: Database, clock: FrozenClock) -> None:
    """RUN-4, OPS-5a: the last tick and its lag stay until a newer one is told."""
    await start(database)
    clock.advance(5)
    assert await beat(database, ticked=AT + 1, lag=7)
    clock.advance(5)
    assert await beat(database)
    row = await one(database, "processes", id="prc_1")
    assert (row["heartbeat_at"], row["ticked_at"], row["tick_lag_us"]) == (AT + 10 * SECOND, AT + 1, 7)
    assert row["started_at"] == AT


async def test_a_process_that_has_no_row_or_has_stopped_is_told_so(database: Database) -> None:
    """RUN-5: it could not write its heartbeat."""
    assert not await beat(database)
    await start(database)
    await database.write(lambda tx: processes.stop(tx, "prc_1"))
    before = await one(database, "processes", id="prc_1")
    assert before["stopped_at"] == AT
    assert not await beat(database)
    assert await one(database, "processes", id="prc_1") == before


async def test_one_s_beat_is_nobody_else_s(database: Database, clock: FrozenClock) -> None:
    """RUN-5a."""
    await start(database)
    await add_process(database, id="prc_2")
    clock.advance(5)
    await beat(database)
    assert (await one(database, "processes", id="prc_2"))["heartbeat_at"] == AT


@pytest.mark.parametrize(
    ("silent_us", "holds", "stays"), [(100, False, True), (101, False, False), (101, True, True)]
)
async def test_only_a_process_that_is_long_silent_and_holds_nothing_is_forgotten(
    database: Database, silent_us: int, holds: bool, stays: bool
) -> None:
    """RUN-7: what a process still holds has to be swept first, under its name."""
    await add_process(database, heartbeat_at=AT - silent_us)
    await add_running(database, owner="prc_mine" if holds else "prc_other")
    over = {"status": "succeeded", "lease_until": None, "finished_at": AT}
    await add_running(database, id="run_over", session_id="ses_over", owner="prc_mine", **over)
    await database.write(lambda tx: processes.clean(tx, 100))
    assert bool(await execute(database, "SELECT id FROM processes")) is stays


async def test_what_a_heartbeat_saw_of_both_clocks_is_read_beside_the_present(
    database: Database, clock: FrozenClock
) -> None:
    """RUN-5b: by every process of the same boot, the newest first; others can't be compared."""
    for name, boot, boot_us in (("prc_1", "one", 10), ("prc_2", "one", 30), ("prc_3", "two", 20)):
        moment = processes.Moment(boot, boot_us)
        await database.write(
            lambda tx, name=name, moment=moment: processes.start(tx, name, "h", 1, "0", "z", moment)  # type: ignore[misc]
        )
    await add_process(database, id="prc_4")
    clock.advance(3)
    assert await database.write(lambda tx: processes.beat(tx, "prc_1", None, None, 40)) == AT + 3 * SECOND
    clock.advance(1)
    now, found = await database.read(lambda tx: processes.readings(tx, "one"))
    assert now == AT + 4 * SECOND
    assert found == [processes.Reading(AT + 3 * SECOND, 40), processes.Reading(AT, 30)]
    assert await database.read(lambda tx: processes.readings(tx, "one", 1)) == (now, found[:1])
    assert await database.read(lambda tx: processes.readings(tx, "none")) == (now, [])
    assert await database.read(lambda tx: processes.readings(tx, None)) == (now, [])


async def test_the_database_s_clock(database: Database, clock: FrozenClock) -> None:
    """DSP-3."""
    clock.advance(2)
    assert await database.read(processes.now) == AT + 2 * SECOND
