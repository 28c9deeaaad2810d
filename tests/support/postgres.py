"""A real PostgreSQL for tests: one server for each process of the run, one schema in it that each test finds empty.

Its ``now_us()`` is the test's clock, as on SQLite: the instant goes in with what begins a transaction, and the schema's
function reads it from there.
"""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import asyncpg

from gnomon.stores.database import Tx
from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.postgres.direct import DirectPostgres
from gnomon.stores.postgres.opening import prepare
from gnomon.stores.queries import PARAMETER
from gnomon.testing.clock import FrozenClock

# Nothing of a test's server has to outlive a power cut
OPTIONS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "100",  # eight processes of the product hold up to 64
}
T = TypeVar("T")
SCHEMA = "contract"
_FROZEN = """CREATE OR REPLACE FUNCTION now_us() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT current_setting('gnomon.now_us')::BIGINT $$"""
# what a test wrote is deleted past the append-only triggers
_EMPTY = """DO $$ DECLARE name TEXT; BEGIN
    SET LOCAL session_replication_role TO replica;
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema AND tablename <> 'migrations' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    INSERT INTO retention_floor (id, occurrences_before, audit_before) VALUES (1, 0, 0);
    PERFORM setval(pg_get_serial_sequence('audit', 'seq'), 1);
END $$"""


class FrozenPostgres(PostgresDatabase):
    """The product's database under the clock of a test."""

    def __init__(self, address: Address, clock: FrozenClock) -> None:
        super().__init__(address, clock)
        self.clock = clock

    def beginning(self, isolation: str) -> str:
        # the path is for statements of tests, which name no schema
        return (
            f"{super().beginning(isolation)}; SET LOCAL search_path TO {self.address.schema}; "
            f"SET LOCAL gnomon.now_us TO {self.clock.micros()}"
        )

    def first(self) -> str:
        return f"SET gnomon.now_us TO {self.clock.micros()}"

    def direct(self, patience: float | None = None) -> DirectPostgres:
        return _Aside(super().direct(patience))  # type: ignore[return-value]


class _Aside:
    """A direct connection used from a test's own thread, whose loop is running: each call goes to another thread."""

    def __init__(self, direct: DirectPostgres) -> None:
        self._direct = direct
        self._thread = ThreadPoolExecutor(1)

    def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self._thread.submit(self._direct.write, work).result()

    def write_one(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self._thread.submit(self._direct.write_one, work).result()

    def changed_elsewhere(self) -> bool:
        return self._direct.changed_elsewhere()

    def close(self) -> None:
        self._thread.submit(self._direct.close).result()
        self._thread.shutdown()


async def make_schema(url: str, schema: str = SCHEMA) -> Address:
    """A migrated schema under a clock of the test's."""
    address = parse(f"{url}?schema={schema}")
    await prepare(address)
    raw = await asyncpg.connect(address.dsn)
    try:
        await raw.execute(f"SET search_path TO {schema}; {_FROZEN}")
    finally:
        await raw.close()
    return address


async def open_empty(address: Address, clock: FrozenClock) -> FrozenPostgres:
    """The schema without any row, under ``clock``; the caller closes it."""
    database = FrozenPostgres(address, clock)
    await database.write(lambda tx: execute(tx, _EMPTY, {}))
    return database


async def execute(tx: Any, text: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a statement that the product does not have."""
    names = list(dict.fromkeys(PARAMETER.findall(text)))
    numbered = PARAMETER.sub(lambda match: f"${names.index(match.group(1)) + 1}", text)
    raw = await tx.ready()
    rows = await raw.fetch(numbered, *(parameters[name] for name in names))
    return [dict(row) for row in rows]


async def insert(tx: Any, table: str, rows: list[Mapping[str, Any]]) -> None:
    """Insert rows that have the same columns."""
    values = ", ".join(f"${number}" for number in range(1, len(rows[0]) + 1))
    text = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({values})"
    raw = await tx.ready()
    await raw.executemany(text, [tuple(row.values()) for row in rows])
