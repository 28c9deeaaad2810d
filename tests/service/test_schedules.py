"""Schedules as people make, edit, pause, resume and delete them (SCH-1 … SCH-14)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from annotated_types import Le

from gnomon.domain.errors import Conflict, Invalid, Missing, RevisionStale, RunInFlight
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.ids import Kind, is_id
from gnomon.domain.instants import to_micros
from gnomon.domain.schedule import ScheduleStatus
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.versions import tag
from gnomon.ports.wakeup import News
from gnomon.services.pausing import disable_of_target
from gnomon.services.schedules import FAR_SECONDS, Schedules
from gnomon.settings import Settings
from support.databases import START
from support.desk import HOURLY, Desk, a_desk, written
from support.house import AGENT, House, a_team, an_agent, rows

pytestmark = pytest.mark.anyio
NINE = {"unit": "day", "at": "09:00", "zone": "Europe/Berlin"}
HOUR = timedelta(hours=1)


@pytest.fixture
async def desk(house: House) -> Desk:
    await an_agent(house.database)
    return a_desk(house)


def faults(caught: pytest.ExceptionInfo[Invalid]) -> set[str]:
    return {fault.field for fault in caught.value.faults}


def at(schedule_id: str, revision: int) -> frozenset[str]:
    return frozenset({tag(schedule_id, revision)})


async def refused(desk: Desk, cadence: dict[str, Any] | None = None, **fields: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        await desk.make(cadence, **fields)
    assert await rows(desk.house.database, "SELECT id FROM schedules") == []
    return {fault.field: fault.message for fault in caught.value.faults}


async def test_a_new_schedule_is_active_and_has_its_first_slot(desk: Desk) -> None:
    """SCH-14, CAD-5: the anchor is the creation instant, cut to the minute."""
    desk.house.clock.advance(75.5)
    made = await desk.make(HOURLY)
    assert made.status is ScheduleStatus.ACTIVE
    assert made.anchor_at == START + timedelta(minutes=1)
    assert made.next_fire_at == START + timedelta(hours=1, minutes=1)
    assert (made.revision, made.created_by, made.run_count) == (1, "ana", 0)
    [entry] = await desk.house.audit("CREATE")
    assert entry["subject_id"] == made.id


async def test_one_record_type_serves_agents_and_teams_and_leaves_theirs_alone(desk: Desk) -> None:
    """SCH-1. A slug goes where an id goes."""
    team = await a_team(
        desk.house.database, "tea_" + "0" * 20, [{"id": "a", "agent": AGENT, "query": "x"}], "a"
    )
    before = [await rows(desk.house.database, f"SELECT * FROM {t}") for t in ("agents", "teams")]
    one = await desk.make(HOURLY, target={"kind": "team", "id": team.replace("_", "-")})
    two = await desk.make(HOURLY, target={"kind": "agent", "id": AGENT.replace("_", "-")})
    assert one.definition.target == Target(TargetKind.TEAM, team)
    assert two.definition.target == Target(TargetKind.AGENT, AGENT)
    assert before == [await rows(desk.house.database, f"SELECT * FROM {t}") for t in ("agents", "teams")]


async def test_a_past_one_time_schedule_is_refused_and_a_future_one_fires_once(desk: Desk) -> None:
    """SCH-14, casebook win-08: refused with field and reason, nothing stored; a later one fires once, then ends."""
    for at in ("2026-11-29T08:59:59", "2026-11-29T09:00:00"):
        assert "lies in the past" in (await refused(desk, {"unit": "once", "at": at}))["cadence.at"]
    made = await desk.make({"unit": "once", "at": "2026-11-29T09:00:01"})
    for _ in range(3):
        desk.house.clock.advance(1.5)
        await desk.house.dispatch()
        await desk.house.idle()
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.run_count) == (ScheduleStatus.COMPLETED, 1)
    assert len(await desk.house.occurrences()) == 1


async def test_what_would_never_fire_is_refused_at_its_field(desk: Desk) -> None:
    """SCH-14."""
    past, later = "2026-11-29T08:00:00Z", "2026-11-29T09:30:00Z"
    assert "the window is over" in (await refused(desk, HOURLY, ends_at=past))["ends_at"]
    assert "no slot lies inside" in (await refused(desk, HOURLY, ends_at=later))["ends_at"]
    never = {"unit": "once", "at": "2026-12-24T18:00:00", "exclude": ["2026-12-24"]}
    assert "no slot at all" in (await refused(desk, never))["cadence.at"]
    once = {"unit": "once", "at": "2026-12-24T18:00:00"}
    assert "at or after" in (await refused(desk, once, starts_at="2027-01-01T00:00:00Z"))["starts_at"]


async def test_what_a_definition_names_must_exist_and_all_faults_come_at_once(desk: Desk) -> None:
    """SCH-14, casebook tar-03: looked up by key in the same store, in the same transaction."""
    found = await refused(
        desk,
        {**NINE, "calendar": "no-such"},
        target={"kind": "agent", "id": "no-such"},
        ends_at="2026-11-29T08:00:00Z",
    )
    assert set(found) == {"target", "cadence.calendar", "ends_at"}


async def test_what_is_written_wrongly_hides_nothing_of_what_is_not_there(desk: Desk) -> None:
    """CONTRACT, errors: faults of form, of names and of time are in one answer; so they are for an edit (SCH-4)."""
    nowhere = {"kind": "agent", "id": "no-such"}
    found = await refused(
        desk,
        {**NINE, "calendar": "no-such"},
        target=nowhere,
        ends_at="2026-11-29T08:00:00Z",
        timeout_seconds=0,
    )
    assert set(found) == {"target", "cadence.calendar", "ends_at", "timeout_seconds"}
    made = await desk.make(HOURLY)
    wrong = {"target": nowhere, "ends_at": "2026-11-29T08:00:00Z", "timeout_seconds": 0}
    with pytest.raises(Invalid) as caught:
        await desk.schedules.edit(made.id, wrong, "bo")
    assert faults(caught) == set(wrong)
    assert (await desk.schedules.get(made.id)).revision == 1


async def test_nothing_is_made_up_about_what_could_not_be_read(desk: Desk) -> None:
    """CONTRACT, errors: an unreadable target or cadence is told once, and no slots are judged that nobody wrote."""
    unread = {"target": {"kind": "agent", "id": "No Such"}, "ends_at": "2026-11-29T09:30:00Z"}
    assert set(await refused(desk, {"unit": "hour", "every": 0}, **unread)) == {"target.id", "cadence.every"}


async def test_the_window_opens_later_and_is_inclusive(desk: Desk) -> None:
    """SCH-5: realigned from the window's start."""
    made = await desk.make(HOURLY, starts_at="2026-11-29T12:00:00Z", ends_at="2026-11-29T13:00:00Z")
    assert made.next_fire_at == START + 3 * HOUR
    ahead = await desk.schedules.next_slots(made.id, 5)
    assert [slot.at for slot in ahead] == [START + 3 * HOUR, START + 4 * HOUR]


