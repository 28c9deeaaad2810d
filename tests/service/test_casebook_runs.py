"""Runs that other systems lost, doubled or left locked: long ones, waiting ones, stopped ones, broken ones."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gnomon.domain.instants import to_micros
from gnomon.services import ending, invoking
from gnomon.services.engine import Pace
from gnomon.stores import audit, processes, runs
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio
HOURLY = {"unit": "hour", "every": 1}
ANCHOR = START - timedelta(hours=5)


async def a_due_schedule(house: House, rule: dict[str, Any] = HOURLY, **changes: Any) -> str:
    await an_agent(house.database)
    return await a_schedule(house.database, rule, next_fire_at=house.clock.now(), anchor=ANCHOR, **changes)


async def statuses(house: House) -> list[str]:
    return [row["status"] for row in await house.rows("SELECT status FROM runs ORDER BY id")]


async def test_three_hours_of_work_are_never_taken_away_lea_01(house: House) -> None:
    """DSP-4, RUN-4: the lease covers the envelope, the heartbeat keeps it, and a neighbour claims nothing."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=3 * 3_600 + 60)
    other = await house.neighbour()
    await house.dispatch()
    await hold.started.wait()
    assert (await house.run())["lease_until"] == house.clock.micros() + (3 * 3_600 + 90) * 1_000_000
    for _ in range(3 * 60):
        house.clock.advance(60)
        await house.beat()
        await other.claim()
        await other.engine.watchdog.sweep()
    hold.release("done")
    await house.idle()
    run = await house.run()
    assert (run["status"], run["fence"], run["attempt"]) == ("succeeded", 1, 1)
    assert other.runtime.calls == []


async def test_a_lease_that_is_too_short_for_the_work_is_kept_by_the_heartbeat_lea_01(house: House) -> None:
    """RUN-4: worked out as three attempts of twenty minutes, for three hours of work."""
    front, other = await house.neighbour(work=False), await house.neighbour(seed=7)
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=3 * 3_600 + 60)
    await front.dispatch()
    await house.rows("UPDATE runs SET lease_seconds = 3600")
    await house.claim()
    await hold.started.wait()
    assert (await house.run())["lease_until"] == house.clock.micros() + 3_600_000_000
    for _ in range(3 * 60):
        house.clock.advance(60)
        await house.beat()
        await other.claim()
        await other.engine.watchdog.sweep()
    hold.release("done")
    await house.idle()
    run = await house.run()
    assert (run["status"], run["fence"], run["attempt"]) == ("succeeded", 1, 1)
    assert other.runtime.calls == []


async def test_waiting_for_a_place_uses_up_no_lease_lea_02(house: House) -> None:
    """RUN-1, RUN-4: forty minutes in the queue behind another run; claimed once, with its whole lease."""
    small = await house.neighbour(pace=Pace(concurrency=1))
    hold = small.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=3_600)
    await a_schedule(house.database, HOURLY, next_fire_at=START, anchor=ANCHOR, schedule_id="sch_" + "1" * 20)
    await small.dispatch()
    await hold.started.wait()
    for _ in range(40):
        await small.elapse(60)
        await small.claim()
        await small.engine.watchdog.sweep()
    [waiting] = await house.rows("SELECT * FROM runs WHERE status = 'queued'")
    assert (waiting["lease_until"], waiting["fence"]) == (None, 0)
    second = small.runtime.hangs()
    hold.release("done")
    await small.idle()
    await small.claim()
    await second.started.wait()
    [run] = await house.rows("SELECT * FROM runs WHERE id = :id", id=waiting["id"])
    assert run["lease_until"] == small.clock.micros() + 330_000_000
    second.release("done")
    await small.idle()
    assert await statuses(house) == ["succeeded", "succeeded"]
    assert len(small.runtime.calls) == 2


@pytest.mark.parametrize("longest", [1, 3_600], ids=["lease", "heartbeat"])
async def test_a_killed_process_blocks_its_schedule_no_longer_than_this_lea_13(
    house: House, longest: int
) -> None:
    """RUN-7, casebook lea-16: min(lease, heartbeat timeout) and one sweep; the slot after that fires."""
    hold = house.runtime.hangs()
    sid = await a_due_schedule(house, {"unit": "minute", "every": 5}, timeout_seconds=longest)
    other = await house.neighbour()
    await house.dispatch()
    await hold.started.wait()
    bound, waited = min(longest + 30, house.pace.heartbeat_timeout_seconds) + 60, 0
    while (await house.run())["status"] == "running":
        await other.elapse(60)
        waited += 60
        await other.engine.watchdog.sweep()
    assert waited <= bound
    assert (await house.schedule(sid))["unfinished_run_id"] is None
    while not other.runtime.calls:
        await other.elapse(60)
        await other.dispatch()
        waited += 60
    await other.idle()
    assert waited <= 300, "no slot was left out"
    assert await statuses(house) == ["lost", "succeeded"]


async def test_a_stop_in_the_middle_of_an_hour_s_work_frees_the_schedule_lea_12(house: House) -> None:
    """DSP-10: past its grace the run is left to its lease, and while it waits it can be seen who is waited for."""
    hold = house.runtime.hangs()
    sid = await a_due_schedule(house, timeout_seconds=3_600)
    await house.dispatch()
    await hold.started.wait()
    await house.engine.runner.drain(0.01)
    await house.database.write(lambda tx: processes.stop(tx, house.engine.process_id))
    new = await house.neighbour()
    await new.engine.watchdog.sweep()
    run = await house.run()
    assert (await house.schedule(sid))["unfinished_run_id"] == run["id"]
    assert (run["status"], run["owner"]) == ("running", house.engine.process_id)
    await new.elapse(house.pace.heartbeat_timeout_seconds)
    await new.engine.watchdog.sweep()
    assert (await house.run())["status"] == "lost"
    await new.elapse(3_600)
    await new.dispatch()
    await new.idle()
    assert await statuses(house) == ["lost", "succeeded"]


