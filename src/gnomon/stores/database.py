"""What both engines offer the stores: named statements inside a transaction, and transactions over a database.

A store method takes a ``Tx`` and awaits its statements, nothing else; so the same method runs on PostgreSQL, where each
statement is a round trip, and on SQLite, where the whole transaction is one hop to the writing thread.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
S = TypeVar("S")
P = TypeVar("P")
Row = Mapping[str, Any]
Value = str | int | float | bytes | None
# The rows of a set query: by the names of its columns, or, where many are written, as tuples in their order.
Rows = Iterable[Mapping[str, Value]] | Iterable[tuple[Value, ...]]


class UniqueViolation(Exception):  # noqa: N818 - it is a fact about the data, told to the service that wrote it
    """A row with this key is there already; ``where`` names the table and columns or the index."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


class CheckViolation(Exception):  # noqa: N818 - likewise
    """A constraint or an append-only trigger of the schema refused the row."""


class Landed:
    """Which rows of a guard were still as they had been read: known when its statement has run.

    That is at once on some engines; on others after ``Tx.send``, the next statement that answers, or the transaction.
    """

    __slots__ = ("_ids",)

    def __init__(self, ids: Iterable[str] | None = None) -> None:
        self._ids = None if ids is None else frozenset(ids)

    @property
    def known(self) -> bool:
        """Whether the guard's statement has run."""
        return self._ids is not None

    @property
    def ids(self) -> frozenset[str]:
        """The ids that it let through."""
        assert self._ids is not None, "the guard has not been sent yet"
        return self._ids

    def answer(self, ids: Iterable[str]) -> None:
        """The guard's statement has run: for the engine."""
        self._ids = frozenset(ids)


def kept(rows: Iterable[T], landed: Landed, of: Sequence[str]) -> list[T]:
    """The rows whose ids the guard let through."""
    ids = landed.ids
    if len(ids) == len(of) and ids.issuperset(of):  # the common case, told without a look at each
        return list(rows)
    return [row for row, one in zip(rows, of, strict=True) if one in ids]


class Tx(Protocol):
    """One open transaction. Names are ``noun.words`` of the files in ``sql/``; parameters go by keyword."""

    @property
    def at_once(self) -> bool:
        """Whether one statement may change several tables, each by what became of another: there each is a trip."""
        ...

    async def all(self, name: str, /, **parameters: Value) -> list[Row]:
        """Every row, by column name."""
        ...

    async def one(self, name: str, /, **parameters: Value) -> Row | None:
        """The first row, or ``None``."""
        ...

    async def tuples(self, name: str, /, **parameters: Value) -> list[tuple[Any, ...]]:
        """Every row as a bare tuple: for the hot statements."""
        ...

    async def last(self, name: str, /, **parameters: Value) -> list[Row]:
        """As ``all``, of what writes, after which the work says nothing more: it may need no transaction around it."""
        ...

    async def run(self, name: str, /, **parameters: Value) -> int:
        """Execute, and say how many rows were changed."""
        ...

    async def many(self, name: str, rows: Rows, /) -> list[tuple[Any, ...]]:
        """Execute once for each of the rows; what RETURNING gave, over all of them."""
        ...

    async def later(
        self,
        name: str,
        rows: Rows,
        /,
        landed: Landed | None = None,
        of: Sequence[str] = (),
    ) -> None:
        """As ``many``, of a set query whose answer nobody needs.

        It may be put off and sent together with others, but is done before the next statement that answers and before
        the commit; what it raises may be raised there. With ``landed``, each row is taken only if the guard let through
        the id that stands at its place in ``of``.
        """
        ...

    async def guard(self, name: str, rows: Rows, /) -> Landed:
        """As ``later``, of a set query that returns the ids of the rows that it changed: what others depend on.

        The id is the first column of its rows.
        """
        ...

    async def send(self) -> None:
        """Do now what was put off."""
        ...


class DirectDatabase(Protocol):
    """A connection of its own for one thread that must not depend on the event loop (RUN-4)."""

    def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run ``work`` in a write transaction, in the calling thread."""
        ...

    def write_one(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As ``write``, for work that is one statement, which may run twice."""
        ...

    def changed_elsewhere(self) -> bool:
        """Whether another process may have committed since the last call: a wakeup, not a truth.

        An idle process's own heartbeats, which go through this connection, do not count.
        """
        ...

    def close(self) -> None:
        """Close the connection; called in the thread that used it."""
        ...


class Database(Protocol):
    """One database: the master's or a tenant's."""

    async def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run ``work`` in one write transaction: all of it is committed, or none.

        Raises:
            Unavailable: the database is busy, full, read-only or gone; nothing was written.
        """
        ...

    async def write_guarded(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As ``write``, for work whose every statement carries its own guard: writers side by side can't harm it.

        It costs less where writers do come side by side, and never loses against another.
        """
        ...

    async def write_held(
        self,
        read: Callable[[Tx], Awaitable[S]],
        plan: Callable[[S], P | None],
        write: Callable[[Tx, P], Awaitable[T]],
    ) -> T | None:
        """Read, plan, and write what was planned; nothing is written, and ``None`` returned, where the plan is ``None``.

        For where others are about to plan the same: what is read may be held until it is written, where an engine can.
        Where it can't, it may have changed by then, so ``write`` guards itself as in ``write_guarded``.
        """
        ...

    async def everywhere(self, work: Callable[[Tx], Awaitable[object]]) -> None:
        """As ``write_guarded``, once on each connection that writes, side by side: for work that is to be known there."""
        ...

    async def look(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As ``read``, for one statement, or for several that need not agree with each other."""
        ...

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run ``work`` over one consistent snapshot."""
        ...

    def direct(self, patience: float | None = None) -> DirectDatabase:
        """A new connection for the calling thread. ``patience`` bounds, in seconds, how long a write waits to begin."""
        ...

    async def close(self) -> None:
        """Finish what is queued and close every connection."""
        ...
