"""Triggers on every engine: one for each slot, and each step of a push guarded by who has it (JOB-3, JOB-4)."""

from typing import Any

import pytest

from gnomon.domain.trigger import REPEAT_SECONDS, TriggerReason, TriggerStatus
from gnomon.stores import triggers
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from gnomon.stores.triggers import Held
from gnomon.testing.clock import FrozenClock
from support.job_rows import ACKNOWLEDGED, JOB, MINUTE, PUSHED, TRIGGER, add_instance, add_job, add_trigger
from support.rows import AT, SECOND, add_run, execute, one

pytestmark = pytest.mark.anyio
TRG = TRIGGER["id"]
NEW: dict[str, Any] = {
    "id": "trg_1",
    "job_id": JOB["id"],
    "nominal_fire_at": AT,
    "dedup_key": "digest-1",
    "payload": "{}",
    "status": "pending",
    "reason": None,
    "coalesced_first": None,
    "coalesced_last": None,
    "coalesced_count": None,
    "wait_until": AT + MINUTE,
}


async def row(database: Database, trigger_id: str = TRG) -> dict[str, Any]:
    return await one(database, "triggers", id=trigger_id)


async def held(database: Database, trigger_id: str = TRG) -> Held:
    found = await row(database, trigger_id)
    return Held(
        found["id"],
        found["job_id"],
        found["nominal_fire_at"],
        TriggerStatus(found["status"]),
        found["instance_id"],
        found["epoch"] or 0,
        found["pushes"],
    )


async def test_a_slot_gets_one_trigger_and_the_second_is_told(database: Database) -> None:
    """JOB-3, DSP-6: whoever comes second writes nothing."""
    later = {**NEW, "id": "trg_3", "nominal_fire_at": AT + MINUTE}
    assert await database.write(lambda tx: triggers.record(tx, [NEW])) == {"trg_1"}
    again = {**NEW, "id": "trg_2", "dedup_key": "other"}
    assert await database.write(lambda tx: triggers.record(tx, [again, later])) == {"trg_3"}
    found = await database.read(lambda tx: triggers.get(tx, "trg_1"))
    assert found is not None
    assert (found.status, found.dedup_key, found.pushes, found.finished_at) == (
        "pending",
        "digest-1",
        0,
        None,
    )
    assert await database.read(lambda tx: triggers.get(tx, "trg_2")) is None
    with pytest.raises(UniqueViolation):
        await add_trigger(database, id="trg_9", nominal_fire_at=AT)


async def test_a_missed_slot_is_over_when_it_is_recorded_with_what_was_coalesced(database: Database) -> None:
    """DSP-7."""
    missed = {
        **NEW,
        "status": "missed",
        "reason": "missed",
        "payload": None,
        "coalesced_first": AT - 10 * MINUTE,
        "coalesced_last": AT - 5 * MINUTE,
        "coalesced_count": 2,
    }
    await database.write(lambda tx: triggers.record(tx, [missed]))
    (found,) = await database.read(lambda tx: triggers.page(tx, JOB["id"], AT + 1, 10))
    assert found.finished_at is not None
    assert found.coalesced is not None
    assert (found.reason, found.coalesced.count) == (TriggerReason.MISSED, 2)


async def test_pages_go_back_in_time(database: Database) -> None:
    for number in range(3):
        await add_trigger(database, id=f"trg_{number}", nominal_fire_at=AT + number)
    await add_trigger(database, id="trg_x", job_id="job_other")

    async def ids(before: int, **chosen: Any) -> list[str]:
        found = await database.read(lambda tx: triggers.page(tx, JOB["id"], before, 2, **chosen))
        return [trigger.id for trigger in found]

    assert await ids(AT + 9) == ["trg_2", "trg_1"]
    assert await ids(AT + 1) == ["trg_0"]
    assert await ids(AT + 9, status=TriggerStatus.PUSHED) == []