async def test_a_fixed_session_is_made_and_kept(desk: Desk) -> None:
    """SCH-7."""
    made = await desk.make(HOURLY, session_mode="fixed")
    session_id = made.definition.session_id
    assert session_id is not None
    assert is_id(Kind.SESSION, session_id)
    saved = await desk.schedules.edit(made.id, {"query": "again"}, "bo")
    assert saved.schedule.definition.session_id == session_id
    fresh = await desk.schedules.edit(made.id, {"session_mode": "fresh"}, "bo")
    assert fresh.schedule.definition.session_id is None


async def test_an_erased_session_can_not_be_fixed(desk: Desk) -> None:
    """SCH-7, RUN-12."""
    await rows(desk.house.database, "INSERT INTO sessions VALUES ('ses_00000000000000000000', 1, 2)")
    found = await refused(desk, HOURLY, session_mode="fixed", session_id="ses_" + "0" * 20)
    assert "erased" in found["session_id"]


async def test_an_edit_appends_a_revision_with_its_author(desk: Desk) -> None:
    """SCH-4."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(60)
    saved = await desk.schedules.edit(made.id, {"query": "two"}, "bo", match=at(made.id, 1))
    assert saved.changed
    assert (saved.schedule.revision, saved.schedule.updated_by) == (2, "bo")
    desk.house.clock.advance(60)
    await desk.schedules.edit(made.id, {"query": "three"}, "cy")
    found = await desk.schedules.revisions(made.id, 2**31, 10)
    assert [(r.revision, r.author, r.definition["query"]) for r in found] == [
        (3, "cy", "three"),
        (2, "bo", "two"),
        (1, "ana", "go"),
    ]
    assert [r.revision for r in await desk.schedules.revisions(made.id, 3, 1)] == [2]


async def test_a_stale_edit_is_refused_and_changes_nothing(desk: Desk) -> None:
    """SCH-4."""
    made = await desk.make(HOURLY)
    await desk.schedules.edit(made.id, {"query": "two"}, "bo", match=at(made.id, 1))
    with pytest.raises(RevisionStale) as caught:
        await desk.schedules.edit(made.id, {"query": "mine"}, "cy", match=at(made.id, 1))
    assert caught.value.data == {"version": 2}
    with pytest.raises(RevisionStale):
        await desk.schedules.delete(made.id, "cy", match=at(made.id, 1))
    assert (await desk.schedules.get(made.id)).definition.query == "two"


async def test_saving_without_a_change_changes_nothing(desk: Desk) -> None:
    """SCH-12a."""
    made = await desk.make(NINE, session_mode="fixed")
    desk.house.clock.advance(3600)
    before = await rows(desk.house.database, "SELECT * FROM schedules")
    same = {"cadence": {**NINE, "every": 1}, "target": {"kind": "agent", "id": AGENT.replace("_", "-")}}
    for patch in ({}, same, {"retry": None, "overlap": "skip"}, {"retry": {"max_attempts": 1}}):
        saved = await desk.schedules.edit(made.id, patch, "bo")
        assert not saved.changed
        assert saved.schedule.revision == 1
    assert before == await rows(desk.house.database, "SELECT * FROM schedules")
    assert len(await desk.schedules.revisions(made.id, 2**31, 10)) == 1


async def test_an_edit_never_fires_a_slot_that_lies_before_it(desk: Desk) -> None:
    """SCH-12a, casebook edt-01 and edt-02: the new slot of a day that was served lies before the edit."""
    monthly = {"unit": "month", "day": 10, "at": "09:00"}
    desk.house.clock.set(datetime(2026, 12, 9, 12, tzinfo=UTC))
    made = await desk.make(monthly)
    desk.house.clock.set(datetime(2026, 12, 10, 9, 0, 1, tzinfo=UTC))
    await desk.house.dispatch()
    await desk.house.idle()
    desk.house.clock.set(datetime(2026, 12, 12, 9, tzinfo=UTC))
    saved = await desk.schedules.edit(made.id, {"cadence": {**monthly, "day": 11}}, "bo")
    assert saved.schedule.next_fire_at == datetime(2027, 1, 11, 9, tzinfo=UTC)
    await desk.house.dispatch()
    assert len(await desk.house.occurrences()) == 1


async def test_moving_a_daily_time_serves_no_day_twice(desk: Desk) -> None:
    """SCH-12a, casebook edt-02."""
    desk.house.clock.set(datetime(2026, 12, 1, tzinfo=UTC))
    made = await desk.make({"unit": "day", "at": "01:15"})
    desk.house.clock.set(datetime(2026, 12, 1, 1, 15, 1, tzinfo=UTC))
    await desk.house.dispatch()
    await desk.house.idle()
    desk.house.clock.set(datetime(2026, 12, 1, 9, tzinfo=UTC))
    saved = await desk.schedules.edit(made.id, {"cadence": {"unit": "day", "at": "02:15"}}, "bo")
    assert saved.schedule.next_fire_at == datetime(2026, 12, 2, 2, 15, tzinfo=UTC)
    await desk.house.dispatch()
    assert len(await desk.house.occurrences()) == 1


async def test_the_next_slot_is_computed_when_it_is_saved(desk: Desk) -> None:
    """SCH-12a, casebook edt-04: it equals the first one of the preview."""
    made = await desk.make({"unit": "month", "every": 12, "day": 1, "at": "00:00"})
    quarter = {"unit": "minute", "every": 15}
    desk.house.clock.advance(61)
    saved = await desk.schedules.edit(made.id, {"cadence": quarter}, "bo")
    ahead = await desk.schedules.next_slots(made.id, 2)
    assert saved.schedule.next_fire_at == ahead[0].at == START + timedelta(minutes=15)


async def test_an_edit_keeps_the_phase(desk: Desk) -> None:
    """CAD-5: the anchor stays, whoever gave it."""
    anchor = "2026-11-24T00:00:00Z"
    made = await desk.make({"unit": "day", "every": 3, "at": "10:00", "anchor": anchor})
    assert made.next_fire_at == datetime(2026, 11, 30, 10, tzinfo=UTC)
    saved = await desk.schedules.edit(made.id, {"cadence": {"unit": "day", "every": 3, "at": "11:00"}}, "bo")
    assert saved.schedule.next_fire_at == datetime(2026, 11, 30, 11, tzinfo=UTC)


async def test_a_due_slot_that_an_edit_overtakes_is_recorded_as_missed(desk: Desk) -> None:
    """SCH-12a and DSP-9 together: it does not fire, and it is accounted for."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3 * 3600 + 5)
    await desk.schedules.edit(made.id, {"query": "new"}, "bo")
    await desk.house.dispatch()
    [record] = await desk.house.occurrences()
    assert (record["disposition"], record["revision"]) == ("missed", 1)
    assert record["nominal_fire_at"] == to_micros(START + 3 * HOUR)
    assert record["coalesced_count"] == 2


