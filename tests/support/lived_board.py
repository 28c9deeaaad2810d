"""The board of a database that has lived: every way in which a claim ends, and one that holds."""

from typing import Any

from gnomon.domain.caller import system
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from support.house import House

ANA = system("ana")


async def live(house: House) -> None:
    """Tasks by title: done, handed over, lost and done again, taken back, deleted, gated, held."""
    tasks = Tasks(
        house.database,
        house.clock,
        house.mint,
        house.signal,
        lock_seconds=120,
        heartbeat_timeout_seconds=120,
    )
    sweep = TaskSweep(house.database, house.signal, heartbeat_timeout_seconds=120)

    async def make(title: str, *needs: str) -> str:
        made = await tasks.create(ANA, {"role": "pm", "title": title, "prerequisites": list(needs)})
        assert isinstance(made, MadeTask)
        return made.task.id

    async def claim(role: str = "pm") -> tuple[str, int]:
        [granted] = await tasks.claim(ANA, {"role": role, "instance": "pm-1"})
        return granted.task.id, granted.fence

    async def report(status: str, role: str = "pm", **fields: Any) -> None:
        task_id, fence = await claim(role)
        await tasks.renew(ANA, task_id, {"fence": fence, "note": "half"})
        await tasks.report(ANA, task_id, {"fence": fence, "status": status, **fields})

    done = await make("done")
    await report("backlog", role="pm", note="not now")
    await report("done")
    await make("handed over", done)
    task_id, fence = await claim()
    await tasks.report(ANA, task_id, {"fence": fence, "status": "backlog", "role": "qa"})
    await report("done", role="qa")
    await make("lost")
    await claim()
    house.clock.advance(121)
    assert await sweep.sweep() == 1
    await report("done")
    taken_back = await make("taken back")
    await claim()
    await tasks.release(ANA, taken_back, {"status": "cancelled"})
    deleted = await make("deleted")
    await claim()
    await tasks.release(ANA, deleted, {"status": "blocked"})
    await tasks.delete(ANA, deleted)
    held = await make("held")
    await make("gated", await make("between", held), taken_back)
    await claim()