async def test_what_waits_is_walked_in_the_order_of_its_end(database: Database) -> None:
    """JOB-4: those for whom it is soonest too late come first; whoever has an instance, or is over, waits no more."""
    await add_job(database)
    await add_trigger(database, id="trg_1", nominal_fire_at=1, wait_until=AT + 2)
    await add_trigger(database, id="trg_2", nominal_fire_at=2, wait_until=AT + 1)
    await add_trigger(database, id="trg_3", nominal_fire_at=3, wait_until=AT + 1)
    await add_trigger(database, id="trg_4", nominal_fire_at=4, instance_id="ins_pm_a")
    over = {"status": "missed", "reason": "missed", "finished_at": AT, "payload": None}
    await add_trigger(database, id="trg_5", nominal_fire_at=5, **over)
    rows = await database.write(lambda tx: triggers.waiting(tx, 0, "", 10))
    assert [(found["id"], found["role"]) for found in rows] == [
        ("trg_2", "pm"),
        ("trg_3", "pm"),
        ("trg_1", "pm"),
    ]
    rows = await database.write(lambda tx: triggers.waiting(tx, AT + 1, "trg_2", 1))
    assert [found["id"] for found in rows] == ["trg_3"]
    assert await database.read(triggers.next_over) == 1


async def test_something_can_be_done_once_somebody_has_room_or_the_job_is_off(database: Database) -> None:
    """JOB-2, JOB-4."""
    await add_job(database)
    assert not await database.read(triggers.givable)
    assert await database.read(triggers.next_over) is None
    await add_trigger(database)
    assert not await database.read(triggers.givable)
    await add_instance(database, "far", role="dev")
    await add_instance(database, "drains", status="draining")
    await add_instance(database, "by-request", server=None)
    assert not await database.read(lambda tx: triggers.connected(tx, "pm"))
    await add_instance(database, "a", max_in_flight=1)
    assert await database.read(triggers.givable)
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, **PUSHED)
    assert not await database.read(triggers.givable)  # it is full
    assert await database.read(lambda tx: triggers.connected(tx, "pm"))
    await execute(database, "UPDATE jobs SET enabled = 0, next_fire_at = NULL")
    assert await database.read(triggers.givable)


async def test_a_push_of_a_run_takes_room_too(database: Database) -> None:
    """JOB-2."""
    await add_job(database)
    await add_trigger(database)
    await add_instance(database, max_in_flight=1)
    await add_run(database)
    await execute(
        database,
        "INSERT INTO run_pushes (run_id, node, fence, role, status, instance_id, epoch, frame, created_at) "
        "VALUES ('run_1', '', 1, 'pm', 'pushed', 'ins_pm_a', 1, '{}', 0)",
    )
    assert not await database.read(triggers.givable)


async def test_who_waits_gets_one_instance_and_longer_to_be_passed_on(database: Database) -> None:
    """JOB-4: what is taken back later may go to another instance after its grace."""
    await add_trigger(database, reason="no_instance")
    assert await database.write(lambda tx: triggers.give(tx, TRG, "ins_pm_a"))
    assert not await database.write(lambda tx: triggers.give(tx, TRG, "ins_pm_b"))
    found = await row(database)
    assert (found["instance_id"], found["reason"]) == ("ins_pm_a", None)
    assert found["wait_until"] == AT + REPEAT_SECONDS * SECOND
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, wait_until=AT + 3_600 * SECOND)
    await database.write(lambda tx: triggers.give(tx, "trg_2", "ins_pm_a"))
    assert (await row(database, "trg_2"))["wait_until"] == AT + 3_600 * SECOND


async def test_who_waits_is_missed_once_and_for_a_reason(database: Database) -> None:
    """JOB-4."""
    await add_trigger(database)
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, instance_id="ins_pm_a")
    assert await database.write(lambda tx: triggers.miss(tx, TRG, TriggerReason.NO_INSTANCE))
    assert not await database.write(lambda tx: triggers.miss(tx, TRG, TriggerReason.NO_INSTANCE))
    assert not await database.write(lambda tx: triggers.miss(tx, "trg_2", TriggerReason.NO_INSTANCE))
    found = await row(database)
    assert (found["status"], found["reason"], found["payload"]) == ("missed", "no_instance", None)
    assert found["finished_at"] == AT


