"""Slots that other systems fired twice, late or never: clocks that jump, outages, leaders that think they are two."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gnomon.domain.instants import to_micros
from gnomon.domain.invocation import Failing, TargetFailure
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
EVERY_FIVE = {"unit": "minute", "every": 5}
ANCHOR = START - timedelta(hours=5)


async def test_a_slot_inside_a_sleep_is_due_at_the_next_tick_mis_04(house: House) -> None:
    """DSP-1: the wall clock has moved by six hours, the monotonic one by nothing, as over a suspend."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START + timedelta(hours=6), anchor=ANCHOR)
    assert await house.dispatch() == 6 * 3_600
    house.clock.jump(6 * 3_600 + 10)
    await house.dispatch()
    await house.idle()
    assert [i.nominal_fire_at for i in house.runtime.invocations] == [START + timedelta(hours=6)]


async def test_a_clock_set_back_takes_no_lease_and_stops_no_heartbeat_mis_09(house: House) -> None:
    """RUN-4, RUN-5b, casebook mis-11: an hour back in the middle of a run; intervals are monotonic."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR, timeout_seconds=900)
    other = await house.neighbour()
    await other.engine.watchdog.tick()
    await house.dispatch()
    await hold.started.wait()
    house.clock.jump(-3_600)
    for _ in range(20):
        await house.elapse(30)
        await other.beat()
        await other.engine.watchdog.tick()
        run = await house.run()
        assert run["status"] == "running"
        assert 0 < run["lease_until"] - house.clock.micros() <= 2 * 3_600_000_000
    assert run["lease_until"] - house.clock.micros() <= 930_000_000, "renewed by the clock as it is now"
    hold.release("done")
    await house.idle()
    run, schedule = await house.run(), await house.schedule(sid)
    assert (run["status"], schedule["unfinished_run_id"]) == ("succeeded", None)
    assert run["duration_us"] == 600_000_000


async def test_a_run_that_ends_before_it_began_ends_well_mis_11(house: House) -> None:
    """RUN-3: two seconds back while it worked; its duration is the monotonic one and the next slot fires."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR)
    await house.dispatch()
    await hold.started.wait()
    house.clock.jump(-2)
    hold.release("done")
    await house.idle()
    run, schedule = await house.run(), await house.schedule(sid)
    assert (run["status"], run["duration_us"]) == ("succeeded", 0)
    assert run["finished_at"] < run["started_at"], "the wall clock did go back"
    assert (schedule["unfinished_run_id"], schedule["next_fire_at"]) == (
        None,
        to_micros(START + timedelta(hours=1)),
    )
    await house.elapse(3_602)
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 2


@pytest.mark.parametrize("late", [60, 86_400, 400 * 86_400])
async def test_a_next_instant_in_the_past_never_stays_there_mis_14(house: House, late: int) -> None:
    """DSP-7: found at a start after a long stop, it is run once or skipped, and lies ahead afterwards."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR)
    house.clock.advance(late)
    await house.dispatch()
    await house.idle()
    [occurrence], schedule = await house.occurrences(), await house.schedule(sid)
    assert schedule["next_fire_at"] > house.clock.micros()
    assert schedule["status"] == "active"
    assert len(house.runtime.calls) == (occurrence["disposition"] == "fired")
    await house.dispatch()
    assert len(await house.occurrences()) == 1


async def test_a_row_set_to_the_epoch_is_one_run_mis_16(house: House) -> None:
    """DSP-7: edited by hand; three ticks do not make it fire as fast as they come."""
    await an_agent(house.database)
    sid = await a_schedule(
        house.database, HOURLY, next_fire_at=datetime(1970, 1, 1, tzinfo=UTC), anchor=ANCHOR
    )
    for _ in range(3):
        await house.dispatch()
        await house.idle()
        assert len(house.runtime.calls) == len(await house.occurrences()) == 1
        assert (await house.schedule(sid))["next_fire_at"] == to_micros(START + timedelta(hours=1))


async def test_several_periods_late_goes_straight_to_the_next_slot_ahead_mis_26(house: House) -> None:
    """DSP-7, CAD-2: the grid is kept, and one run stands for all that was missed."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=ANCHOR)
    house.clock.advance(950)
    await house.dispatch()
    await house.idle()
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START) + 1_200_000_000
    assert len(house.runtime.calls) == 1
    assert (await house.occurrences())[0]["coalesced_count"] == 3


