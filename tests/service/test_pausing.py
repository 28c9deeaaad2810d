"""Pausing and resuming (SCH-2, SCH-8): who, when, why; from now on, without a burst."""

from datetime import datetime, timedelta

import pytest

from gnomon.domain.errors import Conflict, Invalid
from gnomon.domain.invocation import Failing, TargetFailure
from gnomon.domain.schedule import ScheduleStatus
from gnomon.services.explain import Verdict
from support.databases import START
from support.desk import HOURLY, Desk, a_desk
from support.house import House, an_agent, rows

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


async def test_a_pause_says_who_when_and_why_and_fires_nothing(desk: Desk) -> None:
    """SCH-2, casebook pau-06: a row that is not active has no next instant."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(60)
    paused = await desk.pausing.pause(made.id, "bo", reason="the month is closed")
    assert (paused.status, paused.next_fire_at) == (ScheduleStatus.PAUSED, None)
    detail = paused.status_detail
    assert (detail.by, detail.at, detail.reason) == (
        "bo",
        START + timedelta(seconds=60),
        "the month is closed",
    )
    desk.house.clock.advance(10 * 3600)
    assert await desk.house.dispatch() is None
    assert await desk.house.occurrences() == []
    assert await desk.schedules.next_slots(made.id, 3) == []
    [entry] = await desk.house.audit("PAUSE")
    assert (entry["actor"], entry["subject_id"]) == ("bo", made.id)


async def test_pausing_again_in_the_same_way_writes_nothing(desk: Desk) -> None:
    """SCH-2: who, when and why stay those of the pause that stands."""
    made = await desk.make(HOURLY)
    until = START + HOUR
    first = await desk.pausing.pause(made.id, "bo", reason="holiday", until=until)
    desk.house.clock.advance(60)
    assert await desk.pausing.pause(made.id, "cy", reason="holiday", until=until) == first
    assert len(await desk.house.audit("PAUSE")) == 1
    changes = await rows(desk.house.database, "SELECT status FROM status_changes ORDER BY seq")
    assert [row["status"] for row in changes] == ["paused"]


@pytest.mark.parametrize(
    ("reason", "until"), [("strike", START + HOUR), (None, START + HOUR), ("holiday", None), (None, None)]
)
async def test_another_reason_or_another_end_renews_a_pause(
    desk: Desk, reason: str | None, until: datetime | None
) -> None:
    made = await desk.make(HOURLY)
    await desk.pausing.pause(made.id, "bo", reason="holiday", until=START + HOUR)
    desk.house.clock.advance(60)
    detail = (await desk.pausing.pause(made.id, "cy", reason=reason, until=until)).status_detail
    assert (detail.by, detail.reason, detail.until) == ("cy", reason, until)
    assert len(await desk.house.audit("PAUSE")) == 2


async def test_what_stands_still_after_failures_is_paused_by_a_person_all_the_same(desk: Desk) -> None:
    made = await desk.make(HOURLY, failure_limit=1)
    desk.house.runtime.fails(Failing.EXCEPTION)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await desk.house.idle()
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.ERROR
    assert (await desk.pausing.pause(made.id, "bo")).status is ScheduleStatus.PAUSED
    assert len(await desk.house.audit("PAUSE")) == 1


async def test_a_resume_counts_from_now_and_fires_no_burst(desk: Desk) -> None:
    """SCH-8."""
    made = await desk.make(HOURLY)
    await desk.pausing.pause(made.id, "bo")
    desk.house.clock.advance(50 * 3600 + 60)
    resumed = await desk.pausing.resume(made.id, "cy")
    assert (resumed.status, resumed.next_fire_at) == (ScheduleStatus.ACTIVE, START + 51 * HOUR)
    assert resumed.status_detail.by == "cy"
    await desk.house.dispatch()
    assert await desk.house.occurrences() == []


async def test_resuming_what_is_active_changes_nothing(desk: Desk) -> None:
    made = await desk.make(HOURLY)
    desk.house.clock.advance(100)
    assert await desk.pausing.resume(made.id, "bo") == made


async def test_a_slot_that_was_due_when_it_was_paused_is_recorded(desk: Desk) -> None:
    """DSP-9: it came before the pause and fires no more."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(2 * 3600 + 1)
    await desk.pausing.pause(made.id, "bo")
    [record] = await desk.house.occurrences()
    assert (record["disposition"], record["reason"], record["coalesced_count"]) == ("skipped", "paused", 1)


