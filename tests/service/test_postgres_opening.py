"""Which schema may be used, and how it is brought up to date by however many processes (OPS-3)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores import migrations
from gnomon.stores.migrations import Migration
from gnomon.stores.postgres import opening
from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.opening import applied, prepare

pytestmark = pytest.mark.anyio
KNOWN = [migration.number for migration in migrations.load("postgres")]
Raw = asyncpg.Connection


@pytest.fixture
async def raw(postgres_url: str) -> AsyncIterator["Raw[asyncpg.Record]"]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
async def address(postgres_url: str, raw: "Raw[asyncpg.Record]") -> AsyncIterator[Address]:
    """A schema that is not there yet, and is gone again after the test."""
    schema = f"opening_{uuid4().hex[:12]}"
    yield parse(f"{postgres_url}?schema={schema}")
    await raw.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


async def tables(raw: "Raw[asyncpg.Record]", address: Address) -> set[str]:
    rows = await raw.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", address.schema)
    return {row["tablename"] for row in rows}


async def test_a_schema_is_made_and_brought_up_to_date_once(address: Address) -> None:
    assert await applied(address) == {}
    assert [migration.number for migration in await prepare(address)] == KNOWN
    assert sorted(await applied(address)) == KNOWN
    assert await prepare(address) == []


async def test_of_processes_that_open_it_at_once_each_step_is_taken_by_one(address: Address) -> None:
    """The lock ends with the transaction, so that it holds behind a pooler too."""
    done = await asyncio.gather(*(prepare(address) for _ in range(6)))
    assert sorted(migration.number for one in done for migration in one) == KNOWN


async def test_a_schema_that_is_there_and_empty_is_used(address: Address, raw: "Raw[asyncpg.Record]") -> None:
    await raw.execute(f"CREATE SCHEMA {address.schema}")
    assert [migration.number for migration in await prepare(address)] == KNOWN


@pytest.mark.parametrize("table", ["orders (id INT)", "migrations (id INT, name TEXT)"])
async def test_a_schema_of_another_program_is_not_touched(
    address: Address, raw: "Raw[asyncpg.Record]", table: str
) -> None:
    await raw.execute(f"CREATE SCHEMA {address.schema}")
    await raw.execute(f"CREATE TABLE {address.schema}.{table}")
    before = await tables(raw, address)
    with pytest.raises(UnusableDatabase) as caught:
        await prepare(address)
    assert caught.value.code == "not_our_database"
    assert await tables(raw, address) == before


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("INSERT INTO migrations VALUES (99, 'later', 'sum', 0)", "database_newer"),
        ("UPDATE migrations SET checksum = 'another' WHERE number = 1", "database_differs"),
        ("DELETE FROM migrations WHERE number = 1", "database_incomplete"),
        ("DROP TABLE attempts", "database_incomplete"),
    ],
)
async def test_what_can_t_be_used_is_left_as_it_is(
    address: Address, raw: "Raw[asyncpg.Record]", damage: str, code: str
) -> None:
    """A newer one, one of another text, one that lacks a step or a table."""
    await prepare(address)
    await raw.execute(f"SET search_path TO {address.schema}; {damage}")
    before = await applied(address), await tables(raw, address)
    with pytest.raises(UnusableDatabase) as caught:
        await prepare(address)
    assert caught.value.code == code
    assert (await applied(address), await tables(raw, address)) == before


async def test_a_step_that_fails_leaves_nothing_and_is_taken_up_again(
    address: Address, raw: "Raw[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.load("postgres")
    number = KNOWN[-1] + 1
    broken = Migration(number, "next", "CREATE TABLE more (id BIGINT); CREATE TABLE more (id BIGINT)", "sum")
    monkeypatch.setattr(migrations, "load", lambda _engine: [*known, broken])
    with pytest.raises(asyncpg.DuplicateTableError):
        await prepare(address)
    assert sorted(await applied(address)) == KNOWN
    assert "more" not in await tables(raw, address)
    whole = replace(broken, text="CREATE TABLE more (id BIGINT)")
    monkeypatch.setattr(migrations, "load", lambda _engine: [*known, whole])
    assert await prepare(address) == [whole]
    assert "more" in await tables(raw, address)


async def test_while_another_process_migrates_it_is_said_so(
    address: Address, raw: "Raw[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "MIGRATE_SECONDS", 0.05)
    async with raw.transaction():
        lock = "SELECT pg_advisory_xact_lock(hashtextextended('gnomon ' || $1, 0))"
        await raw.fetch(lock, address.schema)
        with pytest.raises(Unavailable) as caught:
            await prepare(address)
    assert caught.value.code == "database_migrating"
    assert await prepare(address) != []


async def test_who_reads_what_a_migration_changes_is_waited_for_and_told_of(
    address: Address, raw: "Raw[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-3: a long transaction, such as a backup's; the step is left for later, whole."""
    await prepare(address)
    known = migrations.load("postgres")
    step = Migration(KNOWN[-1] + 1, "next", "ALTER TABLE schedules ADD COLUMN more BIGINT", "sum")
    monkeypatch.setattr(migrations, "load", lambda _engine: [*known, step])
    monkeypatch.setattr(opening, "MIGRATE_SECONDS", 0.05)
    monkeypatch.setattr(opening, "MOMENT_SECONDS", 0.01)
    async with raw.transaction():
        await raw.fetch(f"SELECT id FROM {address.schema}.schedules")
        with pytest.raises(Unavailable, match="backup") as caught:
            await prepare(address)
    assert caught.value.code == "database_migrating"
    assert await prepare(address) == [step]


