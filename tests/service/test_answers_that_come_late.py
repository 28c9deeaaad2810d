"""Writes that were given up and land all the same, a while later: the server was still at work on them (RUN-5a)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.services.lost_claims import LINGERS_SECONDS
from gnomon.stores.database import Database, Landed
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
Write = Callable[[], Awaitable[Any]]


class Late:
    """A database of which the ``late`` write's answer is lost, before the write itself has happened."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.late = False
        self.kept: Write | None = None
        self.after: Callable[[], Awaitable[Landed | None]] | None = None

    async def write_held(self, read: Any, plan: Any, write: Any) -> Any:
        planned = plan(await self._database.look(read))
        return planned and await self._write(lambda tx: write(tx, planned))

    async def write_guarded(self, work: Any) -> Any:
        return await self._write(work)

    async def _write(self, work: Any) -> Any:
        if self.late:
            self.late = False
            self.kept = lambda: self._database.write_guarded(work)
            raise Unavailable("The line broke.", code="commit_unknown")
        if self.after is not None:
            after, self.after = self.after, None
            return await after()
        return await self._database.write_guarded(work)

    async def lands(self) -> Landed | None:
        """What was kept happens."""
        assert self.kept is not None
        kept, self.kept = self.kept, None
        await kept()
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def a_late_house(house: House) -> tuple[House, Late]:
    path = Late(house.database)
    other = await house.neighbour(database=path)
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    return other, path


async def test_a_claim_that_lands_after_it_was_asked_for_is_asked_for_again(house: House) -> None:
    """RUN-5a: else its run lies locked for its whole lease in the name of a process that lives and knows nothing of it."""
    other, path = await a_late_house(house)
    path.late = True
    with pytest.raises(Unavailable):
        await other.dispatch()

    async def asked_too_soon() -> None:  # nothing is there yet; a moment later it is
        await path.lands()

    path.after = asked_too_soon
    await other.dispatch()
    assert ((await house.run())["status"], other.engine.runner.in_work) == ("running", 0)
    await other.dispatch()
    await other.claim()
    await other.idle()
    run = await house.run()
    assert (run["status"], run["attempt"], len(other.runtime.calls)) == ("succeeded", 1, 1)


async def test_a_claim_that_never_landed_is_not_asked_for_for_ever(house: House) -> None:
    """RUN-5a: its guard refuses it by then."""
    other, path = await a_late_house(house)
    path.late = True
    with pytest.raises(Unavailable):
        await other.dispatch()
    await other.dispatch()
    await other.idle()
    assert other.engine.dispatcher.lost_claims._ids
    await other.elapse(LINGERS_SECONDS)
    await other.dispatch()
    assert not other.engine.dispatcher.lost_claims._ids
    assert await path.lands() is None
    assert (len(other.runtime.calls), len(await house.occurrences())) == (1, 1)


async def test_an_end_that_lands_while_it_is_repeated_is_not_told_as_another_s(house: House) -> None:
    """RUN-5a, RUN-6: the repeated one looked too soon, and then found the run closed."""
    other, path = await a_late_house(house)
    hold = other.runtime.hangs()
    await other.dispatch()
    await hold.started.wait()

    async def looked_too_soon() -> Landed:
        await path.lands()
        return Landed(())

    path.late, path.after = True, looked_too_soon
    hold.release("done")
    await other.until(lambda: not path.late)
    house.clock.advance(1)  # the pause before it is repeated
    await other.until(lambda: path.after is None)
    await other.idle()
    assert (await house.run())["status"] == "succeeded"
    assert not await house.audit("FENCED")
    assert len(await house.audit("RELEASE")) == 1
    assert other.engine.closing.ended == {"succeeded": 1}
