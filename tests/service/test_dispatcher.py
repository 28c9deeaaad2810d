"""A slot comes due: what one tick writes, and what it never does twice (DSP-3, DSP-5 to DSP-9, SCH-5, SCH-9)."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import to_micros
from gnomon.services.dispatcher import ABREAST, BATCH, batch_for
from gnomon.stores import audit
from support.databases import START
from support.house import House, a_schedule, an_agent, rows

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
EVERY_FIVE = {"unit": "minute", "every": 5}


async def hourly_ones(house: House, count: int) -> None:
    """So many schedules of which a slot is due."""
    for index in range(count):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=f"sch_{index:020d}",
        )


async def test_a_due_slot_is_recorded_run_and_closed(house: House) -> None:
    """DSP-5."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    house.clock.advance(0.5)
    wait = await house.dispatch()
    await house.idle()

    [occurrence] = await house.occurrences()
    run, schedule = await house.run(), await house.schedule(sid)
    assert (occurrence["disposition"], occurrence["nominal_fire_at"]) == ("fired", to_micros(START))
    assert (occurrence["run_id"], occurrence["session_id"]) == (run["id"], "ses_" + run["id"][4:])
    assert (run["status"], run["trigger_kind"], run["fence"], run["attempt"]) == (
        "succeeded",
        "schedule",
        1,
        1,
    )
    assert schedule["next_fire_at"] == to_micros(START + timedelta(hours=1))
    assert schedule["unfinished_run_id"] is None
    assert schedule["run_count"] == 1
    assert wait == pytest.approx(3599.5)
    assert (run["query"], run["output"]) == ("do it", "ok")
    [claim], [release] = await house.audit("CLAIM"), await house.audit("RELEASE")
    assert claim["subject_id"] == release["subject_id"] == run["id"]
    assert claim["fence"] == release["fence"] == 1
    [invocation] = house.runtime.invocations
    assert invocation.idempotency_key == run["id"]
    assert invocation.fence == 1
    assert invocation.nominal_fire_at == START


async def test_nothing_fires_before_its_instant(house: House) -> None:
    await an_agent(house.database)
    await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START + timedelta(microseconds=1),
        anchor=START - timedelta(hours=5),
    )
    assert await house.dispatch() == pytest.approx(0.000001)
    assert await house.occurrences() == []


async def test_a_second_tick_records_nothing_more(house: House) -> None:
    """DSP-6."""
    await an_agent(house.database)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    await house.dispatch()
    await house.idle()
    assert len(await house.occurrences()) == 1
    assert len(house.runtime.calls) == 1


async def test_a_slot_that_the_ledger_holds_never_runs_again(house: House) -> None:
    """DSP-6.

    The unique key is the boundary: even a schedule set back by hand can't make its slot fire twice (dbl-17).
    """
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    await house.idle()
    await house.rows("DELETE FROM runs")
    await house.rows(
        "UPDATE schedules SET next_fire_at = :at, recorded_until = NULL WHERE id = :id",
        at=to_micros(START),
        id=sid,
    )
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 1
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START + timedelta(hours=1))
    assert (await house.schedule(sid))["run_count"] == 1
    assert await house.rows("SELECT * FROM runs") == []


async def test_a_crash_inside_the_transaction_leaves_none_of_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSP-5, casebook dbl-04: were the claim and the record two transactions, one of them would be left here."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))

    async def broken(*_: object) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(audit, "append_many", broken)
        with pytest.raises(Unavailable):
            await house.dispatch()
    for table in ("occurrences", "runs", "audit"):
        assert await house.rows(f"SELECT * FROM {table}") == [], table
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START)
    assert house.engine.runner.places == house.pace.concurrency, "the reserved places came back"
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 1


