"""Whether a schema may be used as our database, and bringing it up to date: before anything else connects.

What is refused is refused with everything as it was: a schema of another program, one that is newer than the program,
one that lost a part. Each migration is one transaction under an advisory lock that ends with it, so that two processes
may open one database at once, behind a pooler too.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence

import asyncpg

from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores import migrations
from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.connection import Raw, connect
from gnomon.stores.postgres.failures import FAILURES, unusable

MIGRATE_SECONDS = 60.0
# Whoever waits for a table that a reader keeps has everybody else wait behind it; so it gives up soon, lets them pass, and
# comes again.
MOMENT_SECONDS = 1.0
OLDEST_VERSION = 140000
_TABLE = """CREATE TABLE migrations (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)"""
_COLUMNS = {"number", "name", "checksum", "applied_at"}
_LOOK = """SELECT c.relname AS name, array_agg(a.attname::text) AS columns
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') GROUP BY c.relname"""
_SERVER = """SELECT current_setting('server_version_num')::int AS version,
current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby"""
_CHANGE = re.compile(r"^\s*(CREATE|DROP) TABLE (?:IF EXISTS )?(\w+)", re.MULTILINE)


async def prepare(url: str | Address) -> list[migrations.Migration]:
    """Check the schema, make it if there is none, apply what is missing; what this call applied itself.

    Raises:
        UnusableDatabase: with what is wrong and what to do; nothing was changed.
        Unavailable: the database can't be reached now, or somebody else is still migrating it, or reading what is changed.
    """
    address = url if isinstance(url, Address) else parse(url)
    known = migrations.load("postgres")
    raw = await _connected(address)
    try:
        await _check_server(raw)
        return [migration for migration in known if await _in_turns(raw, address, known, migration)]
    except FAILURES as error:
        raise _told(error) from error
    finally:
        await _leave(raw)


async def applied(url: str | Address) -> dict[int, str]:
    """Number and checksum of the migrations that a schema has had; empty where it is not there yet."""
    address = url if isinstance(url, Address) else parse(url)
    raw = await _connected(address)
    try:
        tables = await _tables(raw, address.schema)
        return await _applied(raw, address.schema) if "migrations" in tables else {}
    except FAILURES as error:
        raise _told(error) from error
    finally:
        await _leave(raw)


async def _connected(address: Address) -> Raw:
    try:
        return await connect(address, cached=0)
    except FAILURES as error:
        raise _told(error) from error


async def _leave(raw: Raw) -> None:
    try:
        await raw.close(timeout=1.0)
    except FAILURES:
        raw.terminate()


def _told(error: BaseException) -> BaseException:
    return (
        _kept("reading in one transaction what a migration changes, as a backup does")
        if _is_kept(error)
        else unusable(error)
    )


def _is_kept(error: BaseException) -> bool:
    return isinstance(error, asyncpg.LockNotAvailableError)


def _kept(by: str) -> Unavailable:
    return Unavailable(
        f"Somebody else has been {by}, for more than {MIGRATE_SECONDS:.0f} seconds. Wait for it.",
        code="database_migrating",
    )


async def _check_server(raw: Raw) -> None:
    (server,) = await raw.fetch(_SERVER)
    if server["version"] < OLDEST_VERSION:
        raise UnusableDatabase(
            f"The server is PostgreSQL {server['version'] // 10_000}; {OLDEST_VERSION // 10_000} or newer is needed."
        )
    if server["encoding"] != "UTF8":
        raise UnusableDatabase(
            f"The database has the encoding {server['encoding']}. Create one with ENCODING 'UTF8'."
        )
    if server["standby"]:
        raise Unavailable(
            "The server is a standby: it takes no writes until it is promoted.", code="read_only"
        )


async def _in_turns(
    raw: Raw, address: Address, known: Sequence[migrations.Migration], migration: migrations.Migration
) -> bool:
    """One migration, as soon as nobody keeps what it changes; false where it has been applied."""
    loop = asyncio.get_running_loop()
    end = loop.time() + MIGRATE_SECONDS
    while True:
        try:
            return await _step(raw, address, known, migration)
        except asyncpg.LockNotAvailableError:
            if loop.time() > end:
                raise
        await asyncio.sleep(MOMENT_SECONDS)


async def _step(
    raw: Raw, address: Address, known: Sequence[migrations.Migration], migration: migrations.Migration
) -> bool:
    """One migration in its own transaction; false where it has been applied."""
    schema = address.schema
    async with raw.transaction():
        await _wait_for_others(raw, schema)
        tables = await _tables(raw, schema)
        ours = set(tables.get("migrations", ())) == _COLUMNS
        if tables and not ours:
            raise UnusableDatabase(
                f"The schema {schema} belongs to another program. Choose another with ?schema=; it was not touched.",
                code="not_our_database",
            )
        had = await _applied(raw, schema) if ours else {}
        missing = migrations.pending(had, known)
        _refuse_parts(schema, tables, [step for step in known if step.number in had])
        if migration not in missing:
            return False
        if await raw.fetchval("SELECT to_regnamespace($1)::text", schema) is None:
            await raw.execute(f"CREATE SCHEMA {schema}")
        await raw.execute(f"SET LOCAL search_path TO {schema}")
        if not ours:
            await raw.execute(_TABLE)
        await raw.execute(migration.text, timeout=10 * MIGRATE_SECONDS)
        await raw.execute(
            "INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, now_us())",
            *(migration.number, migration.name, migration.checksum),
        )
    return True


async def _wait_for_others(raw: Raw, schema: str) -> None:
    """One migrates at a time. That keeps nobody else, so it may take long; what comes after it may not."""
    await raw.execute(f"SET LOCAL lock_timeout TO {round(MIGRATE_SECONDS * 1_000)}")
    try:
        await raw.fetch("SELECT pg_advisory_xact_lock(hashtextextended('gnomon ' || $1, 0))", schema)
    except asyncpg.LockNotAvailableError as error:
        raise _kept("migrating the database") from error
    await raw.execute(f"SET LOCAL lock_timeout TO {round(MOMENT_SECONDS * 1_000)}")


async def _tables(raw: Raw, schema: str) -> dict[str, list[str]]:
    return {row["name"]: row["columns"] for row in await raw.fetch(_LOOK, schema)}


async def _applied(raw: Raw, schema: str) -> dict[int, str]:
    rows = await raw.fetch(f"SELECT number, checksum FROM {schema}.migrations")  # noqa: S608 - a name that was checked
    return {row["number"]: row["checksum"] for row in rows}


def _refuse_parts(schema: str, tables: Mapping[str, object], had: Iterable[migrations.Migration]) -> None:
    wanted: set[str] = set()
    for step in had:
        for verb, table in _CHANGE.findall(step.text):
            (wanted.add if verb == "CREATE" else wanted.discard)(table)
    gone = sorted(wanted - set(tables))
    if gone:
        raise UnusableDatabase(
            f"The schema {schema} is incomplete: {', '.join(gone)} can't be found. Restore a backup, or choose another "
            "schema. Nothing was changed.",
            code="database_incomplete",
        )
