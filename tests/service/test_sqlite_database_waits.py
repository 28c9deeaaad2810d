"""One SQLite file under contention: bounded waits, an end that ends, processes that race (OPS-1, PRF-3, RUN-3)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from gnomon.adapters.clock import SystemClock
from gnomon.domain.errors import Unavailable
from gnomon.services.renewal import Renewal
from gnomon.stores import processes
from gnomon.stores.database import Database, Tx
from gnomon.stores.sqlite import connection as sqlite_connection
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support import programs
from support.databases import a_file
from support.rows import AT, RUN, add_many, execute

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite]


async def start(tx: Tx, name: str = "prc_1") -> None:
    await processes.start(tx, name, "host", 1, "0", "zone")


async def names(database: Database) -> list[str]:
    return [row["id"] for row in await execute(database, "SELECT id FROM processes ORDER BY id")]


def locked(path: Path) -> apsw.Connection:
    """A connection that holds the write lock."""
    raw = apsw.Connection(str(path))
    raw.execute("BEGIN IMMEDIATE")
    return raw


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """A database on the machine's own clock: waits are real."""
    database = SqliteDatabase(a_file(tmp_path), SystemClock())
    yield database
    await database.close()


# --- waiting for the lock -------------------------------------------------------------------------------------------


async def test_a_lock_that_is_given_back_in_time_is_waited_for(real: SqliteDatabase) -> None:
    """Casebook sql-08: both read and then write; one waits, both succeed in order, and the later has seen the other."""
    holder = locked(real.path)
    seen: list[str | None] = []

    async def work(tx: Tx) -> None:
        seen.append(await processes.zone_data(tx))
        await start(tx)

    writing = asyncio.create_task(real.write(work))
    await asyncio.wait([writing], timeout=0.05)
    assert not writing.done()
    holder.execute(
        "INSERT INTO processes (id, host, pid, version, started_at, heartbeat_at, zone_data)"
        " VALUES ('prc_0', 'host', 1, '0', 0, 0, 'seen')"
    )
    holder.execute("COMMIT")
    holder.close()
    await writing
    assert seen == ["seen"]
    assert await names(real) == ["prc_0", "prc_1"]


