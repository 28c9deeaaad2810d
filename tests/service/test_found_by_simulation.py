"""Faults of the product that the simulator found, each reduced to the steps that show it (PRF-2)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.domain.invocation import Failing, TargetFailure
from gnomon.stores.database import Database
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}


class LosesAnswers:
    """A database of which the next write's answer is lost: the commit happened, its caller hears an error.

    Or it is late: ``meanwhile`` comes between the commit and its caller.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lose = False
        self.refuse = False
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def write_held(
        self,
        read: Callable[[Any], Awaitable[Any]],
        plan: Callable[[Any], Any],
        write: Callable[[Any, Any], Awaitable[Any]],
    ) -> Any:
        return await self._broken(self._database.write_held(read, plan, write))

    async def write_guarded(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self._broken(self._database.write(work))

    async def _broken(self, writing: Coroutine[Any, Any, Any]) -> Any:
        if self.refuse:
            self.refuse = False
            writing.close()
            raise Unavailable("The connection broke before anything was sent.")
        answer = await writing
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        if self.lose:
            self.lose = False
            raise Unavailable("The connection broke while the commit was under way.")
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def a_house_that_loses_answers(house: House) -> tuple[House, LosesAnswers]:
    path = LosesAnswers(house.database)
    other = await house.neighbour(database=path)
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    return other, path


async def pairs(house: House) -> list[tuple[str, int]]:
    entries = await house.rows("SELECT action, fence FROM audit_entries WHERE fence IS NOT NULL ORDER BY seq")
    return [(entry["action"], entry["fence"]) for entry in entries]


async def test_a_slot_s_claim_whose_answer_was_lost_is_asked_for(house: House) -> None:
    """RUN-5a: the run born claimed lay locked for its whole lease, in the name of a process that knew nothing of it."""
    other, path = await a_house_that_loses_answers(house)
    path.lose = True
    with pytest.raises(Unavailable):
        await other.dispatch()
    assert (await house.run())["status"] == "running"
    assert other.engine.runner.in_work == 0
    await other.dispatch()
    await other.claim()
    await other.idle()
    run = await house.run()
    assert (run["status"], run["attempt"], len(other.runtime.calls)) == ("succeeded", 1, 1)
    assert await pairs(house) == [("CLAIM", 1), ("RELEASE", 1), ("CLAIM", 2), ("RELEASE", 2)]


async def test_a_queue_s_claim_whose_answer_was_lost_is_asked_for(house: House) -> None:
    """RUN-5a: the same for a run that was claimed from the queue."""
    other, path = await a_house_that_loses_answers(house)
    dispatcher = await house.neighbour(seed=7, work=False)
    await dispatcher.dispatch()
    path.lose = True
    with pytest.raises(Unavailable):
        await other.claim()
    assert (await house.run())["status"] == "running"
    await other.claim()
    await other.idle()
    run = await house.run()
    assert (run["status"], run["attempt"], len(other.runtime.calls)) == ("succeeded", 1, 1)


async def test_doubt_stays_while_the_database_is_away(house: House) -> None:
    """RUN-5a: what could not be read back is asked for again, and a claim that was never made gives nothing back."""
    other, path = await a_house_that_loses_answers(house)
    path.lose = True
    with pytest.raises(Unavailable):
        await other.dispatch()
    path.lose = True
    with pytest.raises(Unavailable):
        await other.engine.dispatcher.tick()
    await other.dispatch()
    assert (await house.run())["status"] == "queued"
    assert [action for action, _ in await pairs(house)] == ["CLAIM", "RELEASE"]


async def test_a_claim_that_is_given_back_is_released_in_the_audit(house: House) -> None:
    """BRD-7's pairing, for runs: a claim given back at a stop had no end, and the next one followed it."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    reading = asyncio.Event()

    async def prepare(
        *_: Any,
    ) -> None:  # stopped while it still reads what its session holds: nothing was sent
        reading.set()
        await asyncio.get_running_loop().create_future()

    house.engine.runner._attempts._invoker.prepare = prepare  # type: ignore[assignment,method-assign]
    await house.dispatch()
    await reading.wait()
    await house.engine.runner.drain(1.0)
    assert house.runtime.calls == []
    assert await pairs(house) == [("CLAIM", 1), ("RELEASE", 1)]
    [entry] = await house.audit("RELEASE")
    assert entry["detail"] == '{"status":"queued"}'


async def test_a_sweep_that_stood_still_after_its_look_takes_nothing(house: House) -> None:
    """RUN-5b: the clock was set while the sweeper was stopped between its look at the clock and its sweep."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    other = await house.neighbour()
    await other.beat()
    await other.engine.watchdog.tick()
    await house.dispatch()
    await hold.started.wait()
    house.clock.jump(1_000)  # the look was before it, the sweep comes after it
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    assert await house.audit("EXPIRE") == []
    hold.release("done")
    await house.idle()
    assert (await house.run())["status"] == "succeeded"


async def test_a_jump_that_a_sweep_saw_is_acted_on_by_the_next_tick(house: House) -> None:
    """RUN-5b, casebook mis-08: the clock is back from the future, and the next slot is not left there."""
    await an_agent(house.database)
    house.clock.jump(7_200)
    sid = await a_schedule(
        house.database, HOURLY, next_fire_at=START + timedelta(hours=2), anchor=START - timedelta(hours=5)
    )
    await house.engine.watchdog.tick()
    await house.dispatch()
    await house.idle()
    house.clock.jump(-7_200)
    await house.engine.watchdog.sweep()
    assert (await house.schedule(sid))["next_fire_at"] > house.clock.micros() + 3 * 3_600_000_000 - 1
    await house.engine.watchdog.tick()
    assert (await house.schedule(sid))["next_fire_at"] <= house.clock.micros() + 3_600_000_000


async def test_a_claim_from_before_a_standstill_sends_nothing_after_it(house: House) -> None:
    """Z2, A5, RUN-5: stopped between the commit of its claim and hearing of it, then beating again before it hears.

    The heartbeat was fresh once more and the lease long, so that the old fence was sent after the newer one.
    """
    zombie, path = await a_house_that_loses_answers(house)
    await house.rows("UPDATE schedules SET timeout_seconds = 3600, on_lost = 'resume'")

    async def standstill() -> None:
        for _ in range(30):  # the watcher lives on
            house.clock.advance(5)
            await house.beat()
        await house.engine.watchdog.sweep()
        await house.claim()
        await house.idle()
        await zombie.beat()

    path.meanwhile = standstill
    await zombie.engine.dispatcher.tick()
    await zombie.idle()
    assert [call.fence for call in house.runtime.invocations] == [2]
    assert zombie.runtime.calls == []
    assert (await house.run())["status"] == "succeeded"
    assert await pairs(house) == [("CLAIM", 1), ("EXPIRE", 1), ("CLAIM", 2), ("RELEASE", 2)]
    await zombie.beat()
    assert zombie.engine.renewal.alive(), "what it claims from now on is its own"


@pytest.mark.parametrize(
    ("retryable", "status", "kinds"),
    [(False, "succeeded", ["CLAIM", "RELEASE"]), (True, "queued", ["CLAIM", "RELEASE"])],
)
async def test_a_close_whose_answer_was_lost_is_read_back_before_it_is_decided(
    house: House, retryable: bool, status: str, kinds: list[str]
) -> None:
    """RUN-5a: what had landed was told as fenced off, as if a zombie had come; and nothing is counted twice."""
    other, path = await a_house_that_loses_answers(house)
    await house.rows("UPDATE schedules SET max_attempts = 2")
    hold = other.runtime.hangs()
    await other.dispatch()
    await hold.started.wait()
    path.lose = True
    hold.release(TargetFailure(Failing.EXCEPTION, "again", retryable=True) if retryable else "done")
    await other.until(lambda: not path.lose)
    await let_it_try_again(other)
    run = await house.run()
    assert run["status"] == status
    assert [kind for kind, _ in await pairs(house)] == kinds
    assert other.engine.closing.ended == {"retried" if retryable else status: 1}
    assert len(await house.rows("SELECT * FROM attempts")) == int(retryable)


async def test_a_close_that_another_overtook_is_fenced_off_even_in_doubt(house: House) -> None:
    """RUN-6: the answer was lost because nothing was written; meanwhile a sweep took the run."""
    other, path = await a_house_that_loses_answers(house)
    hold = other.runtime.hangs()
    await other.dispatch()
    await hold.started.wait()
    path.refuse = True
    hold.release("done")
    await other.until(lambda: not path.refuse)
    await house.rows(
        "UPDATE runs SET status = 'lost', finished_at = 1, duration_us = 1, lease_until = NULL, half_done = 1"
    )
    await let_it_try_again(other)
    assert (await house.run())["status"] == "lost"
    assert [kind for kind, _ in await pairs(house)] == ["CLAIM", "FENCED"]
    assert other.engine.closing.ended == {}


async def let_it_try_again(house: House) -> None:
    """The pause of a close that failed passes, and the run is out of work."""
    for _ in range(20):
        house.clock.advance(0.1)
        await asyncio.sleep(0)
    await house.idle()
