"""What chaos found in real processes, each told again step by step; and that every named step is really passed (PRF-1)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from gnomon.adapters.failpoints import Failpoints
from gnomon.domain.failpoint import POINTS, parse
from gnomon.domain.instants import SECOND
from gnomon.domain.invocation import Failing
from gnomon.domain.run import RunStatus
from gnomon.ports import failpoints
from gnomon.services.mint import Mint
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.house import House, a_run_in_work, a_schedule, an_agent

pytestmark = pytest.mark.anyio
OFTEN = {"unit": "minute", "every": 5}


class Passed:
    """``ports.failpoints.Armed`` that only listens."""

    def __init__(self) -> None:
        self.points: set[str] = set()

    def reach(self, point: str) -> None:
        self.points.add(point)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm(None)


async def swept_by_another(house: House) -> House:
    """A second process, which has found this one silent for too long."""
    other = await house.neighbour()
    await house.rows(
        "UPDATE processes SET boot_us = boot_us - heartbeat_at, heartbeat_at = 0 WHERE id = :id",
        id=house.engine.process_id,
    )
    await other.engine.watchdog.sweep()
    return other


async def a_missed_heartbeat(house: House) -> None:
    """The database was out of reach until the process gave up what it held; then it beats again, before anybody swept."""
    house.clock.advance(115)
    await house.beat()
    await house.idle()


@pytest.mark.parametrize(("on_lost", "ending"), [("fail", "lost"), ("resume", "queued")])
async def test_what_a_process_gave_up_is_free_at_its_own_next_sweep(
    house: House, on_lost: str, ending: str
) -> None:
    """RUN-5, RUN-7, RUN-8: its heartbeat is fresh again, so nobody else would take the run before its lease of an hour ends."""
    sid = await a_run_in_work(house, OFTEN, timeout_seconds=3_600, on_lost=on_lost)
    await a_missed_heartbeat(house)
    await house.engine.watchdog.tick()
    assert (await house.run())["status"] == "running", (
        "others may not take it yet, and its target may still be ending"
    )
    await house.elapse(10)
    await house.engine.watchdog.tick()
    run = await house.run()
    assert (run["status"], run["half_done"]) == (ending, 1)
    assert ((await house.schedule(sid))["unfinished_run_id"] is None) == (ending == "lost")
    [expired] = await house.audit("EXPIRE")
    assert '"why":"given_up"' in expired["detail"].replace(" ", "")
    await house.engine.watchdog.tick()
    assert len(await house.audit("EXPIRE")) == 1


async def test_what_was_taken_meanwhile_is_nobody_s_to_give_up(house: House) -> None:
    """RUN-6: the note of what was given up carries the fence."""
    await a_run_in_work(house, OFTEN, timeout_seconds=3_600, on_lost="resume")
    await a_missed_heartbeat(house)
    other = await swept_by_another(house)
    await other.claim()
    await other.idle()
    await house.elapse(10)
    await house.engine.watchdog.tick()
    assert ((await house.run())["status"], (await house.run())["fence"]) == ("succeeded", 2)


async def test_only_what_was_given_up_under_this_fence_is_taken(house: House) -> None:
    """RUN-6: by then the same process may hold the run again, under its next fence."""
    await a_run_in_work(house, OFTEN, timeout_seconds=3_600, on_lost="resume")
    await a_missed_heartbeat(house)
    await swept_by_another(house)
    again = house.runtime.hangs()
    await house.claim()
    await again.started.wait()
    await house.elapse(10)
    await house.engine.watchdog.tick()
    assert ((await house.run())["status"], (await house.run())["fence"]) == ("running", 2)


async def test_a_run_whose_end_is_being_written_is_not_given_up(house: House) -> None:
    """RUN-3: the outcome is known; the write that failed is tried again, and must not find the run taken by its own process."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(
        house.database, OFTEN, next_fire_at=START, anchor=START - timedelta(hours=5), timeout_seconds=3_600
    )
    await house.dispatch()
    await hold.started.wait()
    failpoints.arm(Failpoints(parse("close.sent=fail")))
    house.engine.renewal.closing((await house.run())["id"])
    await a_missed_heartbeat(house)
    await house.elapse(10)
    assert house.engine.renewal.abandoned() == set()


async def test_a_give_back_that_fails_is_made_up_for(house: House) -> None:
    """RUN-5a, DSP-10: nothing was sent under the claim, so that it need not wait for its lease while its holder lives."""
    await an_agent(house.database)
    await a_schedule(
        house.database, OFTEN, next_fire_at=START, anchor=START - timedelta(hours=5), timeout_seconds=3_600
    )
    prepare = house.engine.runner._attempts._invoker.prepare

    async def slow(*given: object) -> object:
        house.clock.advance(115)
        return await prepare(*given)  # type: ignore[arg-type]

    house.engine.runner._attempts._invoker.prepare = slow  # type: ignore[assignment, method-assign]
    failpoints.arm(Failpoints(parse("giveback.written=fail")))
    await house.dispatch()
    await house.until(lambda: not house.engine.runner.in_work)
    assert (await house.run())["status"] == "running"
    house.engine.runner._attempts._invoker.prepare = prepare  # type: ignore[method-assign]
    await house.claim()
    await house.idle()
    assert (await house.run())["status"] == "succeeded"
    assert len(house.runtime.calls) == 1


@pytest.mark.parametrize("minutes", [10, -10])
async def test_a_backoff_is_counted_on_the_database_s_clock(
    database: Database, clock: FrozenClock, mint: Mint, minutes: int
) -> None:
    """CLK1, DSP-3, RUN-2: a host that is ten minutes ahead put its next attempts off by as much; one behind had no backoff."""
    elsewhere = FrozenClock(START + timedelta(minutes=minutes))
    house = await House(database, elsewhere, mint).open()
    house.runtime.fails(Failing.UNREACHABLE, "no route", retryable=True)
    await an_agent(database)
    await a_schedule(
        database,
        OFTEN,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        max_attempts=2,
        backoff_seconds=30,
    )
    await house.dispatch()
    await house.idle()
    run = await house.run()
    assert (run["status"], run["claimable_at"]) == ("queued", clock.micros() + 30 * SECOND)
    house.direct.close()


async def test_every_named_step_is_passed(house: House) -> None:
    """PRF-1: a failpoint that nothing passes would prove nothing."""
    passed = Passed()
    failpoints.arm(passed)
    await a_run_in_work(house, OFTEN, timeout_seconds=3_600)
    await a_missed_heartbeat(house)
    await house.elapse(10)
    await house.engine.watchdog.tick()
    await house.elapse(200)  # the next slot
    house.engine.runner._share._places.limit = 0
    await house.dispatch()
    house.engine.runner._share._places.limit = 10
    await house.claim()
    await house.idle()
    run = await house.run(1)
    assert run["status"] == RunStatus.SUCCEEDED
    house.engine.runner.lost_claims.left(run["id"], run["fence"])
    await house.claim()
    assert passed.points == POINTS