async def test_older_missed_slots_coalesce_into_one_record(house: House) -> None:
    """DSP-7."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, EVERY_FIVE, next_fire_at=START, anchor=START - timedelta(hours=1))
    house.clock.advance(26 * 3600 + 60)
    await house.dispatch()
    await house.idle()
    [occurrence] = await house.occurrences()
    newest = START + timedelta(hours=26)
    assert occurrence["nominal_fire_at"] == to_micros(newest)
    assert occurrence["disposition"] == "fired"
    assert occurrence["coalesced_first"] == to_micros(START)
    assert occurrence["coalesced_last"] == to_micros(newest - timedelta(minutes=5))
    assert occurrence["coalesced_count"] == 26 * 12
    assert len(house.runtime.calls) == 1
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(newest + timedelta(minutes=5))


@pytest.mark.parametrize(("catch_up", "disposition"), [("latest", "fired"), ("none", "missed")])
async def test_a_late_slot_fires_as_its_policy_says(house: House, catch_up: str, disposition: str) -> None:
    """DSP-7. mis-20: the policy that is stored is the one that decides, five minutes late and inside the grace."""
    await an_agent(house.database)
    await a_schedule(
        house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5), catch_up=catch_up
    )
    house.clock.advance(300)
    await house.dispatch()
    await house.idle()
    [occurrence] = await house.occurrences()
    assert occurrence["disposition"] == disposition
    assert len(house.runtime.calls) == (disposition == "fired")


async def test_a_slot_past_its_grace_is_missed(house: House) -> None:
    """DSP-7. mis-22: late by g-1 s runs, by g+1 s does not; SCH-9: it counts to nothing."""
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        misfire_grace_seconds=120,
    )
    house.clock.advance(121)
    await house.dispatch()
    [occurrence] = await house.occurrences()
    assert (occurrence["disposition"], occurrence["reason"]) == ("missed", "missed")
    schedule = await house.schedule(sid)
    assert (schedule["run_count"], schedule["failure_streak"]) == (0, 0)
    assert house.runtime.calls == []
    [skip] = await house.audit("SKIP")
    assert json.loads(skip["detail"])["reason"] == "missed"

    house.clock.advance(3600 - 2)
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) == 1


async def test_an_overlapping_slot_is_skipped_and_does_not_come_back(house: House) -> None:
    """DSP-8. ovl-03, int-07: the slot is closed at its tick; when the run ends later nothing fires for it."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(
        house.database,
        EVERY_FIVE,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        timeout_seconds=3600,
    )
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(300)
    await house.dispatch()
    hold.release("done")
    await house.idle()
    await house.dispatch()
    first, second = await house.occurrences()
    assert first["disposition"] == "fired"
    assert (second["disposition"], second["reason"], second["run_id"]) == ("skipped", "already_running", None)
    assert len(house.runtime.calls) == 1


async def test_queue_one_waits_for_the_run_in_flight(house: House) -> None:
    """DSP-8."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        EVERY_FIVE,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        timeout_seconds=3600,
        overlap="queue_one",
    )
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(300)
    await house.dispatch()
    await house.claim()
    assert len(house.runtime.calls) == 1, "the second waits"
    await house.elapse(300)
    await house.dispatch()
    assert [o["disposition"] for o in await house.occurrences()] == ["fired", "fired", "skipped"]
    hold.release("done")
    await house.idle()
    await house.claim()
    await house.idle()
    assert [i.fence for i in house.runtime.invocations] == [1, 2]
    assert (await house.schedule(sid))["unfinished_run_id"] is None
    assert {r["status"] for r in await house.rows("SELECT status FROM runs")} == {"succeeded"}


async def test_whoever_waited_is_not_left_to_the_next_look(house: House) -> None:
    """DSP-8: the end of the run in flight rings for the one that waits for it."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(
        house.database,
        EVERY_FIVE,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        timeout_seconds=3600,
        overlap="queue_one",
    )
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(300)
    await house.dispatch()
    before = house.signal.version
    hold.release("done")
    await house.idle()
    assert house.signal.version > before
    await house.claim()
    await house.idle()
    assert {r["status"] for r in await house.rows("SELECT status FROM runs")} == {"succeeded"}


async def test_an_end_that_nobody_can_wait_for_is_silent_and_touches_no_schedule(house: House) -> None:
    """RUN-3: the lock is off by itself."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    await hold.started.wait()
    before, silent = await house.rows("SELECT * FROM schedules"), house.signal.version
    assert (await house.schedule(sid))["unfinished_run_id"] == (await house.run())["id"]
    hold.release("done")
    await house.idle()
    assert await house.rows("SELECT * FROM schedules") == before
    assert house.signal.version == silent
    assert (await house.schedule(sid))["unfinished_run_id"] is None


async def test_ends_of_both_kinds_are_written_together(house: House) -> None:
    """RUN-3, DSP-8: one tells its schedule, the other has nothing to tell."""
    await an_agent(house.database)
    for number, overlap in enumerate(("skip", "queue_one", "skip")):
        await a_schedule(
            house.database,
            HOURLY,
            next_fire_at=START,
            anchor=START - timedelta(hours=5),
            schedule_id=make_id(Kind.SCHEDULE, number, number),
            overlap=overlap,
        )
    await house.dispatch()
    await house.idle()
    assert house.engine.closing.ended == {"succeeded": 3}
    assert len(await house.audit("RELEASE")) == 3
    found = await house.rows(
        "SELECT overlap, in_flight_run_id IS NULL AS told FROM schedules ORDER BY overlap"
    )
    assert [(row["overlap"], bool(row["told"])) for row in found] == [
        ("queue_one", True),
        ("skip", False),
        ("skip", False),
    ]


async def test_cancel_running_stops_the_old_run_first(house: House) -> None:
    """DSP-8."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(
        house.database,
        EVERY_FIVE,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        timeout_seconds=3600,
        overlap="cancel_running",
    )
    await house.dispatch()
    await hold.started.wait()
    await house.elapse(300)
    await house.dispatch()
    await house.claim()
    await house.idle()
    await house.claim()
    await house.idle()
    statuses = [row["status"] for row in await house.rows("SELECT status FROM runs ORDER BY id")]
    assert statuses == ["cancelled", "succeeded"]
    assert hold.cancelled.is_set()


