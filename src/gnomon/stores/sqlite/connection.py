"""One apsw connection: how it is opened, how a transaction runs on it, how its errors are told.

Knows no threads; ``database.py`` gives each connection its own.
"""

import json
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, TypeVar, cast

import apsw
from pydantic_core import PydanticSerializationError, to_json

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.stores.database import CheckViolation, Landed, Row, Rows, UniqueViolation, Value, kept
from gnomon.stores.queries import Query
from gnomon.stores.sqlite.statements import SetStatement, Statement

T = TypeVar("T")
BUSY_SECONDS = 10.0
_JOURNAL_BYTES = 64 * 1024 * 1024
_MANY = 8  # rows: with fewer, it costs more to ask how many were changed than which ones
_LARGE = 1_000_000  # characters: more rows than that go in by halves, since a text has its bound in SQLite
_PRAGMAS = (
    # FULL: a power cut loses no acknowledged commit (OPS-1); NORMAL would forget the last claims
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=OFF",
    # without it INSERT OR REPLACE deletes past the append-only triggers (SEC-7)
    "PRAGMA recursive_triggers=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-32000",
    f"PRAGMA journal_size_limit={_JOURNAL_BYTES}",
)


def _busy_handler(clock: Clock, patience: float | None) -> Callable[[int], bool]:
    """Wait for the write lock in short random steps, bounded.

    SQLite's own handler backs off in growing steps, so that among several processes one may starve for half a second;
    equal short steps keep the wait of each near the others'.
    """
    never = Event()
    began = 0.0

    def wait(calls: int) -> bool:
        nonlocal began
        if calls == 0:
            began = clock.monotonic()
        elif clock.monotonic() - began > (BUSY_SECONDS if patience is None else patience):
            return False
        never.wait(random.uniform(0.0003, 0.002))  # noqa: S311 - spreads waiters, guards nothing
        return True

    return wait


def open_connection(
    path: Path,
    clock: Clock,
    queries: Mapping[str, Query],
    *,
    query_only: bool = False,
    patience: float | None = None,
) -> "Connection":
    """A connection to an existing database, with our pragmas, our clock and our busy handler.

    ``patience`` is how many seconds it waits for a lock, where that is not ``BUSY_SECONDS``.

    Raises:
        Unavailable: the file is gone or can't be opened.
    """
    try:
        raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX)
        raw.set_busy_handler(_busy_handler(clock, patience))
        for pragma in _PRAGMAS:
            raw.execute(pragma)
        if query_only:
            raw.execute("PRAGMA query_only=ON")
    except apsw.Error as error:
        raise translated(error) from error
    raw.create_scalar_function("now_us", lambda *_: clock.micros(), 0, deterministic=True)  # for migrations
    return Connection(raw, queries, clock)


# the text of a query is the same for each connection
_statement = cache(Statement)
_set_statement = cache(SetStatement)


