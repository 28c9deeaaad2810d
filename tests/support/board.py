"""Bare rows of the board, and the shortest calls of its store: the state a test starts from, and what it finds."""

import json
from collections.abc import Mapping
from typing import Any

from gnomon.domain.task import Task
from gnomon.stores import instances, tasks
from gnomon.stores.database import Database
from gnomon.stores.tasks import Hold, Lock
from support.rows import AT, SECOND, add, add_many

LOCK = 120 * SECOND
TASK: Mapping[str, Any] = {
    "id": "tsk_1",
    "role": "pm",
    "title": "Look",
    "body": "",
    "priority": 0,
    "status": "backlog",
    "unmet": 0,
    "fence": 0,
    "created_at": AT,
    "created_by": "key_1",
    "updated_at": AT,
}
LOCK_ROW: Mapping[str, Any] = {
    "task_id": "tsk_1",
    "instance_id": "ins_1",
    "fence": 1,
    "claim_id": "clm_1",
    "claimed_by": "key_1",
    "claimed_at": AT,
    "renewed_at": AT,
    "expires_at": AT + LOCK,
}
SAID = {"status": "blocked", "note": "why", "result": [1], "role": None, "instance": "a", "fence": 1}


async def add_task(database: Database, task_id: str = "tsk_1", **changes: Any) -> None:
    """A task that can be claimed by a pm."""
    await add(database, "tasks", TASK, id=task_id, **changes)


async def add_needs(database: Database, *pairs: tuple[str, str]) -> None:
    """Needs, each from a task to its prerequisite."""
    rows = [{"task_id": task_id, "prerequisite_id": needed} for task_id, needed in pairs]
    await add_many(database, "task_prerequisites", rows)


async def add_held(database: Database, task_id: str = "tsk_1", **changes: Any) -> None:
    """A task that the instance ``a`` holds under fence 1, by a claim of ``key_1`` at ``AT``."""
    await database.write(lambda tx: instances.seen(tx, "ins_1", "pm", "a"))
    await add_task(database, task_id, status="in_progress", fence=changes.get("fence", 1))
    await add(database, "task_locks", LOCK_ROW, task_id=task_id, **changes)


async def claim(database: Database, limit: int = 1, *, instance: str = "a", **given: Any) -> list[Lock]:
    """What an instance of pm gets."""
    asked: dict[str, Any] = {
        "role": "pm",
        "claim_id": "clm_1",
        "claimed_by": "key_1",
        "lock_us": LOCK,
    } | given
    role = asked.pop("role")

    async def work(tx: Any) -> list[Lock]:
        row = await instances.seen(tx, f"ins_{instance}", role, instance)
        return await tasks.claim(tx, role, row["id"], limit=limit, **asked)

    return await database.write_guarded(work)


def held(task_id: str = "tsk_1", fence: int = 1, actor: str = "key_1", instance: str | None = None) -> Hold:
    """Whoever holds what ``add_held`` makes, unless it is said otherwise."""
    return Hold(task_id, fence, actor, instance)


async def read(database: Database, task_id: str = "tsk_1") -> Task:
    """A task that is there."""
    found = await database.read(lambda tx: tasks.get(tx, task_id))
    assert found is not None
    return found


def said(**changes: Any) -> str:
    """A report as it is kept."""
    return json.dumps(SAID | changes)