async def test_allow_runs_side_by_side_and_the_lock_stays_until_the_last(house: House) -> None:
    """DSP-8."""
    first, second = house.runtime.hangs(), house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        EVERY_FIVE,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        timeout_seconds=3600,
        overlap="allow",
    )
    await house.dispatch()
    await first.started.wait()
    await house.elapse(300)
    await house.dispatch()
    await second.started.wait()
    second.release()
    await house.until(lambda: house.engine.runner.in_work == 1)
    assert (await house.schedule(sid))["unfinished_run_id"] == (await house.run(0))["id"]
    first.release()
    await house.idle()
    assert (await house.schedule(sid))["unfinished_run_id"] is None


async def test_the_last_of_max_runs_completes_the_schedule(house: House) -> None:
    """SCH-5."""
    await an_agent(house.database)
    sid = await a_schedule(
        house.database, EVERY_FIVE, next_fire_at=START, anchor=START - timedelta(hours=5), max_runs=2
    )
    await house.dispatch()
    await house.idle()
    await house.elapse(300)
    await house.dispatch()
    await house.idle()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["next_fire_at"], schedule["run_count"]) == ("completed", None, 2)
    assert schedule["status_reason"] == "max_runs reached"
    await house.elapse(300)
    assert await house.dispatch() is None
    assert len(house.runtime.calls) == 2


async def test_a_one_time_schedule_fires_once_and_is_completed(house: House) -> None:
    await an_agent(house.database)
    once = {"unit": "once", "at": "2026-11-29T10:00:00", "zone": "Europe/Berlin"}
    sid = await a_schedule(house.database, once, next_fire_at=START, anchor=START)
    await house.dispatch()
    await house.idle()
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["run_count"]) == ("completed", 1)
    assert len(house.runtime.calls) == 1


async def test_a_window_that_opens_later_realigns_from_its_start(house: House) -> None:
    """SCH-5."""
    opens = START + timedelta(hours=2, minutes=3)
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START,
        anchor=START - timedelta(hours=5),
        starts_at=to_micros(opens),
    )
    await house.dispatch()
    assert await house.occurrences() == []
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START + timedelta(hours=3))


async def test_a_slot_behind_the_window_is_recorded_and_ends_the_schedule_win_10(house: House) -> None:
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START + timedelta(hours=1),
        anchor=START - timedelta(hours=5),
        ends_at=to_micros(START),
    )
    house.clock.advance(3700)
    await house.dispatch()
    [occurrence] = await house.occurrences()
    assert (occurrence["disposition"], occurrence["reason"]) == ("skipped", "outside_window")
    assert (await house.schedule(sid))["status"] == "completed"
    assert house.runtime.calls == []


async def test_a_deleted_target_disables_the_schedule(house: House) -> None:
    """SCH-12. tar-01: no failed run for each slot for ever; the slot itself is on record."""
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    [occurrence] = await house.occurrences()
    schedule = await house.schedule(sid)
    assert (occurrence["disposition"], occurrence["reason"]) == ("skipped", "target_gone")
    assert (schedule["status"], schedule["next_fire_at"]) == ("disabled", None)
    assert await house.rows("SELECT * FROM runs") == []


async def test_an_agent_that_is_switched_off_is_a_skip(house: House) -> None:
    """RUN-2."""
    await an_agent(house.database, enabled=0)
    sid = await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    [occurrence] = await house.occurrences()
    assert (occurrence["disposition"], occurrence["reason"]) == ("skipped", "target_invalid")
    assert (await house.schedule(sid))["status"] == "active"


async def test_a_rule_that_breaks_is_set_aside_and_stops_no_other(house: House) -> None:
    """DSP-9a. mis-17: status error with the text, no made-up instant; the healthy schedule fires."""
    await an_agent(house.database)
    bad = await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=START,
        anchor=START,
        schedule_id="sch_" + "1" * 20,
        cadence='{"x":1}',
    )
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5))
    await house.dispatch()
    await house.idle()
    schedule = await house.schedule(bad)
    assert (schedule["status"], schedule["next_fire_at"]) == ("error", None)
    assert "not a stored cadence" in schedule["last_error"]
    assert len(await house.audit("SET_ASIDE")) == 1
    assert len(house.runtime.calls) == 1