async def test_neither_an_edit_nor_a_deletion_goes_under_a_run_in_flight(desk: Desk) -> None:
    """SCH-10, casebook edt-05: 409 that names the run; pausing is allowed and does not touch it."""
    hold = desk.house.runtime.hangs()
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await hold.started.wait()
    run_id = (await desk.house.run())["id"]
    with pytest.raises(RunInFlight) as edit:
        await desk.schedules.edit(made.id, {"query": "new"}, "bo")
    with pytest.raises(RunInFlight) as deletion:
        await desk.schedules.delete(made.id, "bo")
    with pytest.raises(RunInFlight) as again:
        await desk.run_now.run(made.id, "bo")
    assert edit.value.data == deletion.value.data == again.value.data == {"run_id": run_id}
    assert (await desk.schedules.edit(made.id, {"query": "go"}, "bo")).changed is False
    paused = await desk.pausing.pause(made.id, "bo")
    assert paused.in_flight_run_id == run_id
    hold.release("done")
    await desk.house.idle()
    assert (await desk.house.run())["status"] == "succeeded"
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.in_flight_run_id) == (ScheduleStatus.PAUSED, None)


async def test_a_deleted_schedule_is_gone_and_its_ledger_stays(desk: Desk) -> None:
    """SCH-10."""
    made = await desk.make(HOURLY)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await desk.house.idle()
    desk.house.clock.advance(3601)
    await desk.schedules.delete(made.id, "bo")
    assert await desk.house.dispatch() is None
    assert [record["disposition"] for record in await desk.house.occurrences()] == ["fired", "missed"]
    for action in (
        lambda: desk.schedules.get(made.id),
        lambda: desk.schedules.edit(made.id, {}, "bo"),
        lambda: desk.schedules.delete(made.id, "bo"),
        lambda: desk.pausing.pause(made.id, "bo"),
        lambda: desk.pausing.resume(made.id, "bo"),
        lambda: desk.run_now.run(made.id, "bo"),
        lambda: desk.schedules.next_slots(made.id, 1),
        lambda: desk.verdict(made, START),
    ):
        with pytest.raises(Missing):
            await action()
    assert await desk.schedules.page(ScheduleFilter(), "", 10) == []


