"""Waits that other systems got wrong: longer than a tick, below zero, or as long as the wall clock was set back."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from gnomon.services.engine import Pace
from gnomon.services.loop import AWAKE_SECONDS, Loop
from gnomon.services.signal import Signal
from gnomon.stores import processes
from gnomon.stores.database import Tx
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.house import House, a_run_in_work, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
ANCHOR = START - timedelta(hours=5)


class Noting(Signal):
    """A signal that notes how long it is waited for; the first waits are over at once."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.enough = asyncio.Event()
        self._at_once = at_once

    async def wait(self, seen: int, seconds: float) -> int:
        self.waits.append(seconds)
        if len(self.waits) <= self._at_once:
            return self.version
        self.enough.set()
        return await super().wait(seen, seconds)


async def test_no_wait_is_longer_than_a_tick_mis_04(house: House) -> None:
    """DSP-1: the next slot is twenty days away, and the wall clock is looked at every thirty seconds all the same."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START + timedelta(days=20), anchor=ANCHOR)
    signal = Noting(at_once=3)
    loop = Loop("dispatch", house.engine.dispatcher.tick, clock=house.clock, wakeup=signal, most_seconds=30.0)
    loop.start()
    await asyncio.wait_for(signal.enough.wait(), 10)
    await loop.stop()
    assert signal.waits == [30.0] * 4


async def test_a_loop_is_up_a_moment_before_the_slot(house: House) -> None:
    """DSP-1: a machine that slept until the very instant would be late for it by its own waking."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START + timedelta(seconds=10), anchor=ANCHOR)
    signal = Noting(at_once=0)
    loop = Loop("dispatch", house.engine.dispatcher.tick, clock=house.clock, wakeup=signal, most_seconds=30.0)
    loop.start()
    await asyncio.wait_for(signal.enough.wait(), 10)
    signal.enough.clear()
    house.clock.advance(signal.waits[0])
    signal.wake()
    await asyncio.wait_for(signal.enough.wait(), 10)
    await loop.stop()
    assert signal.waits == [10 - AWAKE_SECONDS, pytest.approx(AWAKE_SECONDS)]
    assert not await house.occurrences(), "it is early, and nothing fires"


async def test_a_wait_is_never_below_zero_dst_14() -> None:
    """DSP-1: a tick that counts an hour too few is called again at once, and not by a wait that is negative."""

    wanted = iter([-3_600.0, -0.001, 0.0])

    async def tick() -> float | None:
        return next(wanted, None)

    signal = Noting(at_once=3)
    loop = Loop("dispatch", tick, clock=FrozenClock(START), wakeup=signal, most_seconds=30.0)
    loop.start()
    await asyncio.wait_for(signal.enough.wait(), 10)
    await loop.stop()
    assert signal.waits == [0.0, 0.0, 0.0, 30.0]


async def test_an_hour_that_comes_twice_is_looked_at_in_no_haste_dst_14(house: House) -> None:
    """CAD-2, DSP-1: the labels repeat, the slots do not, and after each the dispatcher asks for the whole distance."""
    first = datetime(2027, 11, 7, 8, 50, tzinfo=UTC)  # ten minutes before Los Angeles goes back to 01:00
    rule = {"unit": "minute", "every": 5, "zone": "America/Los_Angeles"}
    await an_agent(house.database)
    await a_schedule(house.database, rule, next_fire_at=first, anchor=first - timedelta(hours=1))
    house.clock.set(first)
    waits = []
    for _ in range(16):
        waits.append(await house.dispatch())
        await house.idle()
        house.clock.advance(300)
    assert waits == [300.0] * 16
    fired = [i.nominal_fire_at for i in house.runtime.invocations]
    assert fired == [first + timedelta(minutes=5 * number) for number in range(16)]


class Slept:
    """In the place of the event on which the renewal's thread waits: the wait is over at once, and time has passed.

    In the middle of the first one the clock is set back by an hour.
    """

    def __init__(self, clock: FrozenClock, seconds: float) -> None:
        self.waits: list[float] = []
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds

    def is_set(self) -> bool:
        return self._clock.monotonic() >= self._ends_at

    def wait(self, seconds: float) -> bool:
        if not self.waits:
            self._clock.jump(-3_600)
        self.waits.append(seconds)
        self._clock.advance(seconds)
        return False


async def test_a_clock_set_back_makes_no_wait_for_a_heartbeat_longer_mis_09(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-4, HOUSE rule 3: the thread's own loop, for a minute; intervals are measured by the monotonic clock."""
    await a_run_in_work(house, HOURLY, timeout_seconds=900)
    beats, beat = [house.clock.monotonic()], processes.beat

    async def noted(tx: Tx, *given: int | str | None) -> int | None:
        beats.append(house.clock.monotonic())
        return await beat(tx, *given)  # type: ignore[arg-type]

    renewal, slept = house.engine.renewal, Slept(house.clock, 60)
    monkeypatch.setattr(processes, "beat", noted)
    monkeypatch.setattr(renewal, "_stop", slept)
    await asyncio.to_thread(renewal._work)
    assert max(slept.waits) <= 1
    distances = [later - earlier for earlier, later in pairwise([*beats, house.clock.monotonic()])]
    assert max(distances) <= house.pace.heartbeat_seconds + max(slept.waits)
    assert len(beats) > 60 / house.pace.heartbeat_seconds


async def test_one_slow_heartbeat_loses_nothing_dbl_08(house: House) -> None:
    """RUN-4, RUN-7, casebook lea-06: with the least timeout that is let in, it may come a whole one late."""
    pace = Pace(heartbeat_seconds=10, heartbeat_timeout_seconds=30, concurrency=10)
    slow, other = await house.neighbour(pace=pace), await house.neighbour(seed=7, pace=pace)
    hold = slow.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR)
    await slow.dispatch()
    await hold.started.wait()
    for seconds in (20, 10, 20):
        house.clock.advance(seconds)
        await other.beat()
        await other.engine.watchdog.sweep()
        assert (await house.run())["status"] == "running"
        assert slow.engine.renewal.alive()
        await slow.beat()
        assert slow.engine.renewal.holds((await house.run())["id"])
    house.clock.advance(30)
    await other.beat()
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "lost", "and not longer"
    hold.release("too late")
