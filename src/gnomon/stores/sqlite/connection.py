"""One apsw connection: how it is opened, how a transaction runs on it, how its errors are told.

Knows no threads; ``database.py`` gives each connection its own.
"""

import json
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import apsw

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.stores.database import CheckViolation, Landed, Row, UniqueViolation, Value, kept
from gnomon.stores.queries import PARAMETER, ROWS, Query, picker

T = TypeVar("T")
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_NOW = "now_us()"
BUSY_SECONDS = 10.0
_JOURNAL_BYTES = 64 * 1024 * 1024
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


class _Statement:
    """A named query as SQLite gets it: numbered parameters, and ``now_us()`` as one of them.

    A function of ours would be called back from inside SQLite for each row and place, and each call would fight with
    the event loop for the interpreter. As a parameter it has one value for the whole of a statement, as
    statement_timestamp() has on PostgreSQL.
    """

    __slots__ = ("text", "uses_now", "values")

    def __init__(self, query: Query) -> None:
        numbers = {name: number for number, name in enumerate(query.parameters, 1)}
        self.uses_now = _NOW in query.text
        text = query.text.replace(_NOW, f"?{len(numbers) + 1}")
        self.text = PARAMETER.sub(lambda match: f"?{numbers[match.group(1)]}", text)
        self.values = picker(query.parameters)


class SetStatement:
    """A set query as SQLite gets it: all its rows as one JSON parameter.

    So a batch is one step inside SQLite, during which the event loop has the interpreter; bound row by row it would be
    let go of and fought for a hundred times.
    """

    __slots__ = ("texts", "values")

    def __init__(self, query: Query) -> None:
        places = {column.name: number for number, column in enumerate(query.rows)}
        self.texts = tuple((self._text(text, places), _NOW in text) for text in query.statements)
        self.values = picker(query.parameters)

    @staticmethod
    def _text(text: str, places: Mapping[str, int]) -> str:
        text = text.replace(ROWS, "(SELECT value FROM jsonb_each(?1)) AS given").replace(_NOW, "?2")
        return PARAMETER.sub(lambda match: f"(given.value ->> {places[match.group(1)]})", text)


# the text of a query is the same for each connection
_statement = cache(_Statement)
_set_statement = cache(SetStatement)


class Connection:
    """Implements ``stores.database.Tx`` on one apsw connection; no method of it ever suspends."""

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

    async def many(self, name: str, rows: Iterable[Mapping[str, Value]], /) -> list[tuple[Any, ...]]:
        """See ``Tx.many``."""
        if name in self._sets:
            statement = self._sets[name]
            given = list(map(statement.values, rows))
            return self._all_at_once(statement, given) if given else []
        return self._one_by_one(self._statements[name], rows)

    async def later(
        self,
        name: str,
        rows: Iterable[Mapping[str, Value]],
        /,
        landed: Landed | None = None,
        of: Sequence[str] = (),
    ) -> None:
        """See ``Tx.later``: there is nothing to be gained by waiting."""
        await self.many(name, rows if landed is None else kept(rows, landed, of))

    async def guard(self, name: str, rows: Iterable[Mapping[str, Value]], /) -> Landed:
        """See ``Tx.guard``."""
        return Landed(row[0] for row in await self.many(name, rows))

    async def send(self) -> None:
        """See ``Tx.send``: nothing was put off."""

    def _one_by_one(
        self, statement: _Statement, rows: Iterable[Mapping[str, Value]]
    ) -> list[tuple[Any, ...]]:
        values: Iterable[tuple[Value, ...]] = map(statement.values, rows)
        if statement.uses_now:
            now = (self._clock.micros(),)
            values = [given + now for given in values]
        return self._raw.executemany(statement.text, values).fetchall()

    def _all_at_once(self, statement: SetStatement, given: list[tuple[Value, ...]]) -> list[tuple[Any, ...]]:
        # not escaped to ASCII: half a surrogate pair is refused here, as it is where a value is bound by itself
        encoded = _encode(given)
        if len(encoded) > _LARGE and len(given) > 1:
            middle = len(given) // 2
            return self._all_at_once(statement, given[:middle]) + self._all_at_once(statement, given[middle:])
        returned: list[tuple[Any, ...]] = []
        for text, uses_now in statement.texts:
            values = (encoded, self._clock.micros()) if uses_now else (encoded,)
            returned += self._raw.execute(text, values).fetchall()
        return returned

    def _execute(self, name: str, parameters: Mapping[str, Value]) -> apsw.Cursor:
        statement = self._statements[name]
        values = statement.values(parameters)
        if statement.uses_now:
            values += (self._clock.micros(),)
        return self._raw.execute(statement.text, values)


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