async def test_a_finished_schedule_comes_back_by_an_edit_that_gives_it_slots(desk: Desk) -> None:
    """SCH-2: another edit leaves it finished."""
    made = await desk.make(HOURLY, max_runs=1)
    desk.house.clock.advance(3601)
    await desk.house.dispatch()
    await desk.house.idle()
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.COMPLETED
    renamed = await desk.schedules.edit(made.id, {"name": "other"}, "bo")
    assert renamed.schedule.status is ScheduleStatus.COMPLETED
    with pytest.raises(Invalid) as caught:
        await desk.schedules.edit(made.id, {"cadence": {"unit": "minute", "every": 30}}, "bo")
    assert faults(caught) == {"max_runs"}
    with pytest.raises(Conflict) as resumed:
        await desk.pausing.resume(made.id, "bo")
    assert resumed.value.code == "schedule_completed"
    revived = await desk.schedules.edit(made.id, {"max_runs": 2}, "bo")
    assert revived.schedule.status is ScheduleStatus.ACTIVE
    assert revived.schedule.next_fire_at == START + 2 * HOUR
    assert revived.schedule.status_detail.by == "bo"


async def test_pages_follow_each_other_and_filters_hold(desk: Desk) -> None:
    made = []
    for number in range(5):
        made.append(await desk.make(HOURLY, name=f"n{number}"))
        desk.house.clock.advance(1)
    await desk.pausing.pause(made[2].id, "ana")
    first = await desk.schedules.page(ScheduleFilter(), "", 3)
    rest = await desk.schedules.page(ScheduleFilter(), first[-1].id, 3)
    assert [s.id for s in first + rest] == [s.id for s in made]
    paused = await desk.schedules.page(ScheduleFilter(status=ScheduleStatus.PAUSED), "", 9)
    assert [s.id for s in paused] == [made[2].id]
    by_slug = await desk.schedules.page(ScheduleFilter(target=AGENT.replace("_", "-"), name="n4"), "", 9)
    assert [s.id for s in by_slug] == [made[4].id]