async def test_a_server_pushes_what_its_own_connections_have(database: Database) -> None:
    """JOB-3: with several servers the one that holds the connection sends it; one that drains gets nothing new."""
    await add_job(database)
    await add_instance(database, "a", epoch=3)
    await add_instance(database, "b", server="prc_2")
    await add_instance(database, "c", status="draining")
    for number, name in enumerate("abc"):
        await add_trigger(
            database, id=f"trg_{name}", nominal_fire_at=AT + number, instance_id=f"ins_pm_{name}"
        )
    await add_trigger(database, id="trg_0", nominal_fire_at=AT + 9, **PUSHED)
    (found,) = await database.read(lambda tx: triggers.to_push(tx, "prc_1", 10))
    assert (found["id"], found["epoch"], found["job"], found["pushes"]) == ("trg_a", 3, "digest", 0)


async def push(database: Database, *, epoch: int = 1, server: str = "prc_1", to: str = "ins_pm_a") -> bool:
    row = {"id": TRG, "instance_id": to, "epoch": epoch, "server": server}
    return TRG in await database.write(lambda tx: triggers.push(tx, [row]))


async def test_a_push_is_made_over_the_present_connection_and_once(database: Database) -> None:
    """JOB-3, JOB-4, C4: never over a connection that a newer one has replaced."""
    await add_instance(database, epoch=2)
    await add_trigger(database, instance_id="ins_pm_a")
    assert not await push(database, epoch=1)
    assert not await push(database, epoch=2, server="prc_2")
    assert not await push(database, epoch=2, to="ins_pm_b")
    assert await push(database, epoch=2)
    assert not await push(database, epoch=2)
    found = await row(database)
    assert (found["status"], found["epoch"], found["pushes"], found["pushed_at"]) == ("pushed", 2, 1, AT)


async def test_whoever_drains_is_pushed_nothing(database: Database) -> None:
    """JOB-5."""
    await add_instance(database, status="draining")
    await add_trigger(database, instance_id="ins_pm_a")
    assert not await push(database)


async def test_who_has_it_acknowledges_it_over_the_present_connection(database: Database) -> None:
    """JOB-4: neither another instance nor an older connection of this one; once."""
    await add_instance(database, epoch=2)
    await add_instance(database, "b")
    await add_trigger(database, **PUSHED)

    async def acknowledge(instance_id: str, epoch: int) -> bool:
        return await database.write(lambda tx: triggers.acknowledge(tx, TRG, instance_id, epoch))

    assert not await acknowledge("ins_pm_b", 1)
    assert not await acknowledge("ins_pm_a", 1)
    assert await acknowledge("ins_pm_a", 2)
    assert not await acknowledge("ins_pm_a", 2)
    found = await row(database)
    assert (found["status"], found["acknowledged_at"], found["epoch"]) == ("acknowledged", AT, 2)


@pytest.mark.parametrize(
    "standing", [PUSHED, {**ACKNOWLEDGED, "lost_after": AT}], ids=["pushed", "acknowledged"]
)
async def test_who_has_it_ends_it_over_the_present_connection(
    database: Database, standing: dict[str, Any]
) -> None:
    """JOB-4: also one that was pushed alone, which says that it came."""
    await add_instance(database, epoch=2)
    await add_instance(database, "b")
    await add_trigger(database, **standing)

    async def finish(instance_id: str, epoch: int) -> bool:
        return await database.write(
            lambda tx: triggers.finish(
                tx, TRG, instance_id, epoch, TriggerStatus.FAILED, TriggerReason.REPORTED, "no disk"
            )
        )

    assert not await finish("ins_pm_b", 1)
    assert not await finish("ins_pm_a", 1)
    assert await finish("ins_pm_a", 2)
    assert not await finish("ins_pm_a", 2)
    found = await row(database)
    assert (found["status"], found["reason"], found["note"]) == ("failed", "reported", "no disk")
    assert (found["finished_at"], found["acknowledged_at"], found["payload"]) == (AT, AT, None)
    assert found["lost_after"] is None


