"""Running a schedule by hand (SCH-11)."""

import asyncio
from datetime import timedelta

import pytest

from gnomon.domain.errors import Conflict, Invalid, RunInFlight
from gnomon.domain.ids import Kind, sibling
from gnomon.domain.instants import to_micros
from gnomon.domain.invocation import Failing
from gnomon.domain.run import Run, RunStatus, Trigger
from gnomon.domain.schedule import ScheduleStatus
from gnomon.services import run_now
from gnomon.services.dedup import Once, Replay
from support.databases import START
from support.desk import HOURLY, Desk, a_desk
from support.house import House, an_agent, rows

pytestmark = pytest.mark.anyio
SEVEN = {"unit": "day", "at": "07:00"}


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


async def start(desk: Desk, schedule_id: str, once: Once | None = None) -> Run:
    run = await desk.run_now.run(schedule_id, "bo", api_key_id="key_1", source="api", once=once)
    assert isinstance(run, Run)
    return run


async def test_the_target_gets_the_trace_of_whoever_asked(desk: Desk) -> None:
    """OPS-6."""
    made = await desk.make(SEVEN)
    await desk.run_now.run(made.id, "bo", trace_id="a" * 32)
    await desk.house.claim()
    await desk.house.idle()
    [got] = desk.house.runtime.invocations
    assert got.traceparent is not None
    assert got.traceparent.split("-")[1] == "a" * 32


async def test_the_run_is_there_at_once_and_the_cadence_is_left_alone(desk: Desk) -> None:
    """SCH-11, casebook run-03: cadence, streak and next slot stay; the run's row exists before the answer."""
    made = await desk.make(SEVEN)
    await rows(desk.house.database, "UPDATE schedules SET failure_streak = 3")
    before = await desk.schedules.get(made.id)
    desk.house.clock.advance(8 * 3600)
    run = await start(desk, made.id)
    assert (run.trigger, run.status, run.nominal_fire_at) == (Trigger.MANUAL, RunStatus.QUEUED, None)
    assert (run.invoked_by, run.source, run.revision) == ("bo", "api", 1)
    assert run.session_id == sibling(Kind.SESSION, run.id)
    await desk.house.claim()
    await desk.house.idle()
    ended, output = await desk.runs.get(run.id)
    assert (ended.status, output) == (RunStatus.SUCCEEDED, "ok")
    after = await desk.schedules.get(made.id)
    assert after == before
    [entry] = await desk.house.audit("RUN_NOW")
    assert entry["actor"] == "bo"


async def test_it_takes_no_slot_away(desk: Desk) -> None:
    """SCH-9, SCH-11, casebook run-02: the daily slot fires too, under a key of its own."""
    made = await desk.make(SEVEN)
    desk.house.clock.advance(8 * 3600)
    run, slot = await start(desk, made.id), to_micros(START + timedelta(hours=22))
    await desk.house.claim()
    await desk.house.idle()
    assert run.nominal_fire_at is None, "it is no slot"
    assert await desk.house.occurrences() == [], "none is on record"
    stands = await desk.house.schedule(made.id)
    assert (stands["next_fire_at"], stands["recorded_until"], stands["last_fire_at"]) == (slot, None, None)
    desk.house.clock.set(START + timedelta(hours=22, seconds=1))
    await desk.house.dispatch()
    await desk.house.idle()
    [record] = await desk.house.occurrences()
    assert (record["nominal_fire_at"], record["disposition"]) == (slot, "fired")
    assert record["run_id"] != run.id
    by_hand, by_slot = desk.house.runtime.invocations
    assert by_hand.idempotency_key != by_slot.idempotency_key
    assert by_hand.dedup_key != by_slot.dedup_key
    assert (await desk.schedules.get(made.id)).run_count == 1


async def test_a_second_click_collides(desk: Desk) -> None:
    """SCH-11: of clicks at once one starts a run, the others are told which."""
    made = await desk.make(HOURLY)
    answers = await asyncio.gather(
        *(desk.run_now.run(made.id, f"p{n}") for n in range(5)), return_exceptions=True
    )
    [run] = [answer for answer in answers if isinstance(answer, Run)]
    refused = [answer for answer in answers if isinstance(answer, RunInFlight)]
    assert len(refused) == 4
    assert {answer.data["run_id"] for answer in refused} == {run.id}


async def test_the_slot_that_comes_due_meanwhile_is_skipped_for_it(desk: Desk) -> None:
    """SCH-11, DSP-8: it takes the dispatcher's own lock."""
    made = await desk.make(HOURLY)
    await start(desk, made.id)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    [record] = await desk.house.occurrences()
    assert (record["disposition"], record["reason"]) == ("skipped", "already_running")