async def test_who_can_not_renew_claims_nothing_dbl_07(house: House) -> None:
    """RUN-5: cut off for longer than its heartbeat holds, it fires nothing; the other one does, once."""
    await an_agent(house.database)
    await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START + timedelta(minutes=5),
        anchor=START - timedelta(minutes=55),
    )
    house.clock.advance(300)
    assert await house.engine.dispatcher.tick() == pytest.approx(0.2)
    assert await house.occurrences() == []
    other = await house.neighbour()
    await other.dispatch()
    await other.idle()
    await house.dispatch()
    await house.idle()
    assert (len(house.runtime.calls), len(other.runtime.calls)) == (0, 1)
    assert len(await house.occurrences()) == 1


async def test_after_everybody_stood_still_somebody_fires_dbl_10(house: House) -> None:
    """RUN-5b, DSP-3: nobody is elected at a start alone; whoever beats again claims, without being started anew."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR)
    other = await house.neighbour()
    for one in (house, other):
        await one.engine.watchdog.tick()
    house.clock.advance(1_000)
    for one in (house, other):
        await one.engine.watchdog.tick()
        await one.dispatch()
        await one.idle()
    assert len(house.runtime.calls) + len(other.runtime.calls) == 1


async def test_two_who_both_think_they_lead_make_no_double_dbl_11(house: House) -> None:
    """DSP-3, DSP-6: a hundred slots, claimed by two at each instant; the ledger decides and nothing else."""
    await an_agent(house.database)
    await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=ANCHOR)
    other = await house.neighbour()
    for _ in range(100):
        await asyncio.gather(house.dispatch(), other.dispatch())
        await house.idle()
        await other.idle()
        house.clock.advance(300)
        await house.beat()
        await other.beat()
    keys = [i.nominal_fire_at for i in house.runtime.invocations + other.runtime.invocations]
    assert len(keys) == len(set(keys)) == len(await house.occurrences()) == 100


async def test_two_times_that_meet_on_one_instant_are_one_slot_dbl_19(house: House) -> None:
    """CAD-4, DSP-6: 02:15, 02:45 and 03:00 are one instant on the day of the change."""
    gap = datetime(2027, 3, 14, 7, tzinfo=UTC)
    rule = {"unit": "day", "at": ["02:15", "02:45", "03:00"], "zone": "America/New_York"}
    await an_agent(house.database)
    sid = await a_schedule(house.database, rule, next_fire_at=gap, anchor=START)
    house.clock.set(gap)
    for _ in range(3):
        await house.dispatch()
        await house.idle()
    [occurrence] = await house.occurrences()
    assert (occurrence["nominal_fire_at"], occurrence["coalesced_count"]) == (to_micros(gap), None)
    assert len(house.runtime.calls) == 1
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(datetime(2027, 3, 15, 6, 15, tzinfo=UTC))


async def test_times_that_meet_on_one_instant_are_one_of_those_that_were_missed_dbl_19(house: House) -> None:
    """CAD-4, DSP-7: off over the change; the day before has three slots, the day of the change one."""
    rule = {"unit": "day", "at": ["02:15", "02:45", "03:00"], "zone": "America/New_York"}
    await an_agent(house.database)
    missed = datetime(2027, 3, 13, 7, 15, tzinfo=UTC)
    await a_schedule(house.database, rule, next_fire_at=missed, anchor=START)
    house.clock.set(datetime(2027, 3, 15, 6, 15, tzinfo=UTC))
    await house.dispatch()
    await house.idle()
    [occurrence] = await house.occurrences()
    assert (occurrence["disposition"], occurrence["coalesced_count"]) == ("fired", 4)
    assert occurrence["coalesced_last"] == to_micros(datetime(2027, 3, 14, 7, tzinfo=UTC))


async def test_how_long_a_run_takes_bends_no_grid_int_07(house: House) -> None:
    """CAD-2, DSP-8: each takes 92 seconds, the third sixteen minutes; that costs one slot and moves none."""
    await an_agent(house.database)
    rule, at = {"unit": "minute", "every": 15}, START
    sid = await a_schedule(house.database, rule, next_fire_at=at, anchor=ANCHOR, timeout_seconds=3_600)
    hold = house.runtime.hangs()
    for number in range(8):
        await house.dispatch()
        await hold.started.wait()
        at += timedelta(minutes=15)
        if number != 2:
            await house.elapse(60 if number == 3 else 92)
            hold.release(TargetFailure(Failing.EXCEPTION, "no") if number == 1 else "done")
            await house.idle()
            await house.dispatch()
            hold = house.runtime.hangs()
        assert (await house.schedule(sid))["next_fire_at"] == to_micros(at)
        await house.elapse((at - house.clock.now()).total_seconds())
    reasons = [row["reason"] for row in await house.occurrences()]
    assert reasons == [None, None, None, "already_running", None, None, None, None]
    assert len(house.runtime.calls) == 7


async def test_a_run_that_nobody_starts_is_in_flight_all_the_same_ovl_02(house: House) -> None:
    """DSP-8: five slots and no worker: one run waits, the others are skipped, and nothing moves the streak."""
    front = await house.neighbour(work=False)
    await an_agent(house.database)
    sid = await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=ANCHOR)
    for _ in range(5):
        await front.dispatch()
        await front.elapse(300)
    reasons = [row["reason"] for row in await house.occurrences()]
    assert reasons == [None, *["already_running"] * 4]
    assert [row["status"] for row in await house.rows("SELECT status FROM runs")] == ["queued"]
    assert (await house.schedule(sid))["failure_streak"] == 0


async def test_a_start_in_the_middle_of_a_slot_fires_it_once_dbl_23(house: House) -> None:
    """DSP-10: the old process stops claiming as the slot comes due, the new one finds it in the database."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START + timedelta(hours=1), anchor=ANCHOR)
    await house.dispatch()
    await house.engine.runner.drain(1.0)
    await house.elapse(3_600)
    await house.dispatch()
    await house.idle()
    new = await house.neighbour()
    await new.dispatch()
    await new.claim()
    await new.idle()
    assert (len(house.runtime.calls), len(new.runtime.calls)) == (0, 1)
    assert (await house.run())["status"] == "succeeded"


