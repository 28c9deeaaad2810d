"""Runs whose holder is gone: closed once, or resumed; nothing is taken from the living (RUN-5b, RUN-7, RUN-8)."""

from datetime import timedelta

import pytest

from gnomon.domain.instants import to_micros
from gnomon.domain.invocation import Usage
from gnomon.services.watchdog import Elsewhere
from support.databases import START
from support.house import AGENT, House, a_run_in_work, a_schedule, a_team, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}


async def test_a_run_is_lost_when_its_process_is_silent_for_too_long(house: House) -> None:
    """RUN-7. lea-04, lea-16: long before its lease of an hour is over; the schedule is free again."""
    sid = await a_run_in_work(house, HOURLY, timeout_seconds=3600)
    other = await house.neighbour()
    house.clock.advance(119)
    await other.beat()
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    house.clock.advance(1)
    await other.beat()
    await other.engine.watchdog.sweep()
    run, schedule = await house.run(), await house.schedule(sid)
    assert (run["status"], run["half_done"], run["error_code"]) == ("lost", 1, "lost")
    assert (schedule["unfinished_run_id"], schedule["failure_streak"]) == (None, 1)
    assert "silent" in run["error"]


async def test_no_slot_is_skipped_for_a_run_that_was_dead_before_the_start(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-7: the sweep at start-up comes before the first look for slots, or a daily slot waits a day for nothing."""
    await a_run_in_work(house, HOURLY)
    other = await house.neighbour()
    house.clock.advance(3600)
    monkeypatch.setattr(other.engine, "register", nothing)  # the house has registered it already
    await other.engine.start()
    try:
        await other.until(lambda: other.engine.last_tick() is not None)
    finally:
        await other.engine.drain()
        await other.engine.stop()
    first, second = await house.occurrences()
    assert (await house.run())["status"] == "lost"
    assert (first["disposition"], second["disposition"], second["reason"]) == ("fired", "fired", None)


async def nothing() -> None:
    """Stands for what has been done."""


async def test_what_another_process_holds_is_told_with_the_end_of_it(house: House) -> None:
    """RUN-7: the heartbeat's timeout or the lease, whichever is over first, and a sweep; it is so indeed."""
    await a_run_in_work(house, HOURLY, timeout_seconds=3600)
    other = await house.neighbour()
    begun = house.clock.now()
    assert await house.engine.watchdog.elsewhere() is None, "one's own is nobody else's"
    assert await other.engine.watchdog.elsewhere() == Elsewhere(1, begun + timedelta(seconds=120 + 60))
    house.clock.advance(120)
    await other.beat()
    await other.engine.watchdog.sweep()
    assert await other.engine.watchdog.elsewhere() is None


async def all_beat(house: House) -> None:
    """Every process has just written its heartbeat, and has not renewed any lease."""
    now, boot = house.clock.micros(), round(house.clock.monotonic() * 1_000_000)
    await house.rows("UPDATE processes SET heartbeat_at = :now, boot_us = :boot", now=now, boot=boot)


async def test_a_run_is_lost_when_its_lease_is_over(house: House) -> None:
    """RUN-7. lea-05: only lease and heartbeat count, not the age of the run."""
    await a_run_in_work(house, HOURLY, timeout_seconds=30)
    other = await house.neighbour()
    house.clock.advance(59)
    await all_beat(house)
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    house.clock.advance(1)
    await all_beat(house)
    await other.engine.watchdog.sweep()
    assert (await house.run())["status"] == "lost"


async def test_two_sweeps_close_a_dead_run_once(house: House) -> None:
    """lea-09: one EXPIRE, one step of the streak."""
    sid = await a_run_in_work(house, HOURLY)
    other, third = await house.neighbour(), await house.neighbour(seed=7)
    house.clock.advance(500)
    for watchdog in (other, third, other):
        await watchdog.engine.watchdog.sweep()
    assert len(await house.audit("EXPIRE")) == 1
    assert (await house.schedule(sid))["failure_streak"] == 1


async def test_a_living_run_is_never_swept_whatever_its_schedule_s_status(house: House) -> None:
    """lea-08: paused has no part in it."""
    sid = await a_run_in_work(house, HOURLY, timeout_seconds=600)
    await house.rows("UPDATE schedules SET status = 'paused', next_fire_at = NULL WHERE id = :id", id=sid)
    for _ in range(10):
        await house.elapse(60)
        await house.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"


async def test_a_jump_of_the_clock_takes_nothing_for_the_length_of_a_lease(house: House) -> None:
    """RUN-5b.

    CLK2: ten minutes forward expires every lease at once; the living renew, and only the dead are swept.
    """
    await a_run_in_work(house, HOURLY, timeout_seconds=60)
    other = await house.neighbour()
    await other.engine.watchdog.tick()
    house.clock.jump(600)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running"
    await house.elapse(100)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running", "its holder has renewed by the new clock"
    house.clock.advance(240)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "lost", "a dead one is found all the same"


async def test_a_process_that_is_born_after_a_jump_takes_nothing_from_the_living(house: House) -> None:
    """RUN-5b: all heartbeats say the new time by then, so the leases must go by it as well."""
    await a_run_in_work(house, HOURLY, timeout_seconds=60)
    await house.beat()
    house.clock.jump(600)
    await house.beat()
    born = await house.neighbour()
    await born.beat()
    await born.engine.watchdog.tick()
    await born.engine.watchdog.sweep()
    assert (await house.run())["status"] == "running"
    assert await house.audit("EXPIRE") == []


async def test_a_watchdog_that_stood_still_gives_the_living_time_to_speak(house: House) -> None:
    """RUN-5b. lea-18: after its own stall it expires nobody for a whole heartbeat timeout."""
    await a_run_in_work(house, HOURLY, timeout_seconds=3600)
    other = await house.neighbour()
    await other.engine.watchdog.tick()
    house.clock.advance(600)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running"
    await other.elapse(60)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running"


async def test_on_lost_resume_goes_back_to_the_queue_marked(house: House) -> None:
    """RUN-8."""
    sid = await a_run_in_work(house, HOURLY, on_lost="resume")
    other = await house.neighbour()
    house.clock.advance(500)
    await other.beat()
    await other.engine.watchdog.sweep()
    run = await house.run()
    assert (run["status"], run["half_done"]) == ("queued", 1)
    assert (await house.schedule(sid))["unfinished_run_id"] == run["id"]
    await other.claim()
    await other.idle()
    [first], [second] = house.runtime.invocations, other.runtime.invocations
    assert second.fence > first.fence
    assert second.idempotency_key == first.idempotency_key
    assert (await house.run())["status"] == "succeeded"
    [attempt] = await house.rows("SELECT outcome, error_code FROM attempts")
    assert (attempt["outcome"], attempt["error_code"]) == ("lost", "lost")


async def test_a_run_that_kills_whoever_works_on_it_is_not_resumed_for_ever(house: House) -> None:
    """RUN-8."""
    await an_agent(house.database)
    await a_schedule(
        house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5), on_lost="resume"
    )
    hold = house.runtime.hangs()
    await house.dispatch()
    await hold.started.wait()
    for seed in range(10):
        victim = await house.neighbour(seed=100 + seed)
        house.clock.advance(500)
        await victim.beat()
        await victim.engine.watchdog.sweep()
        if (await house.run())["status"] == "lost":
            break
        hang = victim.runtime.hangs()
        await victim.claim()
        await hang.started.wait()
    run = await house.run()
    assert (run["status"], run["attempt"]) == ("lost", 4)


