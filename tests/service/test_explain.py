"""Every slot between creation and now is answered for (DSP-9)."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon.domain.errors import Conflict
from gnomon.domain.instants import to_micros
from gnomon.domain.invocation import Failing, TargetFailure
from gnomon.domain.occurrence import Reason
from gnomon.domain.schedule import Schedule
from gnomon.domain.target import Target, TargetKind
from gnomon.services.explain import Verdict
from gnomon.services.pausing import disable_of_target
from support.databases import START
from support.desk import HOURLY, Desk, a_desk
from support.house import AGENT, House, an_agent, rows

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


async def tick(desk: Desk, at: datetime) -> None:
    desk.house.clock.set(at)
    await desk.house.dispatch()
    await desk.house.idle()


async def test_a_fired_slot_names_its_run(desk: Desk) -> None:
    """DSP-9."""
    made = await desk.make({"unit": "day", "at": "11:00", "zone": "Europe/Berlin"})
    await tick(desk, START + HOUR + SECOND)
    found = await desk.verdict(made, START + HOUR)
    run = await desk.house.run()
    assert found.verdict is Verdict.FIRED
    assert run["id"] in found.sentence
    assert (found.local_time, found.revision) == ("2026-11-29T11:00:00", 1)
    assert found.told is not None


async def test_a_skip_a_miss_and_a_range(desk: Desk) -> None:
    """DSP-7, DSP-8, DSP-9."""
    made = await desk.make(HOURLY)
    desk.house.runtime.hangs()
    desk.house.clock.set(START + HOUR + SECOND)
    await desk.house.dispatch()
    desk.house.clock.set(START + 2 * HOUR + SECOND)
    await desk.house.dispatch()
    skipped = await desk.verdict(made, START + 2 * HOUR)
    assert skipped.verdict is Verdict.SKIPPED
    assert "already running" in skipped.sentence
    desk.house.clock.set(START + 7 * HOUR + timedelta(minutes=45))
    await desk.house.dispatch()
    missed = await desk.verdict(made, START + 7 * HOUR)
    assert missed.verdict is Verdict.MISSED
    assert "its turn came at 2026-11-29T16:45:00Z, after its grace" in missed.sentence
    for hours in (3, 4, 5, 6):
        inside = await desk.verdict(made, START + hours * HOUR)
        assert inside.verdict is Verdict.COALESCED
        assert inside.told is not None
        assert inside.told.occurrence.nominal_fire_at == START + 7 * HOUR
        assert "one of 4" in inside.sentence
    off = await desk.verdict(made, START + 4 * HOUR + SECOND)
    assert off.verdict is Verdict.NOT_A_SLOT
    assert (off.before, off.after) == (START + 4 * HOUR, START + 5 * HOUR)


async def test_a_range_is_found_behind_a_slot_that_a_clock_set_back_recorded_inside_it(desk: Desk) -> None:
    """DSP-9, RUN-5b: the clock ran ahead, missed slots were recorded together; it went back, and one of them came anew."""
    made = await desk.make(HOURLY)
    await tick(desk, START + 5 * HOUR + SECOND)
    back = to_micros(START + 3 * HOUR)
    await desk.house.rows("UPDATE schedules SET next_fire_at = :back", back=back)  # what realignment does
    await tick(desk, START + 3 * HOUR + SECOND)
    held = [row["nominal_fire_at"] for row in await desk.house.occurrences()]
    assert held == [to_micros(START + 3 * HOUR), to_micros(START + 5 * HOUR)]
    for hours in (1, 2, 4):
        assert (await desk.verdict(made, START + hours * HOUR)).verdict is Verdict.COALESCED


async def test_a_pause_is_named_with_who_and_why(desk: Desk) -> None:
    """DSP-9."""
    made = await desk.make(HOURLY)
    desk.house.clock.set(START + timedelta(minutes=90))
    await desk.pausing.pause(made.id, "bo", reason="holiday")
    assert "paused (by bo: holiday)" in (await desk.verdict(made, START + 3 * HOUR)).sentence
    desk.house.clock.set(START + timedelta(minutes=210))
    await desk.pausing.resume(made.id, "cy")
    await tick(desk, START + 4 * HOUR + SECOND)
    for hours in (2, 3):
        found = await desk.verdict(made, START + hours * HOUR)
        assert found.verdict is Verdict.PAUSED
        assert "by bo: holiday" in found.sentence
        assert found.status is not None
    assert (await desk.verdict(made, START + 4 * HOUR)).verdict is Verdict.FIRED
    assert (await desk.verdict(made, START + HOUR)).verdict is Verdict.SKIPPED


async def test_a_stop_after_failures_and_the_slot_it_overtook(desk: Desk) -> None:
    """DSP-9, SCH-8: the slot that was due when the last failure stopped the schedule is explained by the stop."""
    made = await desk.make({"unit": "minute", "every": 5}, failure_limit=1)
    hold = desk.house.runtime.hangs()
    desk.house.clock.advance(301)
    await desk.house.dispatch()
    await hold.started.wait()
    desk.house.clock.advance(300)
    hold.release(TargetFailure(Failing.EXCEPTION, "no"))
    await desk.house.idle()
    desk.house.clock.advance(600)
    overtaken = await desk.verdict(made, START + timedelta(minutes=10))
    assert overtaken.verdict is Verdict.SKIPPED
    assert overtaken.told is not None
    assert overtaken.told.occurrence.reason is Reason.PAUSED
    later = await desk.verdict(made, START + timedelta(minutes=15))
    assert later.verdict is Verdict.PAUSED
    assert "1 failures in a row" in later.sentence


async def test_a_deleted_target_is_the_reason(desk: Desk) -> None:
    """DSP-9, SCH-12."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3601)
    await rows(desk.house.database, "UPDATE agents SET deleted_at = 1")
    await desk.house.database.write(lambda tx: disable_of_target(tx, Target(TargetKind.AGENT, AGENT), "bo"))
    desk.house.clock.advance(3600)
    assert "target gone" in (await desk.verdict(made, START + HOUR)).sentence
    found = await desk.verdict(made, START + 2 * HOUR)
    assert (found.verdict, "target was deleted" in found.sentence) == (Verdict.PAUSED, True)