async def test_a_pause_ends_by_itself(desk: Desk) -> None:
    """A pause with ``until``: the watchdog's chore resumes it, from then on. Casebook pau-04."""
    made = await desk.make(HOURLY)
    until = START + timedelta(hours=3, minutes=30)
    await desk.pausing.pause(made.id, "bo", until=until)
    assert [s.at for s in await desk.schedules.next_slots(made.id, 2)] == [START + 4 * HOUR, START + 5 * HOUR]
    desk.house.clock.advance(3600)
    assert await desk.pausing.resume_due() == 0
    desk.house.clock.set(until)
    assert await desk.pausing.resume_due() == 1
    assert await desk.pausing.resume_due() == 0
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.next_fire_at) == (ScheduleStatus.ACTIVE, START + 4 * HOUR)
    assert (stands.status_detail.by, stands.status_detail.until) == ("watchdog", None)


async def test_whoever_ends_pauses_knows_when_the_next_one_ends(desk: Desk) -> None:
    """DSP-1: a slot soon after the end is not left to the sweep, which may come after its grace."""
    assert await desk.pausing.tick() is None
    made = await desk.make(HOURLY)
    gone = await desk.make(HOURLY, name="gone")
    await desk.pausing.pause(made.id, "bo", until=START + timedelta(seconds=90))
    await desk.pausing.pause(gone.id, "bo", until=START + timedelta(seconds=30))
    await desk.schedules.delete(gone.id, "bo")
    assert await desk.pausing.tick() == 90
    desk.house.clock.advance(89)
    assert await desk.pausing.tick() == 1
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.PAUSED
    desk.house.clock.advance(1)
    assert await desk.pausing.tick() is None
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.ACTIVE


async def test_a_slot_after_the_end_of_a_pause_fires_although_the_end_is_noticed_late(desk: Desk) -> None:
    """DSP-7: the sweep comes every minute, and a process may have been down; nothing fires in a burst."""
    made = await desk.make({"unit": "minute", "every": 10})
    await desk.pausing.pause(made.id, "bo", until=START + HOUR)
    assert [s.at for s in await desk.schedules.next_slots(made.id, 1)] == [START + HOUR]
    desk.house.clock.set(START + HOUR + timedelta(seconds=55))
    assert await desk.pausing.resume_due() == 1
    await desk.house.dispatch()
    await desk.house.idle()
    [record] = await desk.house.occurrences()
    assert (record["disposition"], record["coalesced_count"]) == ("fired", None)
    assert (await desk.schedules.get(made.id)).next_fire_at == START + HOUR + timedelta(minutes=10)
    assert (await desk.verdict(made, START + HOUR - timedelta(minutes=10))).verdict is Verdict.PAUSED

    await desk.pausing.pause(made.id, "bo", until=START + 2 * HOUR)
    desk.house.clock.set(START + 5 * HOUR + timedelta(seconds=1))
    assert await desk.pausing.resume_due() == 1
    await desk.house.dispatch()
    await desk.house.idle()
    [_, last] = await desk.house.occurrences()
    assert (last["disposition"], last["coalesced_count"]) == ("fired", 18)


async def test_a_pause_that_ends_with_nothing_left_completes_the_schedule(desk: Desk) -> None:
    """SCH-5: no flip-flop."""
    made = await desk.make(HOURLY, ends_at="2026-11-29T11:00:00Z")
    gone = await desk.make(HOURLY, name="gone")
    for schedule in (made, gone):
        await desk.pausing.pause(schedule.id, "bo", until=START + 4 * HOUR)
    desk.house.clock.advance(5 * 3600)
    assert await desk.pausing.resume_due() == 2
    stands = await desk.schedules.get(made.id)
    assert stands.status is ScheduleStatus.COMPLETED
    assert (await desk.schedules.get(gone.id)).status is ScheduleStatus.ACTIVE


