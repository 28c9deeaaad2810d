"""One connection for one thread, on an event loop of its own: what renews leases while the main loop may hang (RUN-4)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from gnomon.stores.database import Tx
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.connection import STATEMENT_SECONDS, Manner, NotBegun, Raw, connect
from gnomon.stores.postgres.failures import (
    FAILURES,
    CommitUnknown,
    is_forgotten_statement,
    is_standby,
    is_worth_another_try,
    translated,
)
from gnomon.stores.postgres.statements import Catalogue
from gnomon.stores.postgres.transaction import BROKEN, transaction

T = TypeVar("T")
_TRIES = 4
_CLOSE_SECONDS = 1.0


class DirectPostgres:
    """``stores.database.DirectDatabase``: used by one thread alone.

    Each write ends within ``patience`` seconds, whatever the line does: whoever holds leases must know in time that
    they were not renewed (RUN-5). ``guarded`` and ``alone`` say how a transaction and a statement by itself run.
    """

    def __init__(
        self,
        address: Address,
        catalogue: Catalogue,
        guarded: Callable[[], Manner],
        alone: Callable[[], Manner],
        patience: float | None,
    ) -> None:
        self._address = address
        self._catalogue = catalogue
        self._guarded = guarded
        self._alone = alone
        self._patience = STATEMENT_SECONDS if patience is None else patience
        self._cached = address.statement_cache_size
        self._loop = asyncio.new_event_loop()
        self._raw: Raw | None = None

    def changed_elsewhere(self) -> bool:
        """See ``DirectDatabase.changed_elsewhere``: never, as on PostgreSQL a listener does the waking."""
        return False

    def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``DirectDatabase.write``. What goes through here guards itself, so it is READ COMMITTED."""
        return self._in_time(self._guarded, work)

    def write_one(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """See ``DirectDatabase.write_one``: one trip."""
        return self._in_time(self._alone, work)

    def _in_time(self, manner: Callable[[], Manner], work: Callable[[Tx], Awaitable[T]]) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(self._write(manner, work), self._patience))
        except TimeoutError as error:  # the transaction was cut off, perhaps in the middle of its COMMIT
            raise CommitUnknown(
                "The database did not answer in time: whether it wrote is not known yet."
            ) from error

    def close(self) -> None:
        """See ``DirectDatabase.close``."""
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _write(self, manner: Callable[[], Manner], work: Callable[[Tx], Awaitable[T]]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                if self._raw is None or self._raw.is_closed():
                    self._raw = await connect(self._address, cached=self._cached, seconds=self._patience)
                return await transaction(self._raw, self._catalogue, manner(), work)
            except BROKEN as error:
                failure = error.__cause__ if isinstance(error, NotBegun) else error
                assert failure is not None
                if self._raw is not None and is_standby(failure):
                    self._raw.terminate()
                if not left or not self._again(error):
                    raise translated(failure) from failure
        raise AssertionError("the last try answers or raises")

    def _again(self, error: BaseException) -> bool:
        if is_forgotten_statement(error) and self._cached:
            self._cached = 0
            if self._raw is not None:
                self._raw.terminate()
            return True
        return isinstance(error, NotBegun) or is_worth_another_try(error)

    async def _end(self) -> None:
        if self._raw is not None and not self._raw.is_closed():
            try:
                await self._raw.close(timeout=_CLOSE_SECONDS)
            except FAILURES:
                self._raw.terminate()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # the transport of a connection that was cut off closes one step later