async def test_the_window_the_future_and_the_time_before(desk: Desk) -> None:
    """DSP-9, SCH-5."""
    made = await desk.make(HOURLY, starts_at="2026-11-29T11:00:00Z", ends_at="2026-11-29T12:00:00Z")
    assert (await desk.verdict(made, START + HOUR)).verdict is Verdict.OUTSIDE_WINDOW
    assert (await desk.verdict(made, START + 4 * HOUR)).verdict is Verdict.OUTSIDE_WINDOW
    assert (await desk.verdict(made, START + 2 * HOUR)).verdict is Verdict.FUTURE
    assert (await desk.verdict(made, START - HOUR)).verdict is Verdict.BEFORE_CREATION
    assert (await desk.verdict(made, START)).verdict is Verdict.BEFORE_CREATION
    await tick(desk, START + 2 * HOUR + SECOND)
    await tick(desk, START + 3 * HOUR + SECOND)
    await tick(desk, START + 4 * HOUR + SECOND)
    assert (await desk.verdict(made, START + 3 * HOUR)).verdict is Verdict.FIRED


async def test_after_the_last_run_it_is_completed(desk: Desk) -> None:
    """DSP-9, SCH-5."""
    made = await desk.make(HOURLY, max_runs=1)
    await tick(desk, START + HOUR + SECOND)
    desk.house.clock.advance(3600)
    found = await desk.verdict(made, START + 2 * HOUR)
    assert found.verdict is Verdict.COMPLETED
    assert "max_runs reached" in found.sentence


