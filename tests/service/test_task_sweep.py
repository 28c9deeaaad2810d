"""Tasks whose holder is gone come back in bounded time; nothing is taken from the living (BRD-4 to BRD-7, RUN-5b)."""

from collections.abc import Mapping
from typing import Any

import pytest

from gnomon.domain.caller import Caller
from gnomon.domain.errors import FenceStale
from gnomon.domain.instance import Instance
from gnomon.domain.scopes import EVERYTHING
from gnomon.domain.task import Task, TaskGrant, TaskStatus
from gnomon.services.connections import Connections
from gnomon.services.instance_sweep import InstanceSweep
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from gnomon.stores import instances
from gnomon.stores.database import Row, Tx
from support.house import House

pytestmark = pytest.mark.anyio
PM = Caller("key_pm", (EVERYTHING,))


class Board:
    """The board of one house, swept by its watchdog's ticks every 60 s, with the defaults of the settings."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.tasks = Tasks(
            house.database,
            house.clock,
            house.mint,
            house.signal,
            lock_seconds=120,
            heartbeat_timeout_seconds=120,
        )
        engine = house.engine
        self.sweep = TaskSweep(
            house.database,
            house.signal,
            heartbeat_timeout_seconds=120,
            calm_us=engine.guard.calm_us,
            jumped=engine.watchdog.ask_guard,
        )
        self.instances = InstanceSweep(house.database, house.signal, Connections(), 120, engine.guard.calm_us)

    async def make(self, **fields: Any) -> Task:
        made = await self.tasks.create(PM, {"role": "pm", "title": "Look"} | fields)
        assert isinstance(made, MadeTask)
        return made.task

    async def claim(self, instance: str = "a", **fields: Any) -> list[TaskGrant]:
        return await self.tasks.claim(PM, {"role": "pm", "instance": instance} | fields)

    async def report(self, task: Task, fence: int, status: str = "done", **fields: Any) -> Task:
        return (await self.tasks.report(PM, task.id, {"fence": fence, "status": status} | fields)).task

    async def tick(self) -> int:
        """One tick of the watchdog under a fresh heartbeat of its process, and the sweep of the board behind it."""
        await self.house.beat()
        await self.house.engine.watchdog.tick()
        swept = await self.sweep.sweep()
        await self.instances.tick()
        return swept

    async def audit(self, task: Task) -> list[tuple[str, int]]:
        entries = await self.house.rows(
            "SELECT action, fence FROM audit_entries WHERE subject_id = :id AND fence IS NOT NULL ORDER BY seq",
            id=task.id,
        )
        return [(entry["action"], entry["fence"]) for entry in entries]

    async def instance(self, name: str = "a") -> Row:
        async def work(tx: Tx) -> Instance | None:
            return await instances.named(tx, "pm", name)

        found = await self.house.database.read(work)
        assert found is not None
        return {"status": found.status.value, "id": found.id}


@pytest.fixture
def board(house: House) -> Board:
    return Board(house)


@pytest.mark.parametrize("first_sweep", [0, 1, 30, 59])
async def test_an_abandoned_task_is_claimable_within_three_minutes(board: Board, first_sweep: int) -> None:
    """BRD-5: with the defaults, wherever the sweeps lie; not earlier than its window allows."""
    task = await board.make()
    [granted] = await board.claim()
    taken_at = None
    for second in range(1, 181):
        board.house.clock.advance(1)
        if second % 5 == 0:
            await board.house.beat()
        if (second - first_sweep) % 60 == 0:
            await board.tick()
        found = await board.claim("b")
        if found:
            taken_at = second
            break
    assert taken_at is not None
    assert 120 <= taken_at <= 180
    assert (found[0].fence, found[0].verify_first) == (granted.fence + 1, True)
    assert await board.audit(task) == [("CLAIM", 1), ("EXPIRE", 1), ("CLAIM", 2)]


async def test_whoever_renews_keeps_its_task(board: Board) -> None:
    """BRD-2: for as long as it does."""
    task = await board.make()
    await board.claim()
    for _ in range(20):
        await board.house.elapse(60)
        await board.tasks.renew(PM, task.id, {"fence": 1})
        assert await board.tick() == 0
    await board.report(task, 1)
    assert {action for action, _ in await board.audit(task)} == {"CLAIM", "RENEW", "RELEASE"}


async def test_a_silent_holder_loses_what_it_holds_and_is_offline(board: Board) -> None:
    """BRD-4: all of it, whatever its windows; its instance is marked once, and comes back with its next word."""
    made = [await board.make(title=str(n)) for n in range(3)]
    await board.claim(limit=3)
    await board.house.rows("UPDATE task_locks SET expires_at = expires_at + 3600000000")
    await board.house.elapse(119)
    assert await board.tick() == 0
    await board.house.elapse(1)
    assert await board.tick() == 3
    assert (await board.instance())["status"] == "offline"
    assert len(await board.house.audit("OFFLINE")) == 1
    entries = await board.house.audit("EXPIRE")
    assert sorted(entry["subject_id"] for entry in entries) == sorted(task.id for task in made)
    assert all('"why":"heartbeat"' in entry["detail"] for entry in entries)
    assert len(await board.claim(limit=3)) == 3
    assert (await board.instance())["status"] == "online"


async def test_recovery_rolls_nothing_back_and_says_what_was_done(board: Board) -> None:
    """BRD-6: the note of the last renewal is there for whoever claims it, who is told to verify first."""
    task = await board.make()
    await board.claim()
    await board.tasks.renew(PM, task.id, {"fence": 1, "note": "wrote half of the page"})
    await board.house.elapse(181)
    assert await board.tick() == 1
    found = await board.tasks.get(PM, task.id)
    assert (found.status, found.possibly_half_done) == (TaskStatus.BACKLOG, True)
    [granted] = await board.claim("b")
    assert granted.verify_first
    report = granted.task.last_report
    assert report is not None
    assert (report.note, report.instance, report.fence) == ("wrote half of the page", "a", 1)
    done = await board.report(task, 2, note="checked, finished")
    assert not done.possibly_half_done


async def test_a_zombie_changes_nothing(board: Board) -> None:
    """BRD-3: an old fence is refused with words, whether the task waits or somebody else has it, and on record."""
    task = await board.make()
    await board.claim()
    await board.house.elapse(181)
    await board.tick()
    with pytest.raises(FenceStale, match="not renewed in time"):
        await board.report(task, 1)
    await board.claim("b")
    for write in (board.tasks.renew(PM, task.id, {"fence": 1}), board.report(task, 1)):
        with pytest.raises(FenceStale, match='"b" holds it now under fence 2'):
            await write
    found = await board.tasks.get(PM, task.id)
    assert found.held_by is not None
    assert (found.status, found.held_by.instance) == (TaskStatus.IN_PROGRESS, "b")
    assert [entry["fence"] for entry in await board.house.audit("FENCED")] == [1, 1, 1]


async def test_two_sweeps_take_a_claim_once(board: Board) -> None:
    """BRD-7: one EXPIRE."""
    task = await board.make()
    await board.claim()
    other = Board(await board.house.neighbour())
    await board.house.elapse(200)
    assert await board.tick() + await other.tick() == 1
    assert await board.audit(task) == [("CLAIM", 1), ("EXPIRE", 1)]


async def test_many_go_in_batches(board: Board) -> None:
    for number in range(150):
        await board.make(title=str(number))
    assert len(await board.claim(limit=100)) + len(await board.claim("b", limit=100)) == 150
    await board.house.elapse(200)
    assert await board.tick() == 150
    await board.sweep.tick()
    assert board.sweep.depths == {"pm": 150}


async def test_a_sweep_comes_back_when_the_next_claim_ends(board: Board) -> None:
    """BRD-5: what nobody renews is not left until the next round."""
    assert await board.sweep.tick() is None
    await board.make()
    await board.claim()
    assert await board.sweep.tick() == 120
    await board.house.elapse(119.5)
    assert await board.sweep.tick() == 1, "never in a hurry"
    house = await board.house.neighbour(chores=(board.sweep.tick,))
    assert await house.engine.watchdog.tick() == 1
    board.house.clock.advance(1)
    assert await house.engine.watchdog.tick() == house.pace.sweep_seconds
    assert [granted.fence for granted in await board.claim("b")] == [2]


async def test_a_jump_of_the_clock_takes_nothing_for_the_length_of_a_window(board: Board) -> None:
    """RUN-5b: the living get time to renew."""
    task = await board.make()
    await board.tick()
    await board.claim()
    board.house.clock.jump(3_600)
    assert await board.tick() == 0
    await board.house.elapse(60)
    await board.tasks.renew(PM, task.id, {"fence": 1})
    assert await board.tick() == 0
    await board.house.elapse(60)
    assert await board.tick() == 0
    await board.house.elapse(65)
    assert await board.tick() == 1


async def test_after_a_jump_each_window_gets_its_own_length(board: Board) -> None:
    """RUN-5b: a longer window, as another process's settings give it, is left alone for longer."""
    short, long = await board.make(title="short", priority=1), await board.make(title="long")
    await board.tick()
    await board.claim("a")
    await board.claim("b")
    await board.house.rows(
        "UPDATE task_locks SET expires_at = renewed_at + 3600000000 WHERE task_id = :id", id=long.id
    )
    board.house.clock.jump(7_200)
    assert await board.tick() == 0
    await board.house.elapse(125)
    await board.claim("b")
    assert await board.tick() == 1
    assert (await board.tasks.get(PM, short.id)).held_by is None
    assert (await board.tasks.get(PM, long.id)).held_by is not None


