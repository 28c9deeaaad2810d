"""Runs as people watch and cancel them while a process works on them (RUN-10, RUN-11, TGT-2)."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gnomon.domain.errors import Conflict, Missing
from gnomon.domain.run import Run, RunStatus
from gnomon.ports.wakeup import News
from gnomon.services.runs import QUIET_LOOKS, Runs, Streamed
from gnomon.stores import runs
from gnomon.stores.database import Tx
from support.desk import HOURLY, Desk, a_desk
from support.house import House, an_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


async def following(stream: AsyncIterator[Streamed | None]) -> Streamed:
    event = await asyncio.wait_for(anext(stream), 5)
    assert event is not None
    return event


async def test_a_stream_follows_a_run_to_its_end(desk: Desk) -> None:
    """TGT-2: a listener hears each change as it comes, from a process that works in the same house."""
    made = await desk.make(HOURLY)
    run = await desk.run_now.run(made.id, "bo")
    assert isinstance(run, Run)
    stream = desk.runs.events(run.id)
    assert (await following(stream)).data["status"] == "queued"
    hold = desk.house.runtime.hangs()
    await desk.house.claim()
    await hold.started.wait()
    desk.house.signal.notify()
    assert (await following(stream)).data["status"] == "running"
    desk.house.runtime.calls[0].reporter.progress("half way")
    told = await following(stream)
    assert (told.kind, told.data) == ("progress", {"text": "half way"})
    hold.release("the answer")
    await desk.house.idle()
    desk.house.signal.notify()
    last = await following(stream)
    assert (last.data["status"], last.data["output"]) == ("succeeded", "the answer")
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(stream), 5)
    rest = [event async for event in desk.runs.events(run.id, told.id)]
    assert rest == [last]


async def test_a_quiet_stream_says_that_it_lives(desk: Desk) -> None:
    """A listener behind a proxy must hear something now and then, or the connection is taken for dead."""
    made = await desk.make(HOURLY)
    run = await desk.run_now.run(made.id, "bo")
    assert isinstance(run, Run)

    class Restless:
        """A wakeup that never lets anybody wait."""

        version = 0
        waits = 0

        def notify(self, news: News = News.ANYTHING) -> None:
            raise AssertionError("nobody has anything to tell")

        wake = notify

        async def wait(self, seen: int, seconds: float) -> int:
            assert seconds <= 1.0
            self.waits += 1
            return seen

    signal = Restless()
    over = Runs(database=desk.house.database, signal=signal, closing=desk.house.engine.closing)
    stream = over.events(run.id)
    assert (await following(stream)).data["status"] == "queued"
    assert await asyncio.wait_for(anext(stream), 5) is None
    assert signal.waits == QUIET_LOOKS - 1


async def test_a_cancel_is_asked_for_and_then_carried_out(desk: Desk) -> None:
    """RUN-10: the run says who asked; the schedule's streak does not move, its lock comes off."""
    made = await desk.make(HOURLY)
    hold = desk.house.runtime.hangs()
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await hold.started.wait()
    run_id = (await desk.house.run())["id"]
    asked = await desk.runs.cancel(run_id, "bo")
    assert (asked.status, asked.cancel_requested_at) == (RunStatus.RUNNING, desk.house.clock.now())
    again = await desk.runs.cancel(run_id, "cy")
    assert again.cancel_requested_at == asked.cancel_requested_at
    await desk.house.claim()
    await desk.house.until(hold.cancelled.is_set)
    await desk.house.idle()
    ended, _ = await desk.runs.get(run_id)
    assert ended.status is RunStatus.CANCELLED
    stands = await desk.schedules.get(made.id)
    assert (stands.in_flight_run_id, stands.failure_streak) == (None, 0)
    assert len(await desk.house.audit("CANCEL")) == 1


async def test_what_is_over_or_not_there_can_not_be_cancelled(desk: Desk) -> None:
    made = await desk.make(HOURLY)
    run = await desk.run_now.run(made.id, "bo")
    assert isinstance(run, Run)
    await desk.house.claim()
    await desk.house.idle()
    with pytest.raises(Conflict) as caught:
        await desk.runs.cancel(run.id, "bo")
    assert caught.value.code == "run_over"
    for action in (desk.runs.get("run_x"), desk.runs.cancel("run_x", "bo"), anext(desk.runs.events("run_x"))):
        with pytest.raises(Missing):
            await action


async def test_a_claim_that_is_lost_on_the_way_is_given_back_by_its_lease(desk: Desk) -> None:
    """Casebook pay-07: many large payloads, claimed a few at a time; a fault after the claim keeps none of them."""
    database = desk.house.database
    for number in range(6):
        made = await desk.make(HOURLY, name=f"n{number}", query="x" * 80_000)
        await desk.run_now.run(made.id, "bo")

    async def broken(tx: Tx) -> None:
        assert len(await runs.claim(tx, "prc_gone", "clm_1", 4)) == 4
        raise RuntimeError("before the commit")

    with pytest.raises(RuntimeError):
        await database.write(broken)
    assert await statuses(desk) == ["queued"] * 6
    await database.write(lambda tx: runs.claim(tx, "prc_gone", "clm_2", 4))
    assert sorted(await statuses(desk)) == ["queued"] * 2 + ["running"] * 4
    await desk.house.elapse(331)
    swept = await desk.house.engine.watchdog.sweep()
    assert swept.lost == 4
    assert sorted(await statuses(desk)) == ["lost"] * 4 + ["queued"] * 2
    locked = await desk.house.rows("SELECT id FROM schedules WHERE in_flight_run_id IS NOT NULL")
    assert len(locked) == 2


async def statuses(desk: Desk) -> list[str]:
    return [row["status"] for row in await desk.house.rows("SELECT status FROM runs ORDER BY id")]