async def test_a_due_slot_is_not_unaccounted(desk: Desk) -> None:
    """DSP-9."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3700)
    assert (await desk.verdict(made, START + HOUR)).verdict is Verdict.DUE


async def test_a_left_out_date_is_told_apart_from_no_slot(desk: Desk) -> None:
    """DSP-9, CAD-9."""
    rule = {"unit": "day", "at": "10:00", "exclude": ["2026-11-30"]}
    made = await desk.make(rule)
    await tick(desk, START + HOUR + SECOND)
    desk.house.clock.advance(50 * 3600)
    found = await desk.verdict(made, datetime(2026, 11, 30, 10, tzinfo=UTC))
    assert found.verdict is Verdict.EXCLUDED
    assert found.after == datetime(2026, 12, 1, 10, tzinfo=UTC)


async def test_a_date_that_its_calendar_left_out_until_it_was_changed(desk: Desk) -> None:
    """DSP-9, CAD-9: calendars have no revisions, and the answer is still no breach."""
    calendar = "INSERT INTO calendars VALUES ('cal_1', 'feast', 'Feasts', :dates, 1, 1, 'ana', 1)"
    await rows(desk.house.database, calendar, dates='["2026-11-30"]')
    made = await desk.make({"unit": "day", "at": "10:00", "calendar": "feast"})
    await tick(desk, START + HOUR + SECOND)
    desk.house.clock.advance(30 * 3600)
    at = datetime(2026, 11, 30, 10, tzinfo=UTC)
    assert (await desk.verdict(made, at)).verdict is Verdict.EXCLUDED
    change = "UPDATE calendars SET dates = '[]', updated_at = :now"
    await rows(desk.house.database, change, now=desk.house.clock.micros())
    changed = await desk.verdict(made, at)
    assert changed.verdict is Verdict.EXCLUDED
    assert "calendar feast was changed" in changed.sentence


async def test_an_instant_is_judged_by_the_rule_that_stood_then(desk: Desk) -> None:
    """SCH-4, DSP-9: a slot before an edit belongs to the revision before it."""
    made = await desk.make(HOURLY)
    await tick(desk, START + HOUR + SECOND)
    desk.house.clock.set(START + timedelta(minutes=90))
    await desk.schedules.edit(made.id, {"cadence": {"unit": "hour", "every": 3}}, "bo")
    await tick(desk, START + 3 * HOUR + SECOND)
    assert (await desk.verdict(made, START + HOUR)).revision == 1
    assert (await desk.verdict(made, START + 3 * HOUR)).revision == 2
    between = await desk.verdict(made, START + 2 * HOUR)
    assert (between.verdict, between.revision) == (Verdict.NOT_A_SLOT, 2)
    ledger = await desk.runs.occurrences(made.id, 2**62, 0, None, 10)
    assert [(told.occurrence.revision, told.local_time[11:16]) for told in ledger] == [
        (2, "12:00"),
        (1, "10:00"),
    ]


async def test_a_hole_in_the_ledger_is_said_and_what_retention_took_is_not_one(desk: Desk) -> None:
    """DSP-9, DSP-9a."""
    made = await desk.make(HOURLY)
    await tick(desk, START + HOUR + SECOND)
    at = to_micros(START + 5 * HOUR)
    await rows(
        desk.house.database,
        "UPDATE schedules SET next_fire_at = :at, recorded_until = :before",
        at=at,
        before=at - 1,
    )
    desk.house.clock.set(START + 4 * HOUR)
    found = await desk.verdict(made, START + 2 * HOUR)
    assert found.verdict is Verdict.UNACCOUNTED
    await rows(desk.house.database, "UPDATE retention_floor SET occurrences_before = :at", at=at)
    assert (await desk.verdict(made, START + 2 * HOUR)).verdict is Verdict.FORGOTTEN


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "tick", "pause", "nap", "sweep", "resume", "edit", "fail", "gone"]),
        st.integers(1, 30),
    ),
    max_size=25,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_no_slot_is_ever_unaccounted(desk: Desk, steps: list[tuple[str, int]]) -> None:
    """DSP-9: whatever people and the dispatcher do, at whatever moment, every slot has its answer."""
    clock = desk.house.clock
    made = await desk.make({"unit": "minute", "every": 10}, failure_limit=2)
    began = clock.now()
    minutes = 10
    for step, number in steps:
        clock.advance(number * 97)
        await _do(desk, made, step)
        if step == "edit":
            minutes = 15 if minutes == 10 else 10
            await desk.schedules.edit(made.id, {"cadence": {"unit": "minute", "every": minutes}}, "bo")
    answers = {}
    at = began.replace(second=0, microsecond=0)
    while at <= clock.now():
        found = await desk.verdict(made, at)
        answers[at] = found.verdict
        at += timedelta(minutes=5)
    await rows(desk.house.database, "UPDATE schedules SET deleted_at = 1, next_fire_at = NULL")
    assert Verdict.UNACCOUNTED not in answers.values()
    recorded = await desk.house.rows(
        "SELECT sum(1 + coalesce(coalesced_count, 0)) AS n FROM occurrences WHERE schedule_id = :id",
        id=made.id,
    )
    told = [
        v
        for v in answers.values()
        if v in {Verdict.FIRED, Verdict.SKIPPED, Verdict.MISSED, Verdict.COALESCED}
    ]
    assert len(told) == (recorded[0]["n"] or 0)


async def _do(desk: Desk, made: Schedule, step: str) -> None:
    if step == "tick":
        await desk.house.dispatch()
    elif step == "fail":
        desk.house.runtime.fails(Failing.EXCEPTION)
        await desk.house.dispatch()
    elif step == "pause":
        with suppress(Conflict):  # there is nothing to pause while it is disabled
            await desk.pausing.pause(made.id, "bo")
    elif step == "nap":
        with suppress(Conflict):
            until = desk.house.clock.now() + timedelta(seconds=700)
            await desk.pausing.pause(made.id, "bo", until=until)
    elif step == "sweep":
        await desk.pausing.resume_due()
    elif step == "resume":
        await desk.pausing.resume(made.id, "bo")
    elif step == "gone":
        await rows(desk.house.database, "UPDATE agents SET deleted_at = 1")
        await desk.house.dispatch()
        await rows(desk.house.database, "UPDATE agents SET deleted_at = NULL")
    await desk.house.idle()