async def test_a_target_that_is_deleted_disables_its_schedules(desk: Desk) -> None:
    """SCH-12, casebook tar-01: no failing slot; another target or its return does not enable it by itself."""
    made = await desk.make(HOURLY)
    paused = await desk.make(HOURLY, name="paused")
    await desk.pausing.pause(paused.id, "ana")
    target = Target(TargetKind.AGENT, AGENT)

    async def lose(tx: Any) -> int:
        return await disable_of_target(tx, target, "bo")

    await rows(desk.house.database, "UPDATE agents SET deleted_at = 1")
    assert await desk.house.database.write(lose) == 2
    assert await desk.house.database.write(lose) == 0
    stands = await desk.schedules.get(made.id)
    assert (stands.status, stands.next_fire_at) == (ScheduleStatus.DISABLED, None)
    assert stands.status_detail.reason == "its target was deleted"
    desk.house.clock.advance(4 * 3600)
    assert await desk.house.dispatch() is None
    assert await desk.house.rows("SELECT id FROM runs") == []
    with pytest.raises(Conflict) as resumed:
        await desk.pausing.resume(made.id, "bo")
    assert resumed.value.code == "target_gone"
    with pytest.raises(Conflict) as run:
        await desk.run_now.run(made.id, "bo")
    assert run.value.code == "schedule_disabled"
    await rows(desk.house.database, "UPDATE agents SET deleted_at = NULL")
    assert (await desk.schedules.get(made.id)).status is ScheduleStatus.DISABLED
    assert (await desk.pausing.resume(made.id, "bo")).status is ScheduleStatus.ACTIVE


async def test_two_saves_at_once_leave_two_revisions_of_one_line(desk: Desk) -> None:
    """SCH-4: of two edits that knew the same revision one wins."""
    made = await desk.make(HOURLY)
    other = Schedules(database=desk.house.database, mint=desk.house.mint, signal=desk.house.signal)
    answers = await asyncio.gather(
        desk.schedules.edit(made.id, {"query": "a"}, "a", match=at(made.id, 1)),
        other.edit(made.id, {"query": "b"}, "b", match=at(made.id, 1)),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["RevisionStale", "Saved"]


async def test_a_payload_is_stored_whole_or_refused(desk: Desk) -> None:
    """Casebook pay-06 and pay-03."""
    whole = "ä" * 100_000
    made = await desk.make(HOURLY, query=whole)
    assert (await desk.schedules.get(made.id)).definition.query == whole
    desk.house.clock.advance(3_600)
    await desk.house.dispatch()
    await desk.house.idle()
    assert [i.query for i in desk.house.runtime.invocations] == [whole]
    assert (await desk.house.run())["status"] == "succeeded"
    escaped = await desk.make(HOURLY, name="b", query="\\u0000")
    assert (await desk.schedules.get(escaped.id)).definition.query == "\\u0000"
    for query in ("ä" * 100_001, "a\x00b", "\ud800"):
        with pytest.raises(Invalid) as caught:
            await desk.schedules.create(written(HOURLY, query=query), "ana")
        assert faults(caught) == {"query"}


async def test_only_a_slot_that_comes_soon_wakes_the_dispatchers(desk: Desk) -> None:
    """P21: all others are found by the look that every dispatcher makes within its tick (DSP-1)."""
    [longest] = [
        bound.le for bound in Settings.model_fields["tick_seconds"].metadata if isinstance(bound, Le)
    ]
    assert 2 * float(str(longest)) <= FAR_SECONDS
    ear, now = desk.house.signal.ear(News.SLOT), desk.house.clock.now()

    def once(seconds: float) -> dict[str, Any]:
        return {"unit": "once", "at": f"{now + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"}

    hourly = await desk.make(HOURLY)
    assert ear.version == 0
    await desk.make(once(FAR_SECONDS))
    assert ear.version == 1
    await desk.schedules.edit(hourly.id, {"cadence": once(FAR_SECONDS)}, "bo")
    assert ear.version == 2
    await desk.schedules.edit(hourly.id, {"cadence": once(FAR_SECONDS + 1)}, "bo")
    assert ear.version == 2