async def test_an_until_in_the_past_is_refused(desk: Desk) -> None:
    made = await desk.make(HOURLY)
    with pytest.raises(Invalid) as caught:
        await desk.pausing.pause(made.id, "bo", until=START)
    assert [fault.field for fault in caught.value.faults] == ["until"]
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.ACTIVE


async def test_pausing_while_a_run_ends_stays_paused(desk: Desk) -> None:
    """Casebook pau-05: the write at the end of a run does not touch the status; the lock comes off."""
    hold = desk.house.runtime.hangs()
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await hold.started.wait()
    await desk.pausing.pause(made.id, "bo", reason="stop")
    hold.release(TargetFailure(Failing.EXCEPTION, "no"))
    await desk.house.idle()
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.status_detail.reason) == (ScheduleStatus.PAUSED, "stop")
    assert (stands.in_flight_run_id, stands.next_fire_at) == (None, None)
    assert (await desk.pausing.resume(made.id, "bo")).next_fire_at == START + 2 * HOUR


async def test_the_failure_that_would_stop_it_leaves_a_pause_alone(desk: Desk) -> None:
    """SCH-2, casebook pau-05: only what is active is stopped by its failures, and who paused it and why stays."""
    hold = desk.house.runtime.hangs()
    made = await desk.make(HOURLY, failure_limit=1)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await hold.started.wait()
    await desk.pausing.pause(made.id, "bo", reason="stop")
    hold.release(TargetFailure(Failing.EXCEPTION, "no"))
    await desk.house.idle()
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.failure_streak) == (ScheduleStatus.PAUSED, 1)
    assert (stands.status_detail.by, stands.status_detail.reason) == ("bo", "stop")
    assert await desk.house.audit("FAIL_OUT") == []


async def test_resuming_after_failures_clears_the_streak_and_realigns(desk: Desk) -> None:
    """SCH-8, casebook aut-03: the streak is cleared, so that the next failure does not stop it again."""
    made = await desk.make(HOURLY, failure_limit=2)
    for _ in range(2):
        desk.house.runtime.fails(Failing.EXCEPTION)
        desk.house.clock.advance(3601)
        await desk.house.dispatch()
        await desk.house.idle()
    stopped = await desk.schedules.get(made.id)
    assert (stopped.status, stopped.failure_streak) == (ScheduleStatus.ERROR, 2)
    assert stopped.last_error is not None
    desk.house.clock.advance(10 * 3600)
    resumed = await desk.pausing.resume(made.id, "bo")
    assert (resumed.status, resumed.failure_streak) == (ScheduleStatus.ACTIVE, 0)
    assert resumed.next_fire_at == START + 13 * HOUR
    desk.house.runtime.fails(Failing.EXCEPTION)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await desk.house.idle()
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.ACTIVE


async def test_a_resume_with_nothing_left_is_refused_with_the_reason(desk: Desk) -> None:
    """Casebook aut-03: stopped after failures, and its runs used up."""
    made = await desk.make(HOURLY, max_runs=5)
    ended = await desk.make(HOURLY, name="b", ends_at="2026-11-29T11:00:00Z")
    for schedule in (made, ended):
        await desk.pausing.pause(schedule.id, "bo")
    await rows(
        desk.house.database, "UPDATE schedules SET status = 'error', failure_streak = 5, run_count = 5"
    )
    desk.house.clock.advance(4 * 3600)
    for schedule, word in ((made, "max_runs"), (ended, "window is over")):
        with pytest.raises(Conflict) as caught:
            await desk.pausing.resume(schedule.id, "bo")
        assert caught.value.code == "schedule_exhausted"
        assert word in caught.value.message
        stands = await desk.schedules.get(schedule.id)
        assert (stands.status, stands.failure_streak) == (ScheduleStatus.ERROR, 5)


async def test_a_finished_schedule_can_not_be_paused(desk: Desk) -> None:
    """SCH-2: what is not in the table is refused."""
    made = await desk.make(HOURLY, max_runs=1)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await desk.house.idle()
    with pytest.raises(Conflict) as caught:
        await desk.pausing.pause(made.id, "bo")
    assert caught.value.code == "schedule_completed"
