"""Whoever follows the audit by number, beside writers that have not ended: every entry once, in order (SEC-7, ADR 0054).

On PostgreSQL a number is drawn before its commit, so that a smaller one may come after a greater one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
import pytest

from gnomon.domain.audit import Action
from gnomon.domain.errors import Conflict
from gnomon.services.audit_log import AuditLog
from gnomon.stores import audit
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database, Tx
from gnomon.stores.postgres.address import Address
from support.rows import execute

pytestmark = pytest.mark.anyio
Run = Callable[[Callable[[Tx], Awaitable[None]]], Awaitable[None]]


@pytest.fixture
def engine() -> str:
    """Here a writer stands still in its transaction, which on the other engine keeps all others out."""
    return "postgres"


class Follower:
    """Somebody who reads page by page, and gives back the number that it had last."""

    def __init__(self, database: Database, limit: int = 2) -> None:
        self._log = AuditLog(database)
        self._limit = limit
        self._seq = 0
        self.seen: list[str] = []

    async def reads(self) -> list[str]:
        """What is there now and was not before."""
        found: list[str] = []
        while page := await self._log.after(self._seq, self._limit):
            self._seq = page[-1].seq
            found += [entry.subject_id for entry in page]
        self.seen += found
        return found


@pytest.fixture
def follower(neighbour: Database) -> Follower:
    return Follower(neighbour)


def tells(*subjects: str) -> Callable[[Tx], Awaitable[None]]:
    """The work of a writer: an entry for each."""

    async def work(tx: Tx) -> None:
        await audit.append_many(
            tx, [new_entry("ana", Action.UPDATE, "agent", subject) for subject in subjects]
        )
        await tx.send()

    return work


async def tell(database: Database, *subjects: str) -> None:
    await database.write(tells(*subjects))


@asynccontextmanager
async def at_work(run: Run, *works: Callable[[Tx], Awaitable[None]]) -> AsyncIterator[Callable[[], None]]:
    """A transaction that has done each of these and goes on to the next when told; it ends with the block."""
    done, go_on = asyncio.Queue[None](), asyncio.Queue[None]()

    async def work(tx: Tx) -> None:
        for each in works:
            await each(tx)
            done.put_nowait(None)
            await go_on.get()

    under_way = asyncio.ensure_future(run(work))
    await asyncio.wait_for(done.get(), 20)
    try:
        yield lambda: go_on.put_nowait(None)
    finally:
        go_on.put_nowait(None)
        await under_way


@pytest.mark.parametrize("guarded", [False, True], ids=["serializable", "guarded"])
async def test_what_has_a_greater_number_waits_for_who_drew_a_smaller_one(
    database: Database, follower: Follower, guarded: bool
) -> None:
    """CONTRACT, "Audit entry": the answer ends before the transaction that is open, and goes on behind it later."""
    await tell(database, "before_1", "before_2", "before_3")
    async with at_work(database.write_guarded if guarded else database.write, tells("slow_1", "slow_2")):
        await tell(database, "fast_1")
        await tell(database, "fast_2")
        assert await follower.reads() == ["before_1", "before_2", "before_3"]
    await tell(database, "after")
    assert await follower.reads() == ["slow_1", "slow_2", "fast_1", "fast_2", "after"]


async def test_who_began_first_may_draw_last(database: Database, follower: Follower) -> None:
    """Whose transaction is older says nothing of whose number is smaller: an order of transactions would not do."""

    async def begins(tx: Tx) -> None:
        await execute_in(tx, "SELECT pg_current_xact_id()")

    older = at_work(database.write_guarded, begins, tells("older"))
    go_on = await older.__aenter__()
    async with at_work(database.write_guarded, tells("younger")):
        go_on()
        await older.__aexit__(None, None, None)
        assert await follower.reads() == []
    assert await follower.reads() == ["younger", "older"]


async def test_a_writer_that_gave_up_holds_nobody_any_longer(database: Database, follower: Follower) -> None:
    """Its numbers are left out for good."""

    async def gives_up(_: Tx) -> None:
        raise Conflict("never", code="gave_up")

    async def writes() -> None:
        async with at_work(database.write, tells("never"), gives_up):
            await tell(database, "there")
            assert await follower.reads() == []

    with pytest.raises(Conflict, match="never"):
        await writes()
    assert await follower.reads() == ["there"]


async def test_nobody_waits_for_a_transaction_that_tells_nothing(
    database: Database, follower: Follower, postgres_url: str, postgres_address: Address
) -> None:
    """Neither for one of another database, nor for one of another program in this one, however long it is open."""
    other = f"other_{uuid4().hex[:12]}"
    line = await asyncpg.connect(postgres_url)
    await line.execute(f"CREATE DATABASE {other}")
    aside = await asyncpg.connect(postgres_url, database=other)
    number = await line.fetchval(f"SELECT '{postgres_address.schema}.audit_seq_seq'::regclass::oid::int")
    try:
        for each in (line, aside):
            await each.execute(f"BEGIN; CREATE TABLE {other} (id INT)")
        await aside.execute(f"SELECT pg_advisory_xact_lock_shared({number}, 0)")
        await line.execute("SELECT pg_advisory_xact_lock_shared(0, 0), pg_advisory_xact_lock(0)")
        await tell(database, "there")
        assert await follower.reads() == ["there"]
    finally:
        await aside.close()
        await line.execute("ROLLBACK")
        await line.execute(f"DROP DATABASE {other}")
        await line.close()


async def test_a_transaction_that_tells_much_holds_one_lock(database: Database, neighbour: Database) -> None:
    """A server has few of them, for all of its transactions together; the one before the first number counts."""
    many = [tells(f"{number}_1", f"{number}_2") for number in range(5)]

    async def work(tx: Tx) -> None:
        for each in many:
            await each(tx)

    async with at_work(database.write, work):
        await tell(database, "beside")
        (held,) = await execute(
            neighbour,
            "SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND classid = 'audit_seq_seq'::regclass",
        )
        assert held["locks"] == 1
        assert await Follower(neighbour).reads() == []
    assert len(await Follower(neighbour).reads()) == 11


@pytest.mark.parametrize("rows", [2**31, 2**32, 3 * 2**31])
async def test_the_name_of_the_lock_may_come_round(database: Database, follower: Follower, rows: int) -> None:
    """It has 32 bits, and the numbers have more."""
    await execute(database, f"SELECT setval('audit_seq_seq', {(rows - 3) * 1_000 + 1})")
    await tell(database, "before")
    async with at_work(database.write, tells("slow")):
        for number in range(4):
            await tell(database, f"fast_{number}")
            assert await Follower(database).reads() == ["before"]
        async with at_work(database.write, tells("slow too")):
            assert await follower.reads() == ["before"]
    assert await follower.reads() == ["slow", *(f"fast_{number}" for number in range(4)), "slow too"]


async def execute_in(tx: Tx, text: str) -> None:
    raw = await tx.ready()  # type: ignore[attr-defined]  # a statement that only a test has
    await raw.execute(text)