async def test_a_resumed_team_does_not_run_finished_nodes_again(house: House) -> None:
    """TGT-3."""
    await an_agent(house.database)
    team = await a_team(
        house.database,
        "tea_" + "0" * 20,
        [
            {"id": "first", "agent": AGENT, "query": "one"},
            {"id": "second", "agent": AGENT, "query": "two after {{nodes.first.output}}", "after": ["first"]},
        ],
        "second",
    )
    await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        target_kind="team",
        target_id=team,
        on_lost="resume",
    )
    house.runtime.answers("1", Usage(1, 10, 20, 0.25))
    hold = house.runtime.hangs()
    await house.dispatch()
    await hold.started.wait()
    other = await house.neighbour()
    house.clock.advance(500)
    await other.beat()
    await other.engine.watchdog.sweep()
    other.runtime.answers("2", Usage(2, 10, 20, 0.5))
    await other.claim()
    await other.idle()
    assert [i.query for i in other.runtime.invocations] == ["two after 1"]
    run = await house.run()
    assert (run["status"], run["model_calls"], run["cost"]) == ("succeeded", 3, 0.75), "RUN-9"


async def test_a_clock_set_back_brings_far_slots_home_mis_08(house: House) -> None:
    """17:00 for one tick, then the truth: no slot twice, and the next one is the true next one."""
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        {"unit": "minute", "every": 5},
        next_fire_at=START + timedelta(minutes=5),
        anchor=START - timedelta(hours=1),
    )
    await house.engine.watchdog.tick()
    house.clock.jump(7200)
    await house.engine.watchdog.tick()
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 1
    house.clock.jump(-7200)
    house.clock.advance(60)
    await house.engine.watchdog.tick()
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START + timedelta(minutes=5))
    await house.elapse(240)
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 2
    slots = [row["nominal_fire_at"] for row in await house.occurrences()]
    assert len(slots) == len(set(slots)) == 2