async def test_a_stored_instant_that_is_no_slot_realigns_mis_16(house: House) -> None:
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        HOURLY,
        next_fire_at=datetime(1970, 1, 1, tzinfo=UTC),
        anchor=START - timedelta(hours=5),
        recorded_until=to_micros(START),
    )
    house.clock.advance(60)
    for _ in range(3):
        await house.dispatch()
    assert await house.occurrences() == []
    assert (await house.schedule(sid))["next_fire_at"] == to_micros(START + timedelta(hours=1))


async def test_placeholders_are_resolved_against_the_slot(house: House) -> None:
    """SCH-6, IDM-1: in the query and in the dedup key alike."""
    await an_agent(house.database)
    await a_schedule(
        house.database,
        {"unit": "day", "at": "00:30", "zone": "Asia/Tokyo"},
        next_fire_at=datetime(2026, 11, 28, 15, 30, tzinfo=UTC),
        anchor=START - timedelta(days=9),
        query="{{date}} {{now}} {{runCount}} [{{lastRunAt}}]",
        dedup_key="report-{{date}}",
        misfire_grace_seconds=86_400,
        last_fire_at=to_micros(datetime(2026, 11, 27, 15, 30, tzinfo=UTC)),
        run_count=7,
    )
    await house.dispatch()
    await house.idle()
    [invocation] = house.runtime.invocations
    assert invocation.query == "2026-11-29 2026-11-28T15:30:00Z 7 [2026-11-27T15:30:00Z]"
    assert invocation.dedup_key == "report-2026-11-29"


async def test_jitter_delays_the_run_and_never_moves_the_slot(house: House) -> None:
    """CAD-10."""
    await an_agent(house.database)
    await a_schedule(
        house.database, HOURLY, next_fire_at=START, anchor=START - timedelta(hours=5), jitter_seconds=600
    )
    await house.dispatch()
    [occurrence], run = await house.occurrences(), await house.run()
    assert occurrence["nominal_fire_at"] == to_micros(START)
    assert run["status"] == "queued"
    assert 0 < run["scheduled_for"] - to_micros(START) <= 600_000_000
    house.clock.advance(601)
    await house.claim()
    await house.idle()
    assert (await house.run())["status"] == "succeeded"


async def test_a_full_runner_leaves_the_rest_to_the_queue(house: House) -> None:
    """RUN-1."""
    holds = [house.runtime.hangs() for _ in range(10)]
    await an_agent(house.database)
    await hourly_ones(house, 13)
    await house.dispatch()
    await house.until(lambda: all(hold.started.is_set() for hold in holds))
    queued = await house.rows("SELECT id FROM runs WHERE status = 'queued'")
    assert len(await house.occurrences()) == 13, "every slot is on record at once"
    assert len(queued) == 3
    for hold in holds:
        hold.release()
    await house.idle()
    await house.claim()
    await house.idle()
    assert len(house.runtime.calls) == 13


async def test_two_dispatchers_on_one_file_record_each_slot_once(house: House) -> None:
    """DSP-3."""
    await an_agent(house.database)
    await hourly_ones(house, 50)
    other = await house.neighbour()
    for one in (house, other, house, other):
        await one.dispatch()
    await house.idle()
    await other.idle()
    for _ in range(5):
        await other.claim()
        await other.idle()
    keys = [i.idempotency_key for i in house.runtime.invocations + other.runtime.invocations]
    assert len(keys) == len(set(keys)) == 50
    assert len(await house.occurrences()) == 50
    assert len(await rows(house.database, "SELECT * FROM runs WHERE status = 'succeeded'")) == 50


@pytest.mark.parametrize("places", [1, 100, 399, 400, 1_000])
def test_batches_on_their_way_fill_the_places_and_no_more(places: int) -> None:
    """RUN-1: what finds no place goes through the queue; with few places a batch is of its common size."""
    batch = batch_for(places)
    assert batch == BATCH or BATCH < batch <= places / ABREAST
    assert batch_for(10**6) == batch_for(1_000), "the most that may be set"


async def test_many_places_take_large_batches(house: House) -> None:
    """DSP-3, RUN-1: every slot once, and none through the queue."""
    await an_agent(house.database)
    await hourly_ones(house, 450)
    large = await house.neighbour(pace=replace(house.pace, concurrency=1_000))
    holds = [large.runtime.hangs() for _ in range(450)]
    await large.dispatch()
    claims = await house.rows("SELECT count(*) AS runs FROM runs WHERE status = 'running' GROUP BY claim_id")
    assert sorted(row["runs"] for row in claims) == [50, 200, 200]
    for hold in holds:
        hold.release()
    await large.idle()
    keys = {each.idempotency_key for each in large.runtime.invocations}
    assert len(keys) == len(large.runtime.invocations) == len(await house.occurrences()) == 450
    assert len(await house.rows("SELECT id FROM runs WHERE status = 'succeeded' AND attempt = 1")) == 450
    assert len(await house.audit("CLAIM")) == len(await house.audit("RELEASE")) == 450