async def test_nobody_waits_behind_a_migration_that_waits_for_a_reader(
    address: Address, raw: "Raw[asyncpg.Record]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-3: the house goes on beside a backup, although a newer process wants to change what the backup reads."""
    await prepare(address)
    known = migrations.load("postgres")
    step = Migration(KNOWN[-1] + 1, "next", "ALTER TABLE schedules ADD COLUMN more BIGINT", "sum")
    monkeypatch.setattr(migrations, "load", lambda _engine: [*known, step])
    monkeypatch.setattr(opening, "MOMENT_SECONDS", 0.05)
    waiting = "SELECT count(*) FROM pg_locks WHERE relation = $1::regclass AND NOT granted"
    table = f"{address.schema}.schedules"
    other = await asyncpg.connect(address.dsn, server_settings={"statement_timeout": "5s"})
    try:
        async with raw.transaction():
            await raw.fetch(f"SELECT id FROM {table}")
            migrating = asyncio.create_task(prepare(address))
            while not await other.fetchval(waiting, table):
                await asyncio.wait({migrating}, timeout=0.001)
            await other.fetch(f"SELECT id FROM {table}")
            assert not migrating.done()
        assert await migrating == [step]
    finally:
        await other.close()


async def test_a_database_that_is_not_there_is_named(postgres_url: str) -> None:
    missing = postgres_url.rpartition("/")[0] + "/nowhere"
    with pytest.raises(UnusableDatabase, match="nowhere"):
        await prepare(missing)


async def test_a_server_that_is_not_there_may_come() -> None:
    with pytest.raises(Unavailable) as caught:
        await prepare("postgresql://gnomon@127.0.0.1:1/gnomon")
    assert caught.value.code == "gone"
    assert not isinstance(caught.value, UnusableDatabase)


async def test_a_user_who_may_not_is_told(
    postgres_url: str, raw: "Raw[asyncpg.Record]", address: Address
) -> None:
    await raw.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    try:
        place = postgres_url.rpartition("@")[2]
        with pytest.raises(UnusableDatabase) as caught:
            await prepare(f"postgresql://guest:guest@{place}?schema={address.schema}")
        assert caught.value.code == "forbidden"
    finally:
        await raw.execute("DROP ROLE guest")


async def test_a_database_that_can_t_hold_every_text_is_refused(
    postgres_url: str, raw: "Raw[asyncpg.Record]"
) -> None:
    await raw.execute("CREATE DATABASE narrow ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    try:
        with pytest.raises(UnusableDatabase, match="SQL_ASCII"):
            await prepare(postgres_url.rpartition("/")[0] + "/narrow")
    finally:
        await raw.execute("DROP DATABASE narrow")