class Connection:
    """Implements ``stores.database.Tx`` on one apsw connection; no method of it ever suspends."""

    at_once = False

    def __init__(self, raw: apsw.Connection, queries: Mapping[str, Query], clock: Clock) -> None:
        self._raw = raw
        self._statements = {name: _statement(query) for name, query in queries.items() if not query.rows}
        self._sets = {name: _set_statement(query) for name, query in queries.items() if query.rows}
        self._clock = clock
        self._columns: dict[str, tuple[str, ...]] = {}

    def transaction(self, begin: str, work: Callable[["Connection"], Awaitable[T]]) -> T:
        """Run ``work`` between ``begin`` and COMMIT, or roll back; translate the engine's errors."""
        try:
            self._raw.execute(begin)
            try:
                answer = _drive(work(self))
                self._raw.execute("COMMIT")
            except BaseException:
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")
                raise
        except apsw.Error as error:
            raise translated(error) from error
        return answer

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self._raw.execute("PRAGMA data_version").get)

    def script(self, text: str) -> None:
        """Execute several statements: for migrations."""
        for _ in self._raw.execute(text):
            pass

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement that has no name: for migrations."""
        return self._raw.execute(text).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()

    async def all(self, name: str, /, **parameters: Value) -> list[Row]:
        """See ``Tx.all``."""
        cursor = self._execute(name, parameters)
        columns = self._columns.get(name)
        if columns is None:
            try:
                columns = tuple(column[0] for column in cursor.get_description())
            except apsw.ExecutionCompleteError:  # no row came, so nobody asks for its columns
                return []
            self._columns[name] = columns
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    async def last(self, name: str, /, **parameters: Value) -> list[Row]:
        """See ``Tx.last``."""
        return await self.all(name, **parameters)

    async def one(self, name: str, /, **parameters: Value) -> Row | None:
        """See ``Tx.one``."""
        rows = await self.all(name, **parameters)
        return rows[0] if rows else None

    async def tuples(self, name: str, /, **parameters: Value) -> list[tuple[Any, ...]]:
        """See ``Tx.tuples``."""
        return self._execute(name, parameters).fetchall()

    async def run(self, name: str, /, **parameters: Value) -> int:
        """See ``Tx.run``."""
        self._execute(name, parameters).fetchall()
        return self._raw.changes()

    async def many(self, name: str, rows: Rows, /) -> list[tuple[Any, ...]]:
        """See ``Tx.many``."""
        if name in self._sets:
            statement = self._sets[name]
            return self._say(statement, statement.gathered(statement.tuples(rows)))[0]
        return self._one_by_one(self._statements[name], cast("Iterable[Mapping[str, Value]]", rows))

    async def later(
        self, name: str, rows: Rows, /, landed: Landed | None = None, of: Sequence[str] = ()
    ) -> None:
        """See ``Tx.later``: there is nothing to be gained by waiting."""
        statement = self._sets[name]
        given = statement.tuples(rows)
        self._say(statement, statement.gathered(given if landed is None else kept(given, landed, of)))

    async def guard(self, name: str, rows: Rows, /) -> Landed:
        """See ``Tx.guard``.

        How many rows were changed is known at once; which ones would come one by one, with the interpreter let go of and
        fought for at each. So they are asked for only where some were not, after the statement was taken back.
        """
        statement = self._sets[name]
        given = statement.tuples(rows)
        ids = {cast("str", row[0]) for row in given}
        if len(given) >= _MANY and len(ids) == len(given):
            self._raw.execute("SAVEPOINT guard")
            if self._say(statement, given, returning=False)[1] == len(given):
                self._raw.execute("RELEASE guard")
                return Landed(ids)
            self._raw.execute("ROLLBACK TO guard")
            self._raw.execute("RELEASE guard")
        return Landed(row[0] for row in self._say(statement, given)[0])

    async def send(self) -> None:
        """See ``Tx.send``: nothing was put off."""

    def _one_by_one(self, statement: Statement, rows: Iterable[Mapping[str, Value]]) -> list[tuple[Any, ...]]:
        values: Iterable[tuple[Value, ...]] = map(statement.values, rows)
        if statement.uses_now:
            now = (self._clock.micros(),)
            values = [given + now for given in values]
        return self._raw.executemany(statement.text, values).fetchall()

    def _say(
        self, statement: SetStatement, given: list[tuple[Value, ...]], *, returning: bool = True
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Run a set query; what it returned, and how many rows it changed."""
        if not given:
            return [], 0
        shared, common, rows = statement.apart(given)
        encoded = _encoded(rows)
        if len(encoded) > _LARGE and len(given) > 1:
            middle = len(given) // 2
            first, last = (
                self._say(statement, half, returning=returning) for half in (given[:middle], given[middle:])
            )
            return first[0] + last[0], first[1] + last[1]
        values = (encoded, self._clock.micros(), *common)
        returned: list[tuple[Any, ...]] = []
        changed = 0
        for text, count in statement.texts(shared, returning=returning):
            returned += self._raw.execute(text, values[:count]).fetchall()
            changed += self._raw.changes()
        return returned, changed

    def _execute(self, name: str, parameters: Mapping[str, Value]) -> apsw.Cursor:
        statement = self._statements[name]
        values = statement.values(parameters)
        if statement.uses_now:
            values += (self._clock.micros(),)
        return self._raw.execute(statement.text, values)


def _encoded(rows: Sequence[object]) -> str:
    """The rows as JSON. Half a surrogate pair is left as it is, to be refused as where a value is bound by itself."""
    try:
        return to_json(rows).decode()
    except PydanticSerializationError:
        return json.dumps(rows, ensure_ascii=False, allow_nan=False)


def _drive(coroutine: Awaitable[T]) -> T:
    """Run a coroutine that never really waits, here and now."""
    iterator = coroutine.__await__()
    try:
        next(iterator)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    # ended here, inside the transaction, so that what its ``finally`` writes is rolled back with the rest
    iterator.close()
    raise RuntimeError("a transaction may await its own statements and nothing else")


_UNAVAILABLE: tuple[tuple[type[apsw.Error], str, str], ...] = (
    (apsw.BusyError, "busy", "The database is busy: another process holds its write lock. Try again."),
    (apsw.LockedError, "busy", "The database is busy: another connection holds a lock on it. Try again."),
    (apsw.FullError, "disk_full", "The disk of the database is full. Free some space; nothing was lost."),
    (apsw.ReadOnlyError, "read_only", "The database is read-only for this process."),
    (apsw.IOError, "database_failed", "The database can't be read or written."),
    (apsw.CantOpenError, "database_failed", "The database can't be opened."),
    (apsw.CorruptError, "database_failed", "The database is damaged."),
    (apsw.NotADBError, "database_failed", "The file is no longer a database."),
)


def translated(error: apsw.Error) -> Exception:
    """The engine's error as one of ours."""
    if isinstance(error, apsw.ConstraintError):
        text = str(error)
        if getattr(error, "extendedresult", None) in (
            apsw.SQLITE_CONSTRAINT_UNIQUE,
            apsw.SQLITE_CONSTRAINT_PRIMARYKEY,
        ):
            return UniqueViolation(text.partition(": ")[2] or text)
        return CheckViolation(text)
    for kind, code, sentence in _UNAVAILABLE:
        if isinstance(error, kind):
            return Unavailable(f"{sentence} ({error})", code=code)
    return error
