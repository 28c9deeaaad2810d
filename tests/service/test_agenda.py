"""One look for all loops of a process: what it spares, and what it never does (P18; DSP-1, RUN-5a, BRD-4)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from gnomon.domain.errors import Unavailable
from gnomon.services.agenda import Agenda, next_delivery, next_job, next_run, next_slot
from gnomon.services.loop import Loop
from gnomon.settings import Settings
from gnomon.stores import agenda as store
from gnomon.stores.agenda import Ahead
from gnomon.wiring import Center, open_center
from support.house import House
from support.job_rows import ACKNOWLEDGED, add_job, add_trigger
from support.rows import AT, SECOND, add_run, add_running, add_schedule

pytestmark = pytest.mark.anyio
EVERY = 30.0
PATIENCE = 20.0


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The process of each look ahead."""
    made: list[str] = []
    ahead = store.ahead

    async def counted(tx: Any, process_id: str) -> Ahead:
        made.append(process_id)
        return await ahead(tx, process_id)

    monkeypatch.setattr(store, "ahead", counted)
    return made


@pytest.fixture
def agenda(house: House) -> Agenda:
    return Agenda(house.database, house.clock, "prc_mine", EVERY)


async def test_all_who_ask_share_one_look_until_it_is_old(
    house: House, agenda: Agenda, looks: list[str]
) -> None:
    assert len(set(await asyncio.gather(*(agenda.wait(next_slot) for _ in range(5))))) == 1
    house.clock.advance(EVERY - 1)
    assert await agenda.wait(next_job) == pytest.approx(1.0), "all of them look next at one instant"
    assert looks == ["prc_mine"]
    house.clock.advance(1)
    assert await agenda.wait(next_job) == EVERY
    assert len(looks) == 2
    await agenda.look(0.0)
    assert len(looks) == 3, "who wants it fresh gets it fresh"


@pytest.mark.parametrize(
    ("fill", "due_at"),
    [
        (add_schedule, next_slot),
        (add_run, next_run),
        (partial(add_running, owner="prc_mine", cancel_at=AT, cancel_by="x"), next_run),
        (add_job, next_job),
        (partial(add_trigger, wait_until=AT + 900 * SECOND), next_job),
        (partial(add_trigger, **ACKNOWLEDGED), next_delivery),
    ],
)
async def test_what_was_done_without_a_ring_is_due_at_the_next_look(
    house: House, agenda: Agenda, fill: Any, due_at: Any
) -> None:
    """OPS-1: the look is the bounded poll."""
    assert await agenda.wait(due_at) == EVERY
    await fill(house.database)
    house.clock.advance(EVERY)
    assert await agenda.wait(due_at) <= 0


async def test_what_comes_due_before_the_next_look_is_due_at_its_instant(
    house: House, agenda: Agenda
) -> None:
    """DSP-1."""
    await add_schedule(house.database, next_fire_at=AT + 12 * SECOND)
    assert await agenda.wait(next_slot) == 12
    house.clock.advance(11.5)
    assert await agenda.wait(next_slot) == 0.5
    house.clock.advance(0.5)
    assert await agenda.wait(next_slot) == 0


