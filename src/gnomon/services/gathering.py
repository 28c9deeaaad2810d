"""Writes of many that come at once, done together: what gathers while one transaction is under way goes into the next.

A server that loses a thousand connections, or gets them back, writes a handful of transactions and not a thousand.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gnomon.domain.errors import Unavailable
from gnomon.stores.database import Database, Tx

A = TypeVar("A")
R = TypeVar("R")
MOST = 200


class Gathering(Generic[A, R]):
    """One kind of write. ``done`` is called after each commit.

    ``work`` does it for one, and each of its statements carries its own guard (``Database.write_guarded``).
    """

    def __init__(
        self, database: Database, work: Callable[[Tx, A], Awaitable[R]], done: Callable[[], None]
    ) -> None:
        self._database = database
        self._work = work
        self._done = done
        self._gathered: list[tuple[A, asyncio.Future[R]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def do(self, item: A) -> R:
        """Write for ``item``, with whatever else has gathered.

        Raises:
            Unavailable: nothing was written.
        """
        end: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._gathered.append((item, end))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="gnomon-gathered")
        return await end

    async def _write(self) -> None:
        while self._gathered:
            batch, self._gathered = self._gathered[:MOST], self._gathered[MOST:]
            try:
                await self._together(batch)
            except Exception as error:
                if len(batch) > 1 and not isinstance(error, Unavailable):
                    for each in batch:  # one that can't be written keeps no other from it
                        await self._alone(each)
                else:
                    _fail(batch, error)
            self._done()

    async def _together(self, batch: list[tuple[A, asyncio.Future[R]]]) -> None:
        async def work(tx: Tx) -> list[R]:
            return [await self._work(tx, item) for item, _ in batch]

        for (_, end), found in zip(batch, await self._database.write_guarded(work), strict=True):
            if not end.done():
                end.set_result(found)

    async def _alone(self, one: tuple[A, asyncio.Future[R]]) -> None:
        try:
            await self._together([one])
        except Exception as error:
            _fail([one], error)


def _fail(batch: list[tuple[A, asyncio.Future[R]]], error: Exception) -> None:
    for _, end in batch:
        if not end.done():
            end.set_exception(error)
