"""The databases under real processes, one class for each engine: where they are, what they hold, what they suffer.

Beside the product's tables each keeps a journal: triggers of the test's own write every change of a run, a schedule and
the ledger down, inside the transaction that made it. The product knows nothing of it, so it can be held against it.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg

from gnomon.adapters.clock import SystemClock
from gnomon.domain.breach import Breach
from gnomon.services.verify import Verify
from gnomon.stores.database import Database
from gnomon.stores.postgres import opening
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare

RUN = (
    "status",
    "fence",
    "owner",
    "lease_until",
    "attempt",
    "finished_at",
    "trigger_kind",
    "schedule_id",
    "half_done",
)
SCHEDULE = ("status", "next_fire_at", "in_flight_run_id", "failure_streak", "fence", "revision")
SLOT = ("schedule_id", "nominal_fire_at", "disposition", "created_at")
WATCHED = (("run", "runs", "id", RUN), ("schedule", "schedules", "id", SCHEDULE))


class Store(Protocol):
    """One database that several processes of the product share."""

    name: str
    url: str  # as the product's setting

    def prepare(self) -> None:
        """Make it, migrate it, and start the journal."""

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a statement that only a test has."""

    def database(self) -> Database:
        """The product's own door to it."""

    def close(self) -> None:
        """Let go of it."""


class SqliteStore:
    """One file."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gnomon.db"
        self.url = f"sqlite:///{self.path}"

    def prepare(self) -> None:
        prepare(self.path, SystemClock())
        with self.connect() as connection:
            for statement in _sqlite_journal():
                connection.execute(statement)

    def connect(self) -> apsw.Connection:
        """A stranger's connection to the file."""
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(10_000)
        return connection

    def is_locked(self) -> bool:
        """Whether somebody is in the middle of a write, and stays there."""
        connection = self.connect()
        connection.set_busy_timeout(500)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return True
        finally:
            connection.close()
        return False

    def query(self, sql: str) -> list[dict[str, Any]]:
        connection = self.connect()
        try:
            cursor = connection.execute(sql)
            found = []
            for row in cursor:
                names = [column[0] for column in cursor.get_description()]
                found.append(dict(zip(names, row, strict=True)))
            return found
        finally:
            connection.close()

    def database(self) -> Database:
        return SqliteDatabase(self.path, SystemClock())

    def close(self) -> None:
        """Nothing is held."""


def _sqlite_journal() -> Iterable[str]:
    yield "CREATE TABLE journal (seq INTEGER PRIMARY KEY, at REAL, kind TEXT, subject TEXT, old TEXT, new TEXT)"

    def note(kind: str, subject: str, old: str, new: str) -> str:
        return (
            "INSERT INTO journal (at, kind, subject, old, new) "
            f"VALUES (unixepoch('subsec'), '{kind}', {subject}, {old}, {new});"
        )

    def fields(which: str, names: Iterable[str]) -> str:
        return "json_object(" + ", ".join(f"'{name}', {which}.{name}" for name in names) + ")"

    for kind, table, key, names in WATCHED:
        for event, old in (("INSERT", "NULL"), ("UPDATE", fields("OLD", names))):
            yield (
                f"CREATE TRIGGER journal_{kind}_{event} AFTER {event} ON {table} BEGIN "
                f"{note(kind, f'NEW.{key}', old, fields('NEW', names))} END"
            )
    status = "'status', (SELECT status FROM schedules WHERE id = NEW.schedule_id)"
    new = fields("NEW", SLOT)[:-1] + f", {status})"
    yield (
        f"CREATE TRIGGER journal_slot AFTER INSERT ON occurrences BEGIN "
        f"{note('slot', 'NEW.schedule_id', 'NULL', new)} END"
    )


class PostgresStore:
    """One schema of a server. What it reads goes over a connection of its own, which is made again when it breaks."""

    name = "postgres"

    def __init__(self, url: str, schema: str) -> None:
        self.server_url = url
        self.schema = schema
        self.url = f"{url}?schema={schema}"
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None

    def prepare(self) -> None:
        self._loop.run_until_complete(opening.prepare(self.url))
        self.script(_postgres_journal())

    def script(self, sql: str) -> None:
        """Several statements that only a test has."""
        self._loop.run_until_complete(self._run(lambda connection: connection.execute(sql)))

    def query(self, sql: str) -> list[dict[str, Any]]:
        rows = self._loop.run_until_complete(self._run(lambda connection: connection.fetch(sql)))
        return [dict(row) for row in rows]

    def terminate_others(self) -> None:
        """End every other connection to the database, whatever it is doing."""
        self.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )

    @contextmanager
    def locked(self, table: str, key: str) -> Iterator[None]:
        """Hold a row as a stranger's open transaction does."""
        self.query("BEGIN")
        self.query(f"SELECT id FROM {table} WHERE id = '{key}' FOR UPDATE")
        try:
            yield
        finally:
            self.query("ROLLBACK")

    async def _run(self, ask: Any) -> Any:
        try:
            return await ask(await self._connected())
        except (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError):
            self._connection = None  # the test itself has just broken it
            return await ask(await self._connected())

    async def _connected(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(
                self.server_url, server_settings={"search_path": self.schema}, statement_cache_size=0
            )
        return self._connection

    def database(self) -> Database:
        return PostgresDatabase(self.url, SystemClock())

    def close(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            self._loop.run_until_complete(self._connection.close())
        self._loop.close()


def _postgres_journal() -> str:
    triggers = "".join(
        f"CREATE TRIGGER journal_{kind} AFTER INSERT OR UPDATE ON {table} FOR EACH ROW "
        f"EXECUTE FUNCTION journal_note('{kind}');\n"
        for kind, table, _, _ in WATCHED
    )
    return f"""
    CREATE TABLE journal (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at DOUBLE PRECISION, kind TEXT, subject TEXT, old TEXT, new TEXT
    );
    CREATE FUNCTION journal_note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
        INSERT INTO journal (at, kind, subject, old, new) VALUES (
            extract(epoch FROM clock_timestamp()), TG_ARGV[0], NEW.id,
            CASE WHEN TG_OP = 'UPDATE' THEN to_json(OLD) END, to_json(NEW));
        RETURN NULL; END $$;
    CREATE FUNCTION journal_note_slot() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
        INSERT INTO journal (at, kind, subject, new) VALUES (
            extract(epoch FROM clock_timestamp()), 'slot', NEW.schedule_id,
            (SELECT json_build_object('schedule_id', NEW.schedule_id, 'nominal_fire_at', NEW.nominal_fire_at,
                'disposition', NEW.disposition, 'created_at', NEW.created_at, 'status', status)
             FROM schedules WHERE id = NEW.schedule_id));
        RETURN NULL; END $$;
    {triggers}
    CREATE TRIGGER journal_slot AFTER INSERT ON occurrences FOR EACH ROW EXECUTE FUNCTION journal_note_slot();
    """


def read_journal(store: Store) -> list[dict[str, Any]]:
    """Every change in the order in which it was made."""
    return [
        row | {"old": json.loads(row["old"] or "{}"), "new": json.loads(row["new"])}
        for row in store.query("SELECT at, kind, subject, old, new FROM journal ORDER BY seq")
    ]


def verified(store: Store) -> list[Breach]:
    """What ``gnomon verify`` finds (OPS-7): a judge that shares no code with the checks of the tests."""

    async def judge() -> list[Breach]:
        database = store.database()
        found: list[Breach] = []
        await Verify(database, gapless=store.name == "sqlite").run(found.append)
        await database.close()
        return found

    return asyncio.run(judge())
