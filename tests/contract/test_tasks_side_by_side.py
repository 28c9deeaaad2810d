"""Writers of the board side by side: no gate is left shut, no cycle closed by halves, no dedup key doubled (BRD, IDM-2).

On PostgreSQL they really overlap; on SQLite one comes after the other, and the same must hold.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from gnomon.domain.breach import Breach
from gnomon.domain.caller import system
from gnomon.domain.errors import Conflict, Invalid, Missing
from gnomon.domain.task import Task, TaskStatus
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from gnomon.services.verify import Verify
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.rows import execute

pytestmark = pytest.mark.anyio
ANA = system("ana")
ROUNDS = 12


@pytest.fixture
def boards(database: Database, neighbour: Database, clock: FrozenClock) -> tuple[Tasks, Tasks]:
    """The board as two processes have it."""
    one, other = (
        Tasks(
            each,
            clock,
            Mint(clock, SeededEntropy(seed)),
            Signal(),
            lock_seconds=120,
            heartbeat_timeout_seconds=120,
        )
        for seed, each in ((1, database), (2, neighbour))
    )
    return one, other


async def make(tasks: Tasks, *needs: str, **fields: Any) -> Task:
    made = await tasks.create(ANA, {"role": "pm", "title": "t", "prerequisites": list(needs)} | fields)
    assert isinstance(made, MadeTask)
    return made.task


async def together(*deeds: Awaitable[Any]) -> list[Any]:
    """What each gave, or the refusal that it met."""
    found = await asyncio.gather(*deeds, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, Conflict | Invalid | Missing):
            raise each
    return found


async def clean(database: Database) -> None:
    """Gates, locks, needs and the audit agree (OPS-7)."""
    found: list[Breach] = []
    await Verify(database, gapless=False).run(found.append)
    assert [breach.sentence for breach in found] == []


async def test_a_need_written_while_it_is_met_leaves_no_gate_shut(
    database: Database, boards: tuple[Tasks, Tasks]
) -> None:
    """BRD-1: whoever writes a need holds what is needed until that is committed."""
    one, other = boards
    for _ in range(ROUNDS):
        needed = await make(one)
        [granted] = await one.claim(ANA, {"role": "pm", "instance": "a"})
        assert granted.task.id == needed.id
        done = {"fence": granted.fence, "status": "done"}
        made = await together(
            make(other, needed.id), one.report(ANA, needed.id, done), make(other, needed.id)
        )
        for each in (made[0], made[2]):
            assert (await one.get(ANA, each.id)).waits_for == ()
        taken = await one.claim(ANA, {"role": "pm", "instance": "a", "limit": 9})
        assert {each.task.id for each in taken} == {made[0].id, made[2].id}
        for each in taken:
            await one.report(ANA, each.task.id, {"fence": each.fence, "status": "done"})
    await clean(database)


async def test_needs_met_at_once_open_one_gate(database: Database, boards: tuple[Tasks, Tasks]) -> None:
    """BRD-1: each of several reports takes one off; whoever reopens one puts it back."""
    one, other = boards
    for _ in range(ROUNDS):
        needed = [await make(one) for _ in range(4)]
        last = await make(one, *(task.id for task in needed))
        taken = await one.claim(ANA, {"role": "pm", "instance": "a", "limit": 9})
        assert len(taken) == 4
        await together(
            *(
                board.report(ANA, each.task.id, {"fence": each.fence, "status": "done"})
                for board, each in zip((one, other, one, other), taken, strict=True)
            )
        )
        await together(
            one.edit(ANA, needed[0].id, {"status": "backlog"}),
            other.edit(ANA, needed[1].id, {"status": "backlog"}),
            other.edit(ANA, last.id, {"title": "meanwhile"}),
        )
        await together(
            *(board.edit(ANA, needed[n].id, {"status": "done"}) for n, board in enumerate((one, other)))
        )
        assert [
            each.task.id for each in await other.claim(ANA, {"role": "pm", "instance": "b", "limit": 9})
        ] == [last.id]
        await other.release(ANA, last.id, {"status": "done"})
    await clean(database)


async def test_two_halves_of_a_cycle_do_not_meet(database: Database, boards: tuple[Tasks, Tasks]) -> None:
    """BRD-8: the second sees what the first wrote."""
    one, other = boards
    for _ in range(ROUNDS):
        a, b = await make(one), await make(one)
        found = await together(
            one.edit(ANA, a.id, {"prerequisites": [b.id]}),
            other.edit(ANA, b.id, {"prerequisites": [a.id]}),
        )
        refused = [each for each in found if isinstance(each, Invalid)]
        assert len(refused) == 1
        assert refused[0].code == "dependency_cycle"
    await clean(database)


async def test_two_parts_of_a_longer_cycle_do_not_meet(
    database: Database, boards: tuple[Tasks, Tasks]
) -> None:
    """BRD-8: though they share no task, the second sees what the first wrote."""
    one, other = boards
    for _ in range(ROUNDS):
        a, c = await make(one), await make(one)
        b, d = await make(one, c.id), await make(one, a.id)
        found = await together(
            one.edit(ANA, a.id, {"prerequisites": [b.id]}),
            other.edit(ANA, c.id, {"prerequisites": [d.id]}),
        )
        assert len([each for each in found if isinstance(each, Invalid)]) == 1
    await clean(database)


async def test_one_key_makes_one_task(database: Database, boards: tuple[Tasks, Tasks]) -> None:
    """IDM-2: two at once make one, and both are told which."""
    one, other = boards
    for number in range(ROUNDS):
        key = f"k{number}"
        made = await together(
            *(
                board.create(ANA, {"role": "pm", "title": "t", "dedup_key": key})
                for board in (one, other, one)
            )
        )
        assert sorted(each.existed for each in made) == [False, True, True]
        assert len({each.task.id for each in made}) == 1
    assert len(await execute(database, "SELECT id FROM tasks")) == ROUNDS


async def test_an_edit_and_a_claim_of_one_task_do_not_both_land(
    database: Database, boards: tuple[Tasks, Tasks]
) -> None:
    """BRD-1: what is claimed is what is then refused to be edited, deleted or claimed again."""
    one, other = boards
    for number in range(ROUNDS):
        task = await make(one)
        edited, taken, again, gone = await together(
            other.edit(ANA, task.id, {"status": "cancelled"}),
            one.claim(ANA, {"role": "pm", "instance": "a"}),
            other.claim(ANA, {"role": "pm", "instance": "b"}),
            other.delete(ANA, task.id) if number % 2 else one.get(ANA, task.id),
        )
        claimed = [*taken, *again]
        assert len(claimed) <= 1
        if claimed:
            assert isinstance(edited, Conflict)
            assert number % 2 == 0 or isinstance(gone, Conflict)
            found = await one.get(ANA, task.id)
            assert found.status is TaskStatus.IN_PROGRESS
            await one.report(
                ANA, task.id, {"fence": 1, "status": "done", "instance": claimed[0].task.held_by.instance}
            )
    await clean(database)


async def test_a_renewal_and_a_sweep_of_one_claim_do_not_both_land(
    database: Database, neighbour: Database, boards: tuple[Tasks, Tasks], clock: FrozenClock
) -> None:
    """BRD-2, BRD-4, BRD-7: either the holder goes on or the task is back, and the audit says which."""
    one, _ = boards
    sweep = TaskSweep(neighbour, Signal(), heartbeat_timeout_seconds=120)
    for number in range(ROUNDS):
        task = await make(one)
        [granted] = await one.claim(ANA, {"role": "pm", "instance": f"a{number}"})
        clock.advance(121)
        write = one.report if number % 2 else one.renew
        body = {"fence": granted.fence} | ({"status": "done"} if number % 2 else {})
        landed, swept = await together(write(ANA, task.id, body), sweep.sweep())
        assert isinstance(landed, Conflict) == (swept == 1)
        found = await one.get(ANA, task.id)
        if swept:
            assert (found.status, found.possibly_half_done) == (TaskStatus.BACKLOG, True)
            await one.edit(ANA, task.id, {"status": "cancelled"})
        elif number % 2 == 0:
            await one.report(ANA, task.id, {"fence": granted.fence, "status": "done"})
    await clean(database)


async def test_one_claim_id_asked_twice_at_once_takes_once(
    database: Database, boards: tuple[Tasks, Tasks]
) -> None:
    """RUN-5a: the answer that was lost may still be on its way."""
    one, other = boards
    for _ in range(4):
        await make(one)
    asked = {"role": "pm", "instance": "a", "claim_id": "c", "limit": 2}
    first, again = await together(one.claim(ANA, asked), other.claim(ANA, asked))
    assert {each.task.id for each in first} == {each.task.id for each in again}
    assert len(await execute(database, "SELECT task_id FROM task_locks")) == 2