async def test_a_sweep_that_stood_still_after_its_look_takes_nothing(board: Board) -> None:
    """RUN-5b: the clock is asked again after the rows were read."""
    await board.make()
    await board.tick()
    await board.claim()
    board.house.clock.jump(3_600)
    assert await board.sweep.sweep() == 0
    assert (await board.instance())["status"] == "online"


async def test_a_draining_instance_gets_nothing_new_and_reports_what_it_has(board: Board) -> None:
    """JOB-5's rule on the board."""
    task = await board.make()
    await board.claim()
    await board.make(title="next")
    draining = await board.instance()
    await board.house.database.write(lambda tx: instances.drain(tx, draining["id"]))
    assert await board.claim(limit=9) == []
    assert (await board.report(task, 1)).status is TaskStatus.DONE
    assert len(await board.claim("b", limit=9)) == 1


@pytest.mark.parametrize("status", ["done", "cancelled", "blocked", "in_review", "backlog"])
async def test_each_end_of_a_claim_is_told_once(board: Board, status: str) -> None:
    """BRD-7: whatever the report says."""
    task = await board.make()
    await board.claim()
    await board.report(task, 1, status)
    await board.house.elapse(300)
    assert await board.tick() == 0
    assert await board.audit(task) == [("CLAIM", 1), ("RELEASE", 1)]


