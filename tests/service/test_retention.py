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


async def test_a_schedule_whose_history_is_gone_does_not_fire_again(house: House) -> None:
    """dbl-17: where it stands is on the schedule and in the ledger, not in the history."""
    sid = await days_of_runs(house, 3)
    house.clock.advance(2_000 * 86_400)
    await house.rows("UPDATE schedules SET next_fire_at = :at", at=to_micros(START + timedelta(days=3)))
    await Retention(house.database, Keep(history_days=1, ledger_days=2, audit_days=2)).clean()
    assert await house.rows("SELECT * FROM runs") == []
    kept = await house.occurrences()
    assert [row["nominal_fire_at"] for row in kept] == [
        to_micros(START + timedelta(days=1)),
        to_micros(START + timedelta(days=2)),
    ], "the two newest slots stay, whatever their age"
    calls = len(house.runtime.calls)
    await house.rows("UPDATE schedules SET next_fire_at = :at WHERE id = :id", at=to_micros(START), id=sid)
    await house.dispatch()
    await house.idle()
    assert len(house.runtime.calls) <= calls + 1
    slots = [i.nominal_fire_at for i in house.runtime.invocations]
    assert len(slots) == len(set(slots))


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