async def test_the_heartbeat_goes_on_until_the_last_run_has_ended_shu_01(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSP-10: the whole process drains for longer than every bound of a neighbour that sweeps; one final state."""
    hold = house.runtime.hangs()
    await a_due_schedule(house, timeout_seconds=1_800)
    other = await house.neighbour()

    async def registered() -> None:
        """The house has registered it already."""

    monkeypatch.setattr(house.engine, "register", registered)
    monkeypatch.setattr(house.engine.renewal, "start", lambda: None)  # the house beats in its place
    await house.engine.start()
    await hold.started.wait()
    draining = asyncio.create_task(house.engine.drain())
    await house.until(lambda: house.engine.runner.places == 0)
    for _ in range(20):
        await house.elapse(60)
        await other.beat()
        await other.engine.watchdog.sweep()
    hold.release("done")
    await draining
    await house.engine.stop()
    assert await statuses(house) == ["succeeded"]
    assert await house.audit("EXPIRE") == []


async def test_the_steps_of_a_stop_come_in_their_order_shu_02(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSP-10: claiming ends, work is drained, and the heartbeat is the last to go."""
    steps: list[str] = []
    engine = house.engine
    drain, halt, stop = engine.runner.drain, engine.renewal.stop, processes.stop

    async def drained(seconds: float) -> None:
        assert engine._loops["dispatch"]._stopping.is_set()
        await drain(seconds)
        steps.append("drained")

    async def halted() -> None:
        steps.append("heartbeat")
        await halt()

    async def stopped(*given: Any) -> None:
        steps.append("row")
        await stop(*given)

    async def registered() -> None:
        """The house has registered it already."""

    monkeypatch.setattr(engine, "register", registered)
    monkeypatch.setattr(engine.runner, "drain", drained)
    monkeypatch.setattr(engine.renewal, "stop", halted)
    monkeypatch.setattr(processes, "stop", stopped)
    await engine.start()
    await engine.drain()
    await engine.stop()
    assert steps == ["drained", "heartbeat", "row"]


async def test_a_target_that_ignores_the_stop_changes_nothing_later_shu_02(house: House) -> None:
    """DSP-10, RUN-6: the process has gone, the target goes on; its late answer finds the run taken."""
    stubborn = await house.neighbour(pace=Pace(kill_grace_seconds=0.01))
    hold = stubborn.runtime.hangs(stubborn=True)
    await a_due_schedule(house)
    await stubborn.dispatch()
    await hold.started.wait()
    await stubborn.engine.runner.drain(0.01)
    await house.elapse(330)
    await house.engine.watchdog.sweep()
    assert await statuses(house) == ["lost"]
    hold.release("too late")
    await stubborn.until(lambda: stubborn.engine.runner.in_work == 0)
    assert await statuses(house) == ["lost"]
    run = await house.run()
    assert (run["response_preview"], run["output"]) == (None, None)


def _breaks(owner: object, name: str) -> Callable[[House, pytest.MonkeyPatch], None]:
    def plant(_: House, monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(owner, name)
        calls = iter([True])

        async def broken(*given: Any, **named: Any) -> Any:
            if next(calls, False):
                raise RuntimeError("planted")
            return await real(*given, **named)

        monkeypatch.setattr(owner, name, broken)

    return plant


def _fails_the_call(house: House, _: pytest.MonkeyPatch) -> None:
    house.runtime.breaks(ZeroDivisionError("planted"))


def _fails_and(
    plant: Callable[[House, pytest.MonkeyPatch], None],
) -> Callable[[House, pytest.MonkeyPatch], None]:
    """An end that is not the common one, and breaks."""

    def both(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        _fails_the_call(house, monkeypatch)
        plant(house, monkeypatch)

    return both


_STEPS = {
    "prepare": _breaks(invoking.Invoker, "prepare"),
    "call": _fails_the_call,
    "close": _breaks(runs, "close"),
    "settle": _fails_and(_breaks(ending, "settle")),
    "streak": _fails_and(_breaks(runs, "settle")),
}


@pytest.mark.parametrize("step", _STEPS)
async def test_a_fault_at_any_step_leaves_no_lock_lea_22(
    house: House, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """RUN-3: whatever breaks, the lock is off, the cadence moved on, and the next slot fires."""
    sid = await a_due_schedule(house)
    _STEPS[step](house, monkeypatch)
    await house.dispatch()
    await house.idle()
    schedule, run = await house.schedule(sid), await house.run()
    assert schedule["unfinished_run_id"] is None
    assert schedule["next_fire_at"] == to_micros(START + timedelta(hours=1))
    assert (run["status"], run["lease_until"]) == ("failed", None)
    assert run["error"]
    await house.elapse(3_600)
    await house.dispatch()
    await house.idle()
    assert await statuses(house) == ["failed", "succeeded"]


async def test_a_fault_in_the_audit_of_a_close_leaves_no_lock_lea_22(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-3."""
    hold = house.runtime.hangs()
    sid = await a_due_schedule(house)
    await house.dispatch()
    await hold.started.wait()
    _breaks(audit, "append_many")(house, monkeypatch)
    hold.release("done")
    await house.idle()
    assert (await house.schedule(sid))["unfinished_run_id"] is None
    assert (await house.run())["error_code"] == "close_failed"