@pytest.mark.parametrize(
    ("given", "verify_first"),
    [({"status": "backlog"}, True), ({"status": "blocked"}, False)],
)
async def test_the_mark_stays_until_somebody_says_how_it_stands(
    board: Board, given: Mapping[str, Any], *, verify_first: bool
) -> None:
    """BRD-6: who gives it back unseen has not looked."""
    task = await board.make()
    await board.claim()
    await board.house.elapse(181)
    await board.tick()
    await board.claim("b")
    await board.report(task, 2, **given)
    if given["status"] != "backlog":
        await board.tasks.edit(PM, task.id, {"status": "backlog"})
    [granted] = await board.claim("c")
    assert granted.verify_first is verify_first


async def test_only_what_can_be_claimed_wakes_those_who_wait(board: Board) -> None:
    """A board at work must not wake every loop of the process with each report."""
    heard = [board.house.signal.version]

    def woken() -> bool:
        heard.append(board.house.signal.version)
        return heard[-1] != heard[-2]

    first = await board.make()
    assert woken()
    second = await board.make(prerequisites=[first.id])
    await board.claim()
    await board.tasks.renew(PM, first.id, {"fence": 1})
    assert not woken()
    await board.report(first, 1)
    assert woken(), "the second is free"
    await board.claim()
    await board.report(second, 1)
    assert not woken()
    await board.make()
    await board.claim()
    assert woken()
    await board.house.elapse(181)
    await board.tick()
    assert woken(), "it came back"
