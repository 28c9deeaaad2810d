"""The next run begins while the ends of those before it are being written, and never more than there is room for."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from gnomon.domain.invocation import Failing
from gnomon.services.ending import Ending, close
from support.databases import START
from support.house import PACE, House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
PLACES = 2


@pytest.fixture
async def small(house: House) -> Any:
    """A process with two places."""
    return await house.neighbour(pace=replace(PACE, concurrency=PLACES))


@pytest.fixture
def written(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """No end is written before this is set."""
    gate, real = asyncio.Event(), house.database.write_guarded

    async def held(work: Callable[..., Awaitable[Any]]) -> Any:
        if isinstance(work, partial) and work.func is close:
            await gate.wait()
        return await real(work)

    monkeypatch.setattr(house.database, "write_guarded", held)
    yield gate
    gate.set()


async def due(house: House, count: int, **changes: Any) -> None:
    await an_agent(house.database)
    for index in range(count):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{index:020d}",
            **changes,
        )


async def statuses(house: House) -> dict[str, int]:
    found = await house.rows("SELECT status, count(*) AS n FROM runs GROUP BY status")
    return {row["status"]: row["n"] for row in found}


async def test_a_place_is_free_as_soon_as_its_target_is_over(small: House, written: asyncio.Event) -> None:
    """RUN-2, P8: the write of an end keeps nobody from beginning; at work there are never more than two."""
    await due(small, 3 * PLACES)
    holds = [small.runtime.hangs() for _ in range(PLACES)]
    await small.dispatch()
    await small.until(lambda: all(hold.started.is_set() for hold in holds))
    await small.claim()
    assert (len(small.runtime.calls), small.engine.runner.places) == (PLACES, 0), "both are at work"
    for hold in holds:
        hold.release()
    await small.until(lambda: small.engine.runner.places == PLACES)
    await small.claim()
    await small.until(lambda: len(small.runtime.calls) == 2 * PLACES)
    assert await statuses(small) == {"running": 2 * PLACES, "queued": PLACES}
    written.set()
    await small.idle()


async def test_no_more_ends_pile_up_than_there_are_places(small: House, written: asyncio.Event) -> None:
    """RUN-2: a database that takes no end is not given ever more runs, and their leases go on being renewed (RUN-4)."""
    await due(small, 4 * PLACES)
    await small.dispatch()
    for _ in range(4):
        await small.elapse(30)
        await small.claim()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.05)
    runner = small.engine.runner
    assert (len(small.runtime.calls), runner.in_work, runner.places) == (2 * PLACES, 2 * PLACES, 0)
    await small.elapse(3_600)
    over = await small.rows(
        "SELECT id FROM runs WHERE status = 'running' AND lease_until < :now", now=small.clock.micros()
    )
    assert over == []
    written.set()
    await small.idle()
    assert runner.places == PLACES, "each gives back what it had, and no more"
    while (await statuses(small)).get("queued"):
        await small.claim()
        await small.idle()
    assert await statuses(small) == {"succeeded": 4 * PLACES}
    assert runner.places == PLACES


async def test_a_drain_waits_until_the_last_end_is_written(small: House, written: asyncio.Event) -> None:
    """DSP-10: a free place does not mean that nothing is left to do."""
    await due(small, PLACES)
    await small.dispatch()
    await small.until(lambda: small.engine.runner.places == PLACES)
    draining = asyncio.create_task(small.engine.runner.drain(30.0))
    await asyncio.wait({draining}, timeout=0.05)
    assert not draining.done()
    written.set()
    await draining
    assert await statuses(small) == {"succeeded": PLACES}


async def test_a_run_that_comes_back_before_its_old_end_is_told_takes_one_place(small: House) -> None:
    """RUN-2: the end of its first attempt is in the database, and this process has it again before it is told so."""
    await due(small, 1, max_attempts=2, backoff_seconds=0)
    runner, late = small.engine.runner, list[Ending]()
    small.engine.closing.tell(late.extend)
    small.runtime.fails(Failing.EXCEPTION, retryable=True)
    second = small.runtime.hangs()
    await small.dispatch()
    await small.until(lambda: late)
    small.clock.advance(1)
    await small.claim()
    await second.started.wait()
    assert (runner.in_work, runner.places) == (1, PLACES - 1)
    runner._over(late)
    assert (runner.in_work, runner.places) == (1, PLACES - 1), "the old end is no end of the new attempt"
    small.engine.closing.tell(runner._over)
    second.release()
    await small.idle()
    assert runner.places == PLACES


async def test_a_target_that_ignores_its_cancel_keeps_its_place_until_its_end_is_written(
    small: House, written: asyncio.Event
) -> None:
    """RUN-2: it is still at work, whatever is written of it."""
    await due(small, 1, timeout_seconds=60)
    hold = small.runtime.hangs(stubborn=True)
    await small.dispatch()
    await hold.started.wait()
    await small.elapse(61)
    await small.claim()
    await hold.cancelled.wait()
    await small.elapse(6)
    await small.claim()
    hold.release()  # a target that is never let go would outlive this test
    assert small.engine.runner.places == PLACES - 1
    written.set()
    await small.idle()
    assert small.engine.runner.places == PLACES