async def test_a_look_that_fails_fails_for_all_who_wait_for_it_and_is_made_again(
    house: House, agenda: Agenda, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def away(_work: Any) -> Any:
        nonlocal tried
        tried += 1
        raise Unavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(house.database, "look", away, raising=False)
        answers = await asyncio.gather(*(agenda.look() for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 3
    assert tried == 1
    assert (await agenda.look()).now == AT


class Ticks:
    """A tick that says what it is told to, and lets others wait for it."""

    def __init__(self, *answers: float | None) -> None:
        self.answers = list(answers)
        self.count = 0
        self.came = asyncio.Event()

    async def tick(self) -> float | None:
        self.count += 1
        self.came.set()
        return self.answers.pop(0) if self.answers else None

    async def next(self) -> None:
        self.came.clear()
        await asyncio.wait_for(self.came.wait(), PATIENCE)


@pytest.fixture
async def loops() -> AsyncIterator[list[Loop]]:
    made: list[Loop] = []
    yield made
    for loop in made:
        await loop.stop()


async def test_a_loop_asks_at_its_bound_and_ticks_only_for_what_lies_ahead(
    house: House, loops: list[Loop]
) -> None:
    """OPS-5a: who was told that there is nothing has ticked as well."""
    ticks, asked = Ticks(), asyncio.Event()
    told = [0.01, 0.01, 0.0]

    async def ahead() -> float:
        asked.set()
        return told.pop(0) if told else 3_600.0

    loop = Loop("x", ticks.tick, clock=house.clock, wakeup=house.signal, most_seconds=0.01, ahead=ahead)
    loops.append(loop)
    loop.start()
    await ticks.next()
    assert not asked.is_set(), "the first tick asks nobody"
    house.clock.advance(100)
    await ticks.next()
    assert (ticks.count, told) == (2, [])
    assert loop.ticked_at == house.clock.monotonic()


async def test_a_loop_that_is_woken_or_knows_its_time_does_not_ask(house: House, loops: list[Loop]) -> None:
    """DSP-1: a wakeup, and an instant that the tick itself has named."""
    ticks = Ticks(None, 0.001)
    asked = 0

    async def ahead() -> float:
        nonlocal asked
        asked += 1
        return 3_600.0

    loop = Loop("x", ticks.tick, clock=house.clock, wakeup=house.signal, most_seconds=3_600, ahead=ahead)
    loops.append(loop)
    loop.start()
    await ticks.next()
    house.signal.wake()
    await ticks.next()
    house.clock.advance(1)
    await ticks.next()
    assert (ticks.count, asked) == (3, 0)


async def test_a_loop_whose_tick_failed_ticks_again(house: House, loops: list[Loop]) -> None:
    """RUN-5a: what it left in doubt is asked for, whatever lies ahead."""
    first, came = asyncio.Event(), asyncio.Event()
    count = 0

    async def tick() -> float | None:
        nonlocal count
        count += 1
        first.set()
        if count == 2:
            raise Unavailable("away")
        if count == 3:
            came.set()
        return None

    async def ahead() -> float:
        return 3_600.0

    loop = Loop("x", tick, clock=house.clock, wakeup=house.signal, most_seconds=3_600, ahead=ahead)
    loops.append(loop)
    loop.start()
    await asyncio.wait_for(first.wait(), PATIENCE)
    house.signal.wake()
    await asyncio.wait_for(came.wait(), PATIENCE)


@pytest.mark.parametrize("name", ["dispatch", "run"])
async def test_a_claim_in_doubt_is_looked_after_although_nothing_lies_ahead(house: House, name: str) -> None:
    """RUN-5a: it may land late, and nobody else would give back what it took before its lease is over."""
    claimer = house.engine.dispatcher if name == "dispatch" else house.engine.runner
    loop = house.engine._loops[name]
    assert loop._ahead is not None
    assert await loop._ahead() > 0
    claimer.lost_claims.doubt("clm_x", Unavailable("lost", code="commit_unknown"))
    assert await loop._ahead() <= 0
    await claimer.lost_claims.settle()
    assert await loop._ahead() <= 0, "it may still land"
    house.clock.advance(60)
    await claimer.lost_claims.settle()
    assert await loop._ahead() > 0


async def test_a_jump_that_the_agenda_saw_is_told_by_the_next_quiet_sweep(house: House) -> None:
    """RUN-5b."""
    await house.engine._sweep()
    house.clock.advance(30)
    await house.engine._agenda.look()
    house.clock.jump(600)
    house.clock.advance(30)
    await house.engine._sweep()
    (entry,) = await house.audit("CLOCK_JUMP")
    assert '"seconds":600' in entry["detail"].replace(" ", "")
    assert house.engine.guard.calm_us() == 0


def transactions(center: Center, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactions of the process from now on, by kind; those of the heartbeat go another way."""
    made: list[str] = []
    database: Any = center.engine.database

    def counted(kind: str, call: Any) -> Any:
        async def do(work: Any) -> Any:
            made.append(kind)
            return await call(work)

        return do

    for kind in ("read", "write"):
        monkeypatch.setattr(database, kind, counted(kind, getattr(database, kind)))
    return made


async def test_an_idle_process_makes_one_look_a_tick(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, looks: list[str]
) -> None:
    """P18: with all its loops and chores, those of jobs, the board and the instances included."""
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 'gnomon.db'}", tick_seconds=0.2, sweep_seconds=0.4
    )
    center = await open_center(settings, dispatch=True, work=True)
    await center.start()
    try:
        sweep = center.engine._loops["sweep"]
        await until(lambda: sweep.ticked_at is not None and len(looks) >= 2)
        made, since = transactions(center, monkeypatch), len(looks)
        await until(lambda: len(looks) >= since + 4)
        assert set(made) == {"read"}
        assert len(made) - (len(looks) - since) in {0, 1}, "one may be under way"
    finally:
        await center.drain()
        await center.stop()


@pytest.mark.parametrize("dispatch", [True, False])
async def test_a_pause_ends_on_time_where_slots_are_fired(tmp_path: Any, *, dispatch: bool) -> None:
    """DSP-1: the sweep alone would end it up to a minute late, after the grace of a slot that came right behind."""
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'gnomon.db'}")
    center = await open_center(settings, dispatch=dispatch, work=True)
    try:
        loop = center.engine._loops.get("pauses")
        assert (loop is not None) == dispatch
        assert loop is None or loop._ahead is not None
    finally:
        await center.stop()


async def until(condition: Callable[[], bool]) -> None:
    pause = asyncio.Event()
    async with asyncio.timeout(PATIENCE):
        while not condition():
            try:
                await asyncio.wait_for(pause.wait(), 0.005)
            except TimeoutError:
                continue