async def test_what_was_pushed_is_taken_back_from_the_connection_that_had_it(database: Database) -> None:
    """JOB-4: it waits again under its own id, and keeps in mind whom it was taken from."""
    await add_trigger(database, **PUSHED)
    was = await held(database)
    newer = Held(was.id, was.job_id, was.nominal_fire_at, was.status, was.instance_id, 2, was.pushes)
    assert not await database.write(lambda tx: triggers.take_back(tx, newer))
    assert await database.write(lambda tx: triggers.take_back(tx, was))
    assert not await database.write(lambda tx: triggers.take_back(tx, was))
    found = await row(database)
    assert (found["status"], found["instance_id"], found["epoch"]) == ("pending", None, None)
    assert (found["taken_from"], found["pushes"], found["dedup_key"]) == ("ins_pm_a", 1, "digest-1")


async def test_what_could_not_be_sent_was_not_pushed(database: Database) -> None:
    await add_trigger(database, **PUSHED)
    was = await held(database)
    assert await database.write(lambda tx: triggers.take_back(tx, was, unsent=True))
    assert (await row(database))["pushes"] == 0


async def test_what_was_acknowledged_meanwhile_is_not_taken_back(database: Database) -> None:
    """JOB-4: twice is worse."""
    await add_instance(database)
    await add_trigger(database, **PUSHED)
    was = await held(database)
    await database.write(lambda tx: triggers.acknowledge(tx, TRG, "ins_pm_a", 1))
    assert not await database.write(lambda tx: triggers.take_back(tx, was))
    assert not await database.write(lambda tx: triggers.lose(tx, was, TriggerReason.NOT_ACKNOWLEDGED))


@pytest.mark.parametrize(
    "state", [PUSHED, {**ACKNOWLEDGED, "lost_after": AT}], ids=["pushed", "acknowledged"]
)
async def test_what_an_instance_has_and_keeps_when_it_comes_back(
    database: Database, state: dict[str, Any]
) -> None:
    """JOB-5: a reconnecting instance is the same instance; that it has it, it has said now."""
    await add_instance(database, epoch=2)
    await add_trigger(database, **state)
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1)
    (found,) = await database.read(lambda tx: triggers.held(tx, "ins_pm_a"))
    assert found == await held(database)

    async def keep(instance_id: str, epoch: int, trigger_id: str = TRG) -> bool:
        return await database.write(lambda tx: triggers.keep(tx, trigger_id, instance_id, epoch))

    assert not await keep("ins_pm_b", 1)
    assert not await keep("ins_pm_a", 1)
    assert not await keep("ins_pm_a", 2, "trg_2")
    assert await keep("ins_pm_a", 2)
    standing = await row(database)
    assert (standing["epoch"], standing["lost_after"], standing["status"]) == (2, None, "acknowledged")
    assert standing["acknowledged_at"] == AT


async def test_how_long_an_instance_may_be_gone_is_never_made_longer(
    database: Database, clock: FrozenClock
) -> None:
    await add_instance(database)
    await add_trigger(database, **ACKNOWLEDGED)
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, **PUSHED)
    was, pushed = await held(database), await held(database, "trg_2")

    async def gone(one: Held, lost_us: int) -> bool:
        return await database.write(lambda tx: triggers.gone(tx, one, lost_us))

    assert await database.write(lambda tx: triggers.keep(tx, TRG, "ins_pm_a", 1, 3_600 * SECOND))
    assert (await row(database))["lost_after"] == AT + 3_600 * SECOND
    assert await gone(was, MINUTE)
    clock.advance(5)
    assert not await gone(was, MINUTE)
    assert not await gone(pushed, MINUTE)
    assert (await row(database))["lost_after"] == AT + MINUTE


