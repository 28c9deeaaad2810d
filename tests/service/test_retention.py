"""RUN-11, DSP-9a: history, ledger and audit each go at their own age, in batches, and nothing fires again."""

from datetime import timedelta

import pytest

from gnomon.domain.instants import to_micros
from gnomon.services.retention import DAY, Keep, Retention
from support.databases import START
from support.house import House, a_schedule, an_agent
from support.job_world import Server

pytestmark = pytest.mark.anyio
DAILY = {"unit": "day", "at": "09:00"}


async def days_of_runs(house: House, days: int) -> str:
    await an_agent(house.database)
    sid = await a_schedule(house.database, DAILY, next_fire_at=START, anchor=START - timedelta(days=1))
    for _ in range(days):
        await house.dispatch()
        await house.idle()
        house.clock.advance(86_400)
    return sid


async def test_history_goes_and_the_ledger_stays(house: House) -> None:
    await days_of_runs(house, 10)
    gone = await Retention(house.database, Keep(history_days=4, ledger_days=400, audit_days=400)).clean()
    assert gone == 6
    assert len(await house.rows("SELECT * FROM runs")) == 4
    assert len(await house.occurrences()) == 10


async def test_the_two_newest_slots_stay_whatever_their_age(house: House) -> None:
    """dbl-17: the ledger never forgets where a schedule stands."""
    await days_of_runs(house, 3)
    house.clock.advance(2_000 * 86_400)
    await Retention(house.database, Keep(history_days=1, ledger_days=2, audit_days=2)).clean()
    assert await house.rows("SELECT * FROM runs") == []
    kept = [row["nominal_fire_at"] for row in await house.occurrences()]
    assert kept == [to_micros(START + timedelta(days=number)) for number in (1, 2)]


_SET_BACK = {
    "schedule": (),
    "mark": ("DELETE FROM occurrences", "UPDATE schedules SET next_fire_at = :at"),
    "ledger": ("UPDATE schedules SET next_fire_at = :at, recorded_until = NULL",),
}


@pytest.mark.parametrize("kept_by", _SET_BACK)
async def test_a_schedule_whose_history_is_gone_does_not_fire_again(house: House, kept_by: str) -> None:
    """dbl-17: where it stands is on the schedule twice and in the ledger, not in the history.

    Each of the three is enough: the other two are set back by hand, and the slot lies within its grace.
    """
    await an_agent(house.database)
    monthly = {"unit": "month", "day": 29, "at": "09:00"}
    sid = await a_schedule(
        house.database,
        monthly,
        next_fire_at=START,
        anchor=START - timedelta(days=40),
        misfire_grace_seconds=86_400,
    )
    await house.dispatch()
    await house.idle()
    await house.elapse(600)
    await Retention(house.database, Keep(history_days=0, ledger_days=0, audit_days=0)).clean()
    assert await house.rows("SELECT * FROM runs") == []
    for statement in _SET_BACK[kept_by]:
        await house.rows(statement, **({"at": to_micros(START)} if ":at" in statement else {}))
    for _ in range(3):
        await house.dispatch()
        await house.idle()
        await house.elapse(30)
    assert [i.nominal_fire_at for i in house.runtime.invocations] == [START]
    schedule = await house.schedule(sid)
    assert (schedule["status"], schedule["run_count"]) == ("active", 1)
    assert schedule["next_fire_at"] == to_micros(START + timedelta(days=30))


async def test_the_audit_goes_at_its_own_age_and_only_then(house: House) -> None:
    """SEC-7: before the floor has risen nobody can delete an entry."""
    await days_of_runs(house, 6)
    await Retention(house.database, Keep(history_days=1, ledger_days=400, audit_days=3)).clean()
    oldest = (await house.rows("SELECT min(at) AS at FROM audit_entries"))[0]["at"]
    assert oldest >= house.clock.micros() - 3 * DAY
    with pytest.raises(Exception, match="append-only"):
        await house.rows("DELETE FROM audit")


async def test_a_run_in_flight_is_never_cleaned(house: House) -> None:
    hold = house.runtime.hangs()
    await an_agent(house.database)
    await a_schedule(
        house.database, DAILY, next_fire_at=START, anchor=START - timedelta(days=1), timeout_seconds=86_400
    )
    await house.dispatch()
    await hold.started.wait()
    house.clock.advance(400 * 86_400)
    await Retention(house.database, Keep(history_days=1, ledger_days=400, audit_days=400)).clean()
    assert len(await house.rows("SELECT * FROM runs")) == 1
    hold.release()


async def test_a_round_is_one_in_many_sweeps(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    retention = Retention(house.database, Keep())
    rounds = 0

    async def clean() -> int:
        nonlocal rounds
        rounds += 1
        return 0

    monkeypatch.setattr(retention, "clean", clean)
    for _ in range(120):
        await retention.tick()
    assert rounds == 2


async def test_a_clock_that_jumped_costs_no_history(house: House) -> None:
    """RUN-5b: two years ahead for an hour; what is deleted then would be gone for good."""
    await days_of_runs(house, 3)
    guard = house.engine.guard
    retention = Retention(house.database, Keep(history_days=1), guard.calm_us)
    guard.observe(house.clock.micros())
    house.clock.jump(800 * 86_400)
    guard.observe(house.clock.micros())
    for _ in range(120):
        await retention.tick()
    assert len(await house.rows("SELECT * FROM runs")) == 3
    house.clock.advance(90_000)
    for _ in range(60):
        await retention.tick()
    assert await house.rows("SELECT * FROM runs") == []


async def test_triggers_go_with_the_history_and_no_slot_gets_another(house: House) -> None:
    """RUN-11, dbl-17: where a job stands is kept on the job."""
    server = await Server(house.database, house.clock, house.mint).open()
    worker = await server.connect()
    await server.job(cadence={"unit": "day", "at": "09:00"})
    for _ in range(3):
        house.clock.advance(86_400)
        await server.tick()
        await worker.finish()
    house.clock.advance(10 * 86_400)
    await Retention(house.database, Keep(history_days=1, ledger_days=400, audit_days=400)).clean()
    assert await server.triggers() == []
    await house.rows("UPDATE jobs SET next_fire_at = :at", at=to_micros(START + timedelta(days=2)))
    await server.tick()
    (found,) = await server.triggers()
    assert found["nominal_fire_at"] == to_micros(START + timedelta(days=13))
    assert found["coalesced_first"] == to_micros(START + timedelta(days=4))
