"""One schema of a PostgreSQL database: transactions over a few held connections, and direct ones for other threads.

Services are written for writers that come one after the other. Here they come side by side, so a write is SERIALIZABLE
and is run again when it lost against another, as if it had come later; the hot ones, whose every statement carries its
own guard, ask for less (``write_guarded``).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gnomon.ports.clock import Clock
from gnomon.stores import queries
from gnomon.stores.database import Tx
from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.connection import Manner, NotBegun, Raw
from gnomon.stores.postgres.direct import DirectPostgres
from gnomon.stores.postgres.failures import (
    is_forgotten_statement,
    is_standby,
    is_worth_another_try,
    is_zero_byte,
    translated,
)
from gnomon.stores.postgres.pool import Pool
from gnomon.stores.postgres.statements import Catalogue
from gnomon.stores.postgres.transaction import BROKEN, GUARDED, READ, WRITE, beginning, transaction

T = TypeVar("T")
S = TypeVar("S")
P = TypeVar("P")
CONNECTIONS = 6
TRIES = 12
_LONGEST_PAUSE = 0.1


class PostgresDatabase:
    """``stores.database.Database`` over one schema that exists and is migrated (see ``opening.py``).

    ``connections`` is how many it holds at most; one more is used by each ``direct``.
    """

    def __init__(self, url: str | Address, clock: Clock, *, connections: int = CONNECTIONS) -> None:
        self.address = url if isinstance(url, Address) else parse(url)
        self._catalogue = Catalogue(queries.load("postgres"), self.address.schema)
        self._cached = self.address.statement_cache_size
        self._pool = Pool(self.address, clock, connections, lambda: self._cached)

    async def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.write``."""
        return await self._run(lambda: Manner(self.beginning(WRITE)), work)

    async def write_guarded(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.write_guarded``."""
        return await self._run(self._guarded, work)

    async def write_held(
        self,
        read: Callable[[Tx], Awaitable[S]],
        plan: Callable[[S], P | None],
        write: Callable[[Tx, P], Awaitable[T]],
    ) -> T | None:
        """See ``Database.write_held``."""

        async def work(tx: Tx) -> T | None:
            planned = plan(await read(tx))
            return None if planned is None else await write(tx, planned)

        return await self._run(self._guarded, work)

    async def everywhere(self, work: Callable[[Tx], Awaitable[object]]) -> None:
        """See ``Database.everywhere``: all that there may be of the pool are taken at once, and so made."""
        await asyncio.gather(*[self._run(self._guarded, work) for _ in range(self._pool.size)])

    async def look(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.look``: a trip for each statement, and none around them."""
        return await self._run(self._alone, work)

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``Database.read``."""
        return await self._run(lambda: Manner(self.beginning(READ)), work)

    def direct(self, patience: float | None = None) -> DirectPostgres:
        """See ``Database.direct``. It connects at its first write, in the thread that writes."""
        return DirectPostgres(self.address, self._catalogue, self._guarded, self._alone, patience)

    async def close(self) -> None:
        """See ``Database.close``."""
        await self._pool.close()

    def beginning(self, isolation: str) -> str:
        """What begins a transaction here."""
        return beginning(isolation)

    def first(self) -> str | None:
        """What is said before a statement that stands alone: nothing, but where a test sets the clock."""
        return None

    def _guarded(self) -> Manner:
        return Manner(self.beginning(GUARDED), may_stand_alone=True, first=self.first())

    def _alone(self) -> Manner:
        return Manner(None, first=self.first())

    async def _run(self, manner: Callable[[], Manner], work: Callable[[Tx], Awaitable[T]]) -> T:
        tries, clean = 0, False
        while True:
            tries += 1
            raw = await self._pool.take()
            try:
                return await transaction(raw, self._catalogue, manner(), work, clean=clean)
            except BROKEN as error:
                clean = clean or is_zero_byte(error)
                failure = error.__cause__ if isinstance(error, NotBegun) else error
                assert failure is not None
                if not self._again(raw, error, tries):
                    raise translated(failure) from failure
            finally:
                self._pool.give(raw)
            # random, so that two that met don't meet again
            longest = min(_LONGEST_PAUSE, 0.001 * 2**tries)
            await asyncio.sleep(random.uniform(0, longest))  # noqa: S311 - spreads waiters, guards nothing

    def _again(self, raw: Raw, error: BaseException, tries: int) -> bool:
        """Whether the transaction, of which nothing was written, is worth another try."""
        if isinstance(error, NotBegun):  # its server may have gone long ago, and come back since
            self._pool.drop_idle()
            return tries <= 2 and not isinstance(error.__cause__, TimeoutError)
        if is_forgotten_statement(error):
            raw.terminate()
            self._pool.drop_idle()
            self._cached = 0  # whoever stands between us and the server does not keep them
            return tries <= 2
        if is_standby(error):
            raw.terminate()  # the next connection may find the server that was promoted
            self._pool.drop_idle()
        if is_zero_byte(error):  # rare enough not to look for in every text that is written
            return tries <= 2
        return is_worth_another_try(error) and tries < TRIES
