"""Transactions over one SQLite file: all or nothing, one writer at a time, bounded waits (OPS-1, DSP-5, HOUSE rule 7)."""

import asyncio
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from gnomon.domain.errors import Unavailable
from gnomon.stores import processes, runs
from gnomon.stores.database import CheckViolation, Database, Tx, UniqueViolation
from gnomon.stores.run_rows import NewRun
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.databases import START, a_file
from support.rows import AT, SECOND, add_process, execute, one

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


# --- how the file is opened -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("synced")
@pytest.mark.parametrize(
    ("pragma", "value"),
    [("synchronous", 2), ("journal_mode", "wal"), ("recursive_triggers", 1), ("foreign_keys", 0)],
)
async def test_the_writer_s_pragmas(database: SqliteDatabase, pragma: str, value: object) -> None:
    """OPS-1: FULL, so that a power cut loses no acknowledged commit; with NORMAL it forgets the last claims."""
    assert await execute(database, f"PRAGMA {pragma}") == [{pragma: value}]
    direct = database.direct()
    assert direct._connection._raw.execute(f"PRAGMA {pragma}").get == value
    direct.close()


async def test_the_reader_can_not_write(database: SqliteDatabase) -> None:
    """HOUSE rule 7: every write goes over the one writing thread."""
    with pytest.raises(Unavailable) as caught:
        await database.read(start)
    assert caught.value.code == "read_only"
    assert await names(database) == []


async def test_a_write_takes_the_lock_before_it_reads(database: SqliteDatabase) -> None:
    """HOUSE rule 7; casebook sql-01, sql-08: a deferred transaction that reads first loses its lock at once."""

    async def work(tx: Tx) -> bool:
        await tx.all("processes.now")
        other = apsw.Connection(str(database.path))
        try:
            other.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return True
        finally:
            other.close()
        return False

    assert await database.write(work)


# --- all or nothing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, asyncio.CancelledError])
async def test_an_exception_rolls_everything_back_and_comes_out(
    database: SqliteDatabase, error: type[BaseException]
) -> None:
    """DSP-5."""

    async def work(tx: Tx) -> None:
        await start(tx, "prc_1")
        raise error

    with pytest.raises(error):
        await database.write(work)
    assert await names(database) == []
    await database.write(start)
    assert await names(database) == ["prc_1"]


async def test_awaiting_anything_else_is_refused_and_rolled_back(database: SqliteDatabase) -> None:
    """Casebook sql-07: no transaction is held open across a wait."""
    ended: list[str] = []

    async def work(tx: Tx) -> None:
        await start(tx, "prc_1")
        try:
            await asyncio.sleep(0)
            await start(tx, "prc_2")
        finally:
            ended.append("finally")
            await start(tx, "prc_3")

    with pytest.raises(RuntimeError, match="nothing else"):
        await database.write(work)
    assert ended == ["finally"]
    assert await names(database) == [], "not even what its finally wrote"


async def test_awaiting_a_transaction_inside_a_transaction_is_refused(database: SqliteDatabase) -> None:
    """It would wait for its own thread."""

    async def work(_: Tx) -> None:
        await database.write(start)

    with pytest.raises(RuntimeError):
        await database.write(work)
    assert await names(database) == []


async def test_a_row_that_is_there_already_says_where(database: SqliteDatabase) -> None:
    await database.write(start)
    with pytest.raises(UniqueViolation) as caught:
        await database.write(start)
    assert caught.value.where == "processes.id"


async def test_a_constraint_is_told_from_a_double(database: SqliteDatabase) -> None:
    with pytest.raises(CheckViolation):
        await add_process(database, host=None)


async def test_a_caller_who_goes_away_leaves_a_whole_transaction(database: SqliteDatabase) -> None:
    """DSP-5: cancelling the waiting task interrupts nothing in the middle."""
    reached, go_on = Event(), Event()

    async def work(tx: Tx) -> None:
        await start(tx, "prc_1")
        reached.set()
        assert go_on.wait(5)
        await start(tx, "prc_2")

    waiting = asyncio.create_task(database.write(work))
    await asyncio.to_thread(reached.wait, 5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    assert await names(database) == ["prc_1", "prc_2"]


async def test_writes_go_one_after_the_other_in_the_order_they_were_asked_for(
    database: SqliteDatabase,
) -> None:
    """HOUSE rule 7."""
    inside: list[int] = []

    async def one_write(number: int) -> None:
        async def work(tx: Tx) -> None:
            inside.append(number)
            await start(tx, f"prc_{number:02d}")
            assert inside[-1] == number

        await database.write(work)

    await asyncio.gather(*[one_write(number) for number in range(20)])
    assert inside == list(range(20))


async def test_a_read_is_one_snapshot(database: SqliteDatabase) -> None:
    """What is committed while a reader reads is not seen by it."""
    direct = database.direct()

    async def work(tx: Tx) -> tuple[int, int]:
        before = tx._raw.execute("SELECT count(*) FROM processes").get  # type: ignore[attr-defined]
        direct.write(lambda other: start(other, "prc_9"))
        return before, tx._raw.execute("SELECT count(*) FROM processes").get  # type: ignore[attr-defined]

    await database.write(start)
    assert await database.read(work) == (1, 1)
    direct.close()
    assert await names(database) == ["prc_1", "prc_9"]


# --- clocks and hints -----------------------------------------------------------------------------------------------


class Ticking(FrozenClock):
    """A clock that goes on with every look at it."""

    def micros(self) -> int:
        self._micros += 1
        return self._micros


async def test_a_statement_sees_one_instant_and_the_next_one_another(tmp_path: Path) -> None:
    """DSP-3: a lease is exactly as long as it says, however many places of the statement ask for the instant."""
    database = SqliteDatabase(a_file(tmp_path), Ticking(START))
    new = NewRun(
        "run_1", "manual", 0, "agent", "agt_1", None, None, None, "ses_1", "q", AT, AT, 330, owner="prc_1"
    )
    await database.write(lambda tx: runs.insert(tx, [new]))
    row = await one(database, "runs", id="run_1")
    assert row["lease_until"] - row["started_at"] == 330 * SECOND

    async def twice(tx: Tx) -> tuple[int, int]:
        return await processes.now(tx), await processes.now(tx)

    before, after = await database.write(twice)
    assert after == before + 1
    await database.close()


async def test_only_what_others_commit_is_a_change_elsewhere(database: SqliteDatabase) -> None:
    """OPS-1: a wakeup over the bounded poll, never the truth; its own beats do not count."""
    mine, other = database.direct(), database.direct()
    assert mine.changed_elsewhere(), "what came while it was being opened is a change nobody was told of"
    assert not mine.changed_elsewhere()
    mine.write(start)
    assert not mine.changed_elsewhere()
    other.write(lambda tx: start(tx, "prc_2"))
    assert mine.changed_elsewhere()
    assert not mine.changed_elsewhere()
    mine.close()
    other.close()


async def test_a_direct_connection_needs_no_event_loop(database: SqliteDatabase) -> None:
    """RUN-4: the heartbeat runs on a thread and a connection of its own."""

    def beat() -> None:
        direct = database.direct()
        direct.write(start)
        with pytest.raises(UniqueViolation):
            direct.write(start)
        direct.close()

    thread = Thread(target=beat)
    thread.start()
    await asyncio.to_thread(thread.join, 5)
    assert await names(database) == ["prc_1"]