async def test_the_wait_is_bounded_and_nothing_was_written(
    real: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Casebook sql-07: busy, try again; and it recovers by itself."""
    monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.1)
    holder = locked(real.path)
    began = SystemClock().monotonic()
    with pytest.raises(Unavailable) as caught:
        await real.write(start)
    assert 0.1 <= SystemClock().monotonic() - began < 5
    assert caught.value.code == "busy"
    holder.execute("ROLLBACK")
    holder.close()
    await real.write(start)
    assert await names(real) == ["prc_1"]


async def test_a_heartbeat_that_waits_for_the_lock_still_gives_up_in_time(real: SqliteDatabase) -> None:
    """RUN-5: who can't renew stops its own work before others may take it, however long somebody holds the lock."""
    await real.write(start)
    killed: list[int] = []
    given_up = Event()
    renewal = Renewal(
        database=real,
        clock=SystemClock(),
        process_id="prc_1",
        heartbeat_seconds=0.2,
        heartbeat_timeout_seconds=1.0,
        kill_group=killed.append,
    )
    held: Any = SimpleNamespace(
        run_id=RUN["id"], fence=7, lease_seconds=3_600, taken_at=SystemClock().monotonic()
    )
    renewal.hold_all([held], lambda _: given_up.set())
    renewal.add_group(RUN["id"], 4_711)
    holder = locked(real.path)
    renewal.start()
    assert await asyncio.to_thread(given_up.wait, sqlite_connection.BUSY_SECONDS / 2)
    assert killed == [4_711]
    holder.close()
    await renewal.stop()


async def test_reading_waits_for_no_writer(real: SqliteDatabase) -> None:
    """OPS-1: write-ahead logging."""
    holder = locked(real.path)
    assert await real.read(processes.now) > 0
    holder.close()


# --- the end, and a file that is gone -------------------------------------------------------------------------------


async def test_after_its_end_it_says_that_the_program_is_stopping(tmp_path: Path, clock: FrozenClock) -> None:
    database = SqliteDatabase(a_file(tmp_path), clock)
    last = [asyncio.create_task(database.write(lambda tx, n=n: start(tx, f"prc_{n}"))) for n in range(5)]  # type: ignore[misc]
    await asyncio.wait(last, timeout=0.001)
    await database.close()
    await asyncio.gather(*last)
    for door in (database.write, database.read):
        with pytest.raises(Unavailable) as caught:
            await door(processes.now)
        assert caught.value.code == "stopping"
    await database.close()


async def test_a_file_that_is_gone_is_an_error_and_not_a_wait(tmp_path: Path, clock: FrozenClock) -> None:
    """DSP-2: a tenant's dead database delays no other; it works again once the file is back."""
    database = SqliteDatabase(tmp_path / "gnomon.db", clock)
    for door in (database.write, database.read):
        with pytest.raises(Unavailable) as caught:
            await asyncio.wait_for(door(processes.now), 5)
        assert caught.value.code == "database_failed"
    with pytest.raises(Unavailable):
        database.direct()
    assert not (tmp_path / "gnomon.db").exists()
    a_file(tmp_path)
    assert await database.write(processes.now) == AT
    await database.close()


async def test_giving_way_to_others_never_ends_the_writing_thread(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-3: whatever fails beside a write, the next write is still made."""

    def fails(_: object) -> int:
        raise apsw.IOError

    monkeypatch.setattr(sqlite_connection.Connection, "data_version", fails)
    for name in ("prc_1", "prc_2"):
        await asyncio.wait_for(database.write(lambda tx, name=name: start(tx, name)), 5)  # type: ignore[misc]
    assert await names(database) == ["prc_1", "prc_2"]


async def test_a_damaged_file_is_told_as_that(tmp_path: Path, clock: FrozenClock) -> None:
    path = tmp_path / "gnomon.db"
    path.write_bytes(b"x" * 10_000)
    database = SqliteDatabase(path, clock)
    with pytest.raises(Unavailable) as caught:
        await database.write(processes.now)
    assert caught.value.code == "database_failed"
    await database.close()


# --- processes race -------------------------------------------------------------------------------------------------

CLAIMS = """
    import asyncio, json, sys
    from pathlib import Path
    from gnomon.adapters.clock import SystemClock
    from gnomon.stores import runs
    from gnomon.stores.sqlite.database import SqliteDatabase

    async def main(path, owner):
        database = SqliteDatabase(Path(path), SystemClock())
        await database.read(runs.next_claimable)
        print("ready", flush=True)
        sys.stdin.readline()
        won = []
        while rows := await database.write(lambda tx: runs.claim(tx, owner, "clm", 3)):
            won += [(row["id"], row["fence"]) for row in rows]
        await database.close()
        print(json.dumps(won))

    asyncio.run(main(*sys.argv[1:]))
"""
RECORDS = """
    import asyncio, json, sys
    from pathlib import Path
    from gnomon.adapters.clock import SystemClock
    from gnomon.stores import slots
    from gnomon.stores.sqlite.database import SqliteDatabase

    async def main(path, owner):
        database = SqliteDatabase(Path(path), SystemClock())
        await database.read(slots.next_due)
        print("ready", flush=True)
        sys.stdin.readline()
        won = []
        for slot in range(60):
            row = dict.fromkeys(("coalesced_first", "coalesced_last", "coalesced_count", "run_id", "session_id"))
            row |= {"schedule_id": "sch_1", "nominal_fire_at": slot, "revision": 1}
            row |= {"disposition": "skipped", "reason": owner}
            if await database.write(lambda tx: slots.record(tx, [row])):
                won.append(slot)
        await database.close()
        print(json.dumps(won))

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.process
async def test_of_processes_that_race_for_runs_exactly_one_gets_each(database: SqliteDatabase) -> None:
    """PRF-3, RUN-1, RUN-6: 120 runs, three processes on one file; no run twice, none left, no fence twice."""
    queued = [
        {**RUN, "id": f"run_{n:03d}", "session_id": f"ses_{n:03d}", "schedule_id": "sch_1"}
        for n in range(120)
    ]
    await add_many(database, "runs", [row | {"claimable_at": 1} for row in queued])
    outputs = programs.race(CLAIMS, *[[database.path, f"prc_{n}"] for n in range(3)])
    won = [tuple(pair) for output in outputs for pair in json.loads(output)]
    assert sorted(run_id for run_id, _ in won) == [row["id"] for row in queued]
    rows = await execute(database, "SELECT id, status, attempt, owner FROM runs")
    assert {(row["status"], row["attempt"]) for row in rows} == {("running", 1)}
    assert len({row["owner"] for row in rows}) > 1, "nobody raced"


@pytest.mark.process
async def test_of_processes_that_race_for_slots_exactly_one_records_each(database: SqliteDatabase) -> None:
    """PRF-3, DSP-6."""
    outputs = programs.race(RECORDS, *[[database.path, f"prc_{n}"] for n in range(3)])
    by_process = [json.loads(output) for output in outputs]
    assert sorted(slot for won in by_process for slot in won) == list(range(60))
    rows = await execute(database, "SELECT nominal_fire_at, reason FROM occurrences")
    for number, won in enumerate(by_process):
        assert sorted(row["nominal_fire_at"] for row in rows if row["reason"] == f"prc_{number}") == won