async def test_it_is_allowed_while_paused_and_in_error_and_completed(desk: Desk) -> None:
    """SCH-11."""
    made = await desk.make(HOURLY)
    for status in ("paused", "error", "completed"):
        await rows(desk.house.database, "UPDATE schedules SET status = :s, next_fire_at = NULL", s=status)
        run = await start(desk, made.id)
        await desk.house.claim()
        await desk.house.idle()
        assert (await desk.runs.get(run.id))[0].status is RunStatus.SUCCEEDED
        assert (await desk.schedules.get(made.id)).status == status


async def test_a_failed_run_by_hand_moves_no_streak(desk: Desk) -> None:
    """SCH-8, SCH-11."""
    made = await desk.make(HOURLY)
    desk.house.runtime.fails(Failing.EXCEPTION)
    run = await start(desk, made.id)
    await desk.house.claim()
    await desk.house.idle()
    assert (await desk.runs.get(run.id))[0].status is RunStatus.FAILED
    stands = await desk.schedules.get(made.id)
    assert (stands.failure_streak, stands.in_flight_run_id) == (0, None)


async def test_a_repeat_with_the_same_key_is_the_same_run(desk: Desk) -> None:
    """SCH-11, IDM-2."""
    made = await desk.make(HOURLY)
    once = Once("scope", "k1", "print", b"seal", lambda run: {"id": run.id})
    run = await start(desk, made.id, once)
    again = await desk.run_now.run(made.id, "bo", once=once)
    assert again == Replay({"id": run.id})
    other = Once("scope", "k1", "another print", b"seal", lambda run: {"id": run.id})
    with pytest.raises(Invalid):
        await desk.run_now.run(made.id, "bo", once=other)
    assert len(await desk.house.rows("SELECT id FROM runs")) == 1


async def test_a_target_that_is_gone_disables_instead_of_running(desk: Desk) -> None:
    """RUN-2, SCH-12, casebook tar-03."""
    made = await desk.make(HOURLY)
    await rows(desk.house.database, "UPDATE agents SET deleted_at = 1")
    with pytest.raises(Conflict) as caught:
        await desk.run_now.run(made.id, "bo")
    assert caught.value.code == "target_gone"
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.DISABLED
    assert await desk.house.rows("SELECT id FROM runs") == []


async def test_a_target_that_is_switched_off_is_the_callers_refusal(desk: Desk) -> None:
    """RUN-2."""
    made = await desk.make(HOURLY)
    await rows(desk.house.database, "UPDATE agents SET enabled = 0")
    with pytest.raises(Conflict) as caught:
        await desk.run_now.run(made.id, "bo")
    assert caught.value.code == "target_invalid"
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.in_flight_run_id) == (ScheduleStatus.ACTIVE, None)


async def test_its_templates_are_resolved_against_the_instant_of_the_request(desk: Desk) -> None:
    """SCH-6."""
    made = await desk.make(
        {"unit": "day", "at": "07:00", "zone": "Pacific/Kiritimati"},
        query="{{date}} {{runCount}} {{lastRunAt}}|",
        dedup_key="brief-{{date}}",
        session_mode="fixed",
    )
    desk.house.clock.advance(2 * 3600)
    run = await start(desk, made.id)
    assert (run.dedup_key, run.session_id) == ("brief-2026-11-30", made.definition.session_id)
    [row] = await desk.house.rows("SELECT query FROM runs")
    assert row["query"] == "2026-11-30 0 |"


async def test_of_several_who_ask_at_one_moment_one_starts_it(desk: Desk) -> None:
    """SCH-11: whoever did not get the lock leaves neither a run nor a word of one."""
    made = await desk.make(HOURLY)
    asked = [desk.run_now.run(made.id, f"person {number}") for number in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    [run] = [answer for answer in answers if isinstance(answer, Run)]
    assert [type(answer) for answer in answers].count(RunInFlight) == 4
    assert [row["id"] for row in await desk.house.rows("SELECT id FROM runs")] == [run.id]
    assert len(await desk.house.audit("RUN_NOW")) == 1


async def test_a_lock_that_was_taken_in_between_leaves_no_run(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCH-11: the lock is asked for by the write itself, whatever was read before it."""
    made = await desk.make(HOURLY)
    first = await desk.run_now.run(made.id, "ana")
    assert isinstance(first, Run)
    monkeypatch.setattr(run_now, "refuse_in_flight", lambda *_: None)
    with pytest.raises(RunInFlight):
        await desk.run_now.run(made.id, "bo")
    assert [row["id"] for row in await desk.house.rows("SELECT id FROM runs")] == [first.id]
    assert len(await desk.house.audit("RUN_NOW")) == 1