async def test_a_laptop_that_slept_has_one_record_and_one_run(house: House) -> None:
    """mis-02, mis-03: an hour with the lid closed is one coalesced record and at most one run."""
    await an_agent(house.database)
    await a_schedule(
        house.database,
        {"unit": "minute", "every": 5},
        next_fire_at=START + timedelta(minutes=5),
        anchor=START - timedelta(hours=1),
    )
    await house.dispatch()
    house.clock.advance(3_661)
    await house.dispatch()
    await house.idle()
    for _ in range(10):
        await house.elapse(300)
        await house.dispatch()
        await house.idle()
    occurrences = await house.occurrences()
    assert occurrences[0]["coalesced_count"] == 11
    assert len(occurrences) == len(house.runtime.calls) == 11


async def test_a_process_born_right_after_a_jump_takes_nothing(house: House) -> None:
    """RUN-5b: it has no reading of its own from before it, and finds one in the heartbeat of whoever was there."""
    await a_run_in_work(house, HOURLY)
    await house.beat()
    house.clock.jump(600)
    other = await house.neighbour()
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running"
    assert [entry["detail"] for entry in await house.audit("CLOCK_JUMP")] == [
        '{"seconds":600.0,"stalled":false}'
    ]
    await house.beat()
    house.clock.advance(121)
    await other.beat()
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "lost", "RUN-7: and it is no longer careful than the living need"


async def test_a_jump_back_and_forth_between_two_sweeps_is_seen_by_the_heartbeats(house: House) -> None:
    """RUN-5b: next slots are computed anew although both clocks agree again when the watchdog looks."""
    await house.engine.watchdog.tick()
    for seconds in (7_200, -7_200):
        house.clock.jump(seconds)
        house.clock.advance(10)
        await house.beat()
    await house.engine.watchdog.tick()
    assert [entry["detail"] for entry in await house.audit("CLOCK_JUMP")] == [
        '{"seconds":7200.0,"stalled":false}',
        '{"seconds":-7200.0,"stalled":false}',
    ]


async def test_two_jumps_that_undo_each_other_between_two_sweeps_take_nothing(house: House) -> None:
    """RUN-5b: the heartbeat between them lies in another time, and says so."""
    await a_run_in_work(house, HOURLY, timeout_seconds=3_600)
    other = await house.neighbour()
    await other.engine.watchdog.tick()
    house.clock.advance(20)
    house.clock.jump(-600)
    await house.beat()
    house.clock.jump(600)
    house.clock.advance(1)
    await other.engine.watchdog.tick()
    assert (await house.run())["status"] == "running", "its heartbeat looks ten minutes old"


async def test_a_jump_of_the_clock_is_in_the_audit(house: House) -> None:
    """RUN-5b, mis-02: the gap has a name afterwards."""
    await house.engine.watchdog.tick()
    house.clock.jump(600)
    await house.engine.watchdog.tick()
    [entry] = await house.audit("CLOCK_JUMP")
    assert entry["subject_id"] == house.engine.process_id
    assert entry["detail"] == '{"seconds":600.0,"stalled":false}'
