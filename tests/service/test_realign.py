"""Next slots computed anew: after the clock was set back, and after the zone data changed (OPS-5a, casebook mis-08, tzd-01)."""

import json
from datetime import datetime, timedelta

import pytest

from gnomon.cadence import zone_data_version
from gnomon.domain.instants import to_micros
from gnomon.services.realign import Realignment
from support.databases import START
from support.desk import a_desk
from support.house import House, a_schedule, an_agent
from support.job_rows import add_job

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
DAILY = {"unit": "day", "at": "12:00"}
ANCHOR = START - timedelta(days=3)
NOON = START + timedelta(hours=3)
HOUR = timedelta(hours=1)


async def next_of(house: House, schedule_id: str) -> datetime | None:
    found = (await house.schedule(schedule_id))["next_fire_at"]
    return None if found is None else START + timedelta(microseconds=found - to_micros(START))


async def test_no_schedule_is_left_out_where_many_have_one_instant_mis_08(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page ends in the middle of those that are due at one instant."""
    monkeypatch.setattr("gnomon.services.realign.BATCH", 2)
    far = START + timedelta(hours=9)
    ids = [
        await a_schedule(
            house.database, HOURLY, next_fire_at=far, anchor=ANCHOR, schedule_id=f"sch_{number:020d}"
        )
        for number in range(5)
    ]
    assert await Realignment(house.database).run() == 5
    assert {await next_of(house, schedule_id) for schedule_id in ids} == {START + HOUR}
    assert len(await house.audit("REALIGN")) == 5


async def test_a_rule_that_breaks_stops_no_other(house: House) -> None:
    """DSP-9a: it is left to the dispatcher, which sets it aside."""
    far = START + timedelta(hours=9)
    await a_schedule(house.database, HOURLY, next_fire_at=far, anchor=ANCHOR, cadence='{"x":1}')
    sid = await a_schedule(
        house.database, HOURLY, next_fire_at=far, anchor=ANCHOR, schedule_id="sch_" + "1" * 20
    )
    assert await Realignment(house.database).run() == 1
    assert await next_of(house, sid) == START + HOUR


async def of_another_version(house: House) -> None:
    """The processes so far had other zone data."""
    await house.rows("UPDATE processes SET zone_data = '2025b'")


@pytest.mark.parametrize("stored", [NOON + HOUR, NOON - HOUR, NOON + timedelta(minutes=30)])
async def test_a_slot_that_the_new_data_moves_fires_at_its_new_instant_tzd_01(
    house: House, stored: datetime
) -> None:
    """OPS-5a, DSP-9: what was stored under the old data is brought to its wall time, and the ledger has it."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, DAILY, next_fire_at=stored, anchor=ANCHOR)
    await of_another_version(house)
    new = await house.neighbour()
    assert await next_of(house, sid) == NOON
    [entry] = await house.audit("REALIGN")
    assert json.loads(entry["detail"]) == {
        "from": to_micros(stored),
        "to": to_micros(NOON),
        "reason": f"zone data {zone_data_version()} after 2025b",
    }
    await new.elapse(3 * 3_600)
    await new.dispatch()
    await new.idle()
    assert [i.nominal_fire_at for i in new.runtime.invocations] == [NOON]
    assert (await a_desk(new).explain.explain(sid, NOON)).verdict.value == "fired"


async def test_a_moved_slot_that_has_passed_meanwhile_is_judged_by_its_grace_tzd_01(house: House) -> None:
    """DSP-7: the program was stopped over the new instant; the slot is late, and not forgotten."""
    await an_agent(house.database)
    sid = await a_schedule(house.database, DAILY, next_fire_at=NOON + HOUR, anchor=ANCHOR)
    await of_another_version(house)
    house.clock.set(NOON + timedelta(minutes=20))
    new = await house.neighbour()
    await new.dispatch()
    await new.idle()
    assert [i.nominal_fire_at for i in new.runtime.invocations] == [NOON]
    assert await next_of(house, sid) == NOON + timedelta(days=1)


async def test_a_slot_that_has_fired_does_not_fire_again_for_its_new_instant_tzd_01(house: House) -> None:
    """OPS-5a: today's noon fired at eleven by the old data; the noon of the new data is the same local slot."""
    await an_agent(house.database)
    early = NOON - HOUR
    sid = await a_schedule(
        house.database,
        DAILY,
        next_fire_at=early + timedelta(days=1),
        anchor=ANCHOR,
        recorded_until=to_micros(early),
    )
    await of_another_version(house)
    house.clock.set(early + timedelta(minutes=10))
    new = await house.neighbour()
    await new.elapse(3_600)
    await new.dispatch()
    assert new.runtime.calls == []
    assert await next_of(house, sid) == NOON + timedelta(days=1)


async def test_a_slot_that_the_ledger_holds_is_not_the_next_one_tzd_01(house: House) -> None:
    """DSP-6: the nearest slot of the new data is on record already; the one after it is next."""
    await an_agent(house.database)
    sid = await a_schedule(
        house.database,
        DAILY,
        next_fire_at=NOON + HOUR,
        anchor=ANCHOR,
        recorded_until=to_micros(NOON),
    )
    await of_another_version(house)
    await house.neighbour()
    assert await next_of(house, sid) == NOON + timedelta(days=1)


async def test_under_the_same_data_nothing_is_computed_anew_tzd_01(house: House) -> None:
    """An instant that is no slot, whoever wrote it, is the dispatcher's affair."""
    sid = await a_schedule(house.database, DAILY, next_fire_at=NOON + HOUR, anchor=ANCHOR)
    await house.neighbour()
    assert await next_of(house, sid) == NOON + HOUR
    assert await house.audit("REALIGN") == []


async def test_a_start_that_died_in_the_middle_begins_anew_tzd_01(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRF-1: a process says which data it has only once the slots are those of that data."""
    sid = await a_schedule(house.database, DAILY, next_fire_at=NOON + HOUR, anchor=ANCHOR)
    await of_another_version(house)

    async def killed(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("gnomon.stores.slots.realign", killed)
        with pytest.raises(RuntimeError):
            await house.neighbour()
    await house.neighbour()
    assert await next_of(house, sid) == NOON


async def test_jobs_are_brought_back_too(house: House) -> None:
    """OPS-5a: after the clock was set back, and to the wall time of other zone data."""
    far = to_micros(START + timedelta(hours=9))
    daily = '{"unit":"day","every":1,"at":["12:00"],"zone":"UTC"}'
    await add_job(house.database, next_fire_at=far, anchor_at=to_micros(ANCHOR))
    await add_job(
        house.database,
        id="job_daily",
        slug="daily",
        cadence=daily,
        unit="day",
        every=1,
        next_fire_at=to_micros(NOON + HOUR),
        anchor_at=to_micros(ANCHOR),
    )
    await add_job(house.database, id="job_off", slug="off", enabled=0)
    await add_job(house.database, id="job_odd", slug="odd", cadence='{"x":1}', next_fire_at=far)
    await of_another_version(house)
    assert await Realignment(house.database).meet_zone_data(zone_data_version()) == 1
    assert await Realignment(house.database).run() == 1
    found = {row["id"]: row["next_fire_at"] for row in await house.rows("SELECT * FROM jobs")}
    assert found == {
        "job_00000000000000000000": to_micros(START + timedelta(minutes=5)),
        "job_daily": to_micros(NOON),
        "job_off": None,
        "job_odd": far,
    }
    assert {entry["subject_kind"] for entry in await house.audit("REALIGN")} == {"job"}
