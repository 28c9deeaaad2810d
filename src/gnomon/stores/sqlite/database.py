"""One SQLite file: a writing thread, a reading thread, and direct connections for threads of others.

Every write is BEGIN IMMEDIATE on the one writing thread of the process (HOUSE rule 7), whole transaction per hop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.stores import queries
from gnomon.stores.database import Tx
from gnomon.stores.sqlite.connection import Connection, open_connection

T = TypeVar("T")
S = TypeVar("S")
P = TypeVar("P")
Job = tuple[Callable[[Connection], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


GIVE_WAY_SECONDS = 0.002  # as long as the longest step of a waiter, so that each one gets a try
CONTENDED_SECONDS = 1.0


class _Courtesy:
    """Lets other processes in after each write while they are writing too.

    Whoever has just committed is awake and would win the lock again and again over those that sleep between two tries.
    A process that writes alone never waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: int | None = None
        self._contended_until = 0.0
        self._never = Event()

    def __call__(self, connection: Connection) -> None:
        seen, self._seen = self._seen, connection.data_version()
        now = self._clock.monotonic()
        if seen is not None and seen != self._seen:
            self._contended_until = now + CONTENDED_SECONDS
        if now < self._contended_until:
            self._never.wait(GIVE_WAY_SECONDS)


def _nothing(_connection: Connection) -> None:
    """After a read nobody has to be let in."""


class _ConnectionThread:
    """A thread that owns one connection and runs the jobs that it is sent, one after the other."""

    def __init__(
        self, name: str, connect: Callable[[], Connection], after: Callable[[Connection], None] = _nothing
    ) -> None:
        self._after = after
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._connect = connect
        self._closed = False
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def do(self, job: Callable[[Connection], T]) -> T:
        if self._closed:
            raise Unavailable("The database is closed: the program is stopping.", code="stopping")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((job, loop, future))
        return await future

    def _work(self) -> None:
        connection: Connection | None = None
        while (item := self._jobs.get()) is not None:
            job, loop, future = item
            answer, error = None, None
            try:
                if connection is None:  # tried again at the next job where it failed: the file may come back
                    connection = self._connect()
                answer = job(connection)
            except BaseException as caught:  # it is the caller's, who waits in another thread
                error = caught
            try:
                loop.call_soon_threadsafe(_settle, future, answer, error)
            except RuntimeError:  # the caller's loop is closed: nobody waits any more
                continue
            if connection is not None and error is None:
                with suppress(
                    Exception
                ):  # what is done out of courtesy must not end the thread of every write
                    self._after(connection)
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)


def _settle(future: "asyncio.Future[Any]", answer: object, error: BaseException | None) -> None:
    if future.done():  # the caller was cancelled; what was committed stays committed
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)


class SqliteDatabase:
    """``stores.database.Database`` over one file that exists and is migrated (see ``opening.py``)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._queries = queries.load("sqlite")
        self._writer = _ConnectionThread(
            "gnomon-write", lambda: open_connection(path, clock, self._queries), _Courtesy(clock)
        )
        self._reader = _ConnectionThread(
            "gnomon-read", lambda: open_connection(path, clock, self._queries, query_only=True)
        )

    async def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.write``."""
        return await self._writer.do(lambda connection: connection.transaction("BEGIN IMMEDIATE", work))

    async def write_guarded(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.write_guarded``: here writers come one after the other anyway."""
        return await self.write(work)

    async def write_held(
        self,
        read: Callable[[Tx], Awaitable[S]],
        plan: Callable[[S], P | None],
        write: Callable[[Tx, P], Awaitable[T]],
    ) -> T | None:
        """See ``Database.write_held``: nothing but the write lock could be held, and planning is no reason to."""
        planned = plan(await self.read(read))
        return None if planned is None else await self.write(lambda tx: write(tx, planned))

    async def everywhere(self, work: Callable[[Tx], Awaitable[object]]) -> None:
        """See ``Database.everywhere``: one connection writes."""
        await self.write(work)

    async def look(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.look``."""
        return await self.read(work)

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.read``."""
        return await self._reader.do(lambda connection: connection.transaction("BEGIN", work))

    def direct(self, patience: float | None = None) -> "DirectSqlite":
        """See ``Database.direct``."""
        return DirectSqlite(open_connection(self.path, self._clock, self._queries, patience=patience))

    async def close(self) -> None:
        """See ``Database.close``."""
        await self._reader.close()
        await self._writer.close()


class DirectSqlite:
    """``stores.database.DirectDatabase``: used by one thread alone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # unknown: what was committed while the connection was being opened, nobody was told of
        self._seen: int | None = None

    def changed_elsewhere(self) -> bool:
        """See ``DirectDatabase.changed_elsewhere``: ``PRAGMA data_version``, three microseconds, own commits apart."""
        seen, self._seen = self._seen, self._connection.data_version()
        return self._seen != seen

    def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``DirectDatabase.write``."""
        return self._connection.transaction("BEGIN IMMEDIATE", work)

    def write_one(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``DirectDatabase.write_one``."""
        return self.write(work)

    def close(self) -> None:
        """See ``DirectDatabase.close``."""
        self._connection.close()