async def test_the_date_of_a_slot_that_midnight_skipped_is_its_own_dst_25(house: House) -> None:
    """CAD-4, SCH-6: Santiago has no 00:00 that day; the slot belongs to the day that begins at 01:00."""
    slot = datetime(2027, 9, 5, 4, tzinfo=UTC)
    rule = {"unit": "day", "at": "00:00", "zone": "America/Santiago"}
    await an_agent(house.database)
    await a_schedule(house.database, rule, next_fire_at=slot, anchor=START, query="{{date}}")
    house.clock.set(slot)
    await house.dispatch()
    await house.idle()
    assert [i.query for i in house.runtime.invocations] == ["2027-09-05"]


@pytest.mark.parametrize(
    "move",
    [lambda house: house.clock.advance(26 * 3_600), lambda house: house.clock.jump(26 * 3_600)],
    ids=["stopped", "suspended"],
)
async def test_after_a_day_asleep_the_schedule_is_on_its_grid_mis_02(
    house: House, move: Callable[[House], None]
) -> None:
    """DSP-7, DSP-9: active, one run at most, and the record names the whole gap."""
    await an_agent(house.database)
    rule = {"unit": "minute", "every": 15}
    sid = await a_schedule(house.database, rule, next_fire_at=START + timedelta(minutes=15), anchor=ANCHOR)
    await house.dispatch()
    move(house)
    await house.dispatch()
    await house.idle()
    [occurrence], schedule = await house.occurrences(), await house.schedule(sid)
    assert schedule["status"] == "active"
    assert schedule["next_fire_at"] == to_micros(START + timedelta(hours=26, minutes=15))
    assert (occurrence["coalesced_count"], len(house.runtime.calls)) == (103, 1)