async def test_what_is_adrift(database: Database) -> None:
    """JOB-4: whose instance has no connection, or a newer one that had time to say what it still has."""
    states: dict[str, dict[str, Any]] = {
        "well": {},
        "newer": {"epoch": 2, "connected_at": AT - 5 * SECOND},
        "fresh": {"epoch": 2, "connected_at": AT - 5 * SECOND + 1},
        "off": {"status": "offline", "server": None},
        "cut": {"server": None},
        "drains": {"status": "draining"},
    }
    for name, changes in states.items():
        await add_instance(database, name, **changes)
    number = 0
    for name in ("well", "fresh", "newer", "off", "cut", "drains"):
        for status, state in (("given", {}), ("pushed", PUSHED), ("acknowledged", ACKNOWLEDGED)):
            number += 1
            changes = {**state, "instance_id": f"ins_pm_{name}"}
            await add_trigger(database, id=f"{name}-{status}", nominal_fire_at=number, **changes)
    await add_trigger(database, id="waits", nominal_fire_at=99)
    for number, lost_after in enumerate((AT + MINUTE, AT + MINUTE + 1), 97):
        gone = {**ACKNOWLEDGED, "instance_id": "ins_pm_cut", "lost_after": lost_after}
        await add_trigger(database, id=f"known-{number}", nominal_fire_at=number, **gone)
    found = await database.read(lambda tx: triggers.adrift(tx, 5 * SECOND, MINUTE, 99))
    assert {one.id for one in found} == {
        "newer-pushed",
        "newer-acknowledged",
        *(f"off-{status}" for status in ("given", "pushed", "acknowledged")),
        *(f"cut-{status}" for status in ("given", "pushed", "acknowledged")),
        "drains-given",
        "known-98",  # a longer wait was granted before it was gone
    }
    assert len(await database.read(lambda tx: triggers.adrift(tx, 5 * SECOND, MINUTE, 2))) == 2


async def test_what_is_not_acknowledged_yet_and_for_how_long(database: Database, clock: FrozenClock) -> None:
    """Casebook ws-03."""
    await add_instance(database)
    await add_instance(database, "b", server="prc_2")
    await add_trigger(database, **PUSHED)
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, **{**PUSHED, "instance_id": "ins_pm_b"})
    await add_trigger(database, id="trg_3", nominal_fire_at=AT + 2, **ACKNOWLEDGED)
    clock.advance(10)
    ((found, age_us),) = await database.read(lambda tx: triggers.unacknowledged(tx, "prc_1", 10))
    assert (found.id, age_us) == (TRG, 10 * SECOND)


async def test_what_is_given_up_after_a_while(database: Database, clock: FrozenClock) -> None:
    """JOB-4: nothing right after a clock jump (RUN-5b)."""
    await add_trigger(database, **{**ACKNOWLEDGED, "lost_after": AT + 120 * SECOND})
    await add_trigger(database, id="trg_2", nominal_fire_at=AT + 1, **ACKNOWLEDGED)
    clock.advance(119)
    assert await database.read(lambda tx: triggers.forlorn(tx, 120 * SECOND, None, 10)) == []
    clock.advance(1)
    assert await database.read(lambda tx: triggers.forlorn(tx, 120 * SECOND, 60 * SECOND, 10)) == []
    (found,) = await database.read(lambda tx: triggers.forlorn(tx, 120 * SECOND, 121 * SECOND, 10))
    assert await database.write(lambda tx: triggers.lose(tx, found, TriggerReason.INSTANCE_LOST))
    assert not await database.write(lambda tx: triggers.lose(tx, found, TriggerReason.INSTANCE_LOST))
    standing = await row(database)
    assert (standing["status"], standing["reason"], standing["lost_after"]) == (
        "failed",
        "instance_lost",
        None,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "pushed"},
        {**PUSHED, "epoch": None},
        {**PUSHED, "instance_id": None},
        {**PUSHED, "pushes": 0},
        {**ACKNOWLEDGED, "acknowledged_at": None},
        {"status": "succeeded"},
        {"finished_at": AT},
        {"status": "missed", "finished_at": AT},
        {"status": "missed", "finished_at": AT, "reason": "missed", "instance_id": "ins_1"},
        {"status": "failed", "finished_at": AT},
        {"status": "gone"},
        {"payload": None},
        {**PUSHED, "lost_after": AT},
        {"coalesced_count": 1},
        {"coalesced_first": AT - 1, "coalesced_last": AT, "coalesced_count": 2},
        {"coalesced_first": AT - 1, "coalesced_last": AT - 2, "coalesced_count": 2},
        {"dedup_key": ""},
        {"note": "x" * 10_001},
    ],
    ids=str,
)
async def test_the_schema_refuses_what_can_t_be(database: Database, changes: dict[str, Any]) -> None:
    """JOB-3."""
    with pytest.raises(CheckViolation):
        await add_trigger(database, **changes)
