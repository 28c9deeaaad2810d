"""Writes that come at once are done together, and one that can't be written keeps no other from it."""

import asyncio

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.services.gathering import Gathering
from gnomon.stores import processes
from gnomon.stores.database import Database, Tx

pytestmark = pytest.mark.anyio


async def test_many_that_come_at_once_are_few_transactions(database: Database) -> None:
    done: list[int] = []

    async def work(tx: Tx, number: int) -> int:
        await processes.now(tx)
        return number * 2

    gathering = Gathering(database, work, lambda: done.append(1))
    found = await asyncio.gather(*(gathering.do(number) for number in range(1_000)))
    assert found == [number * 2 for number in range(1_000)]
    assert len(done) == 5


async def test_one_that_can_not_be_written_fails_alone(database: Database) -> None:
    async def work(tx: Tx, number: int) -> int:
        await processes.start(tx, f"prc_{number}", "h", 1, "0", "z")
        if number == 3:
            raise ValueError(number)
        return number

    gathering = Gathering(database, work, lambda: None)
    found = await asyncio.gather(*(gathering.do(number) for number in range(6)), return_exceptions=True)
    assert [str(each) for each in found] == ["0", "1", "2", "3", "4", "5"]
    assert isinstance(found[3], ValueError)


async def test_a_database_that_is_gone_is_told_to_all(database: Database) -> None:
    async def work(tx: Tx, number: int) -> int:
        return number

    gathering = Gathering(database, work, lambda: None)
    await database.close()
    found = await asyncio.gather(gathering.do(1), gathering.do(2), return_exceptions=True)
    assert all(isinstance(each, Unavailable) for each in found)


async def test_who_no_longer_waits_stops_nobody(database: Database) -> None:
    """A connection that is torn down while it is written."""
    begun = asyncio.Event()

    async def work(tx: Tx, number: int) -> int:
        return number

    gathering = Gathering(database, work, begun.set)
    gone = asyncio.create_task(gathering.do(1))
    stays = asyncio.create_task(gathering.do(2))
    await asyncio.wait({gone}, timeout=0)
    gone.cancel()
    assert await stays == 2
    assert gone.cancelled() or gone.cancelling()
