"""One transaction on one connection: how it begins, how its statements run, how it ends; and how a connection is made.

Nothing here relies on the state of a session, so that a pooler may give each transaction another server connection:
search path and timeouts are set inside the transaction, in the same trip that begins it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import asyncpg

from gnomon.domain.errors import Unavailable, UnusableDatabase
from gnomon.stores.database import Row, Tx, Value
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.failures import FAILURES, CommitUnknown, is_definite
from gnomon.stores.postgres.statements import Catalogue, SetStatement

T = TypeVar("T")
Raw: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 20.0  # after that the line is given up: a proxy may hold it open for ever
LOCK_SECONDS = 10.0
_ROLLBACK_SECONDS = 2.0
# a process that is stopped in the middle of a transaction holds its row locks no longer than this
IDLE_SECONDS = 15.0
READ = "REPEATABLE READ READ ONLY"
WRITE = "SERIALIZABLE"
GUARDED = "READ COMMITTED"


async def connect(address: Address, *, cached: int, seconds: float = CONNECT_SECONDS) -> Raw:
    """A new connection; ``cached`` is how many prepared statements it keeps.

    Raises:
        UnusableDatabase: the address is wrong in itself.
        Exception: the driver's own errors (``failures.FAILURES``).
    """
    try:
        return await asyncpg.connect(
            address.dsn,
            timeout=seconds,
            command_timeout=STATEMENT_SECONDS,
            statement_cache_size=cached,
            max_cached_statement_lifetime=0,
            max_cacheable_statement_size=0,
        )
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise UnusableDatabase(f"The address of the database is wrong: {error}") from error


def beginning(isolation: str, schema: str) -> str:
    """What begins a transaction, in one trip of the simple protocol."""
    return (
        f"BEGIN ISOLATION LEVEL {isolation}; SET LOCAL search_path TO {schema}; "
        f"SET LOCAL lock_timeout TO {round(LOCK_SECONDS * 1_000)}; "
        f"SET LOCAL idle_in_transaction_session_timeout TO {round(IDLE_SECONDS * 1_000)}"
    )


class NotBegun(Exception):  # noqa: N818 - a fact for whoever holds the connection: nothing happened at all
    """The connection was dead before the transaction began; ``__cause__`` says how."""


# what a transaction may fail with that is not the work's own affair
BROKEN: tuple[type[BaseException], ...] = (NotBegun, *FAILURES)


async def transaction(
    raw: Raw, catalogue: Catalogue, begin: str, work: Callable[[Tx], Awaitable[T]], *, clean: bool = False
) -> T:
    """Run ``work`` between ``begin`` and COMMIT, or roll back. A connection whose state is in doubt is cut off.

    ``clean`` replaces zero bytes in texts, which PostgreSQL has no place for.

    Raises:
        NotBegun: the line was dead.
        CommitUnknown: the answer to COMMIT was lost.
        Exception: the driver's own errors, not translated, and whatever ``work`` raises.
    """
    try:
        await raw.execute(begin)
    except FAILURES as error:
        raw.terminate()
        raise NotBegun from error
    except BaseException:
        raw.terminate()
        raise
    try:
        connection = Connection(raw, catalogue, clean=clean)
        answer = await work(connection)
        await connection.flush()
    except BaseException as error:
        await _roll_back(raw, error)
        raise
    await _commit(raw)
    return answer


async def _roll_back(raw: Raw, error: BaseException) -> None:
    broken = isinstance(error, asyncio.CancelledError | TimeoutError) or not isinstance(error, Exception)
    if broken or raw.is_closed():  # a statement may still be under way: waiting for it could take for ever
        raw.terminate()
        return
    try:
        await raw.execute("ROLLBACK", timeout=_ROLLBACK_SECONDS)
    except BaseException as second:
        raw.terminate()
        if not isinstance(second, FAILURES):
            raise


async def _commit(raw: Raw) -> None:
    try:
        tag = await raw.execute("COMMIT")
    except FAILURES as error:
        if is_definite(error):
            await _roll_back(raw, error)
            raise
        raw.terminate()
        raise CommitUnknown(
            "The line to the database broke while a transaction was being committed: whether it was is not known yet."
        ) from error
    except BaseException:
        raw.terminate()
        raise
    if tag != "COMMIT":  # a failed statement's error was swallowed by whoever ran it
        raise Unavailable("The database rolled the transaction back.", code="database_failed")


class Connection:
    """Implements ``stores.database.Tx`` on a connection that is inside a transaction."""

    __slots__ = ("_catalogue", "_clean", "_put_off", "raw")

    def __init__(self, raw: Raw, catalogue: Catalogue, *, clean: bool = False) -> None:
        self.raw = raw
        self._catalogue = catalogue
        self._clean = clean
        self._put_off: list[tuple[SetStatement, list[list[Value]]]] = []

    async def all(self, name: str, /, **parameters: Value) -> list[Row]:
        """See ``Tx.all``."""
        await self.flush()
        statement = self._catalogue.plain[name]
        records = await self.raw.fetch(statement.text, *self._given(statement.values(parameters)))
        return [dict(record) for record in records]

    async def one(self, name: str, /, **parameters: Value) -> Row | None:
        """See ``Tx.one``."""
        await self.flush()
        statement = self._catalogue.plain[name]
        records = await self.raw.fetch(statement.text, *self._given(statement.values(parameters)))
        return dict(records[0]) if records else None

    async def tuples(self, name: str, /, **parameters: Value) -> list[tuple[Any, ...]]:
        """See ``Tx.tuples``."""
        await self.flush()
        statement = self._catalogue.plain[name]
        records = await self.raw.fetch(statement.text, *self._given(statement.values(parameters)))
        return [tuple(record) for record in records]

    async def run(self, name: str, /, **parameters: Value) -> int:
        """See ``Tx.run``."""
        await self.flush()
        statement = self._catalogue.plain[name]
        tag = await self.raw.execute(statement.text, *self._given(statement.values(parameters)))
        return int(tag.rpartition(" ")[2])

    async def many(self, name: str, rows: Iterable[Mapping[str, Value]], /) -> list[tuple[Any, ...]]:
        """See ``Tx.many``: one trip for all rows, where the query is a set query one statement as well."""
        if name in self._catalogue.sets:
            arrays = self._catalogue.sets[name].arrays(rows)
            if not arrays:
                return []
            await self._put(self._catalogue.sets[name], arrays)
            return [tuple(record) for record in await self.flush()]
        await self.flush()
        single = self._catalogue.plain[name]
        given = [self._given(single.values(row)) for row in rows]
        records = await self.raw.fetchmany(single.text, given) if given else []
        return [tuple(record) for record in records]

    async def later(self, name: str, rows: Iterable[Mapping[str, Value]], /) -> None:
        """See ``Tx.later``: one trip for all that is put off."""
        statement = self._catalogue.sets[name]
        arrays = statement.arrays(rows)
        if arrays:
            await self._put(statement, arrays)

    async def _put(self, statement: SetStatement, arrays: list[list[Value]]) -> None:
        # statements that go together see none of each other's effects, so no two of them touch one table
        if any(statement.touched & other.touched for other, _ in self._put_off):
            await self.flush()
        self._put_off.append((statement, arrays))

    async def flush(self) -> list[Any]:
        """Send what was put off; what the last of it returned."""
        if not self._put_off:
            return []
        put_off, self._put_off = self._put_off, []
        text = self._catalogue.together([statement for statement, _ in put_off])
        arrays = [array for _, arrays in put_off for array in arrays]
        return await self.raw.fetch(text, *(map(self._given, arrays) if self._clean else arrays))

    def _given(self, values: Sequence[Value]) -> Sequence[Value]:
        if not self._clean:
            return values
        return [value.replace("\x00", "\ufffd") if isinstance(value, str) else value for value in values]
