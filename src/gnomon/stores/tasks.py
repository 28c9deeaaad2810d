"""The board: tasks, what each needs, who holds which. One method per query of ``sql/tasks.sql``.

A write by a holder is one conditional statement over task, fence and holder; what it returns says whether it held.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gnomon.domain.filters import TaskFilter
from gnomon.domain.instants import from_micros
from gnomon.domain.task import Holder, Need, Report, Task, TaskStatus
from gnomon.stores.database import Row, Tx


class Lock(NamedTuple):
    """One claim that holds: its task, its fence, and the instant (microseconds) at which it ends unless renewed."""

    task_id: str
    fence: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Who says that they hold a task: by the fence, and by the instance they name, else as the key that claimed it."""

    task_id: str
    fence: int
    actor: str
    instance: str | None = None


async def insert(tx: Tx, task: Mapping[str, Any]) -> bool:
    """Insert a task into the backlog; ``False`` where its dedup key is taken, and nothing was written (IDM-2)."""
    return await tx.one("tasks.insert", **task) is not None


async def under_key(tx: Tx, dedup_key: str) -> tuple[str, str] | None:
    """The task of this dedup key: its id, and the digest of what it was made of."""
    row = await tx.one("tasks.under_key", dedup_key=dedup_key)
    return None if row is None else (row["id"], row["dedup_mark"])


async def records(tx: Tx, ids: Iterable[str]) -> dict[str, Task]:
    """The tasks of these ids, those that are there."""
    rows = await tx.all("tasks.records", ids=json.dumps(list(ids)))
    return {row["id"]: _task(row) for row in rows}


async def get(tx: Tx, task_id: str) -> Task | None:
    """The task of this id."""
    return (await records(tx, [task_id])).get(task_id)


async def page(tx: Tx, chosen: TaskFilter, after: str, limit: int) -> list[Task]:
    """Tasks after an id, the oldest first."""
    if chosen.dedup_key is not None:  # of which there is one at most
        named = await under_key(tx, chosen.dedup_key)
        one = [] if named is None else list((await records(tx, [named[0]])).values())
        return [task for task in one if task.id > after and chosen.takes(task)]
    given: dict[str, Any] = {"after": after, "role": chosen.role, "status": chosen.status, "limit": limit}
    if chosen.holder is None:
        found = await tx.tuples("tasks.page", **given)
    else:
        found = await tx.tuples("tasks.page_held", holder=chosen.holder, **given)
    there = await records(tx, [row[0] for row in found])
    return [there[row[0]] for row in found]


async def hold(tx: Tx, ids: Iterable[str]) -> None:
    """Keep others from claiming, editing or deleting tasks until this transaction ends."""
    await tx.tuples("tasks.hold", ids=json.dumps(list(ids)))


async def statuses(tx: Tx, ids: Sequence[str]) -> dict[str, TaskStatus]:
    """How tasks stand, until this transaction ends: what is to be needed stays as it is until the need is written."""
    if not ids:
        return {}
    return {
        row[0]: TaskStatus(row[1]) for row in await tx.tuples("tasks.statuses", ids=json.dumps(list(ids)))
    }


async def update(tx: Tx, task_id: str, **fields: Any) -> bool:
    """Write what a person may edit; whether the task is there and nobody holds it. ``unmet`` may stay: ``None``."""
    return await tx.one("tasks.update", id=task_id, **fields) is not None


async def delete(tx: Tx, task_id: str) -> bool:
    """Delete a task that nobody holds, and what it needs."""
    if await tx.one("tasks.delete", id=task_id) is None:
        return False
    await tx.run("tasks.need_nothing", task_id=task_id)
    return True


async def need(tx: Tx, task_id: str, prerequisites: Iterable[str]) -> None:
    """Write what a task needs, beside what it needs already."""
    await tx.many("tasks.need", [{"task_id": task_id, "prerequisite_id": each} for each in prerequisites])


async def need_instead(tx: Tx, task_id: str, prerequisites: Iterable[str]) -> None:
    """Write what a task needs, instead of what it needed."""
    await tx.run("tasks.need_nothing", task_id=task_id)
    await need(tx, task_id, prerequisites)


async def needs_above(tx: Tx, ids: Iterable[str]) -> dict[str, list[str]]:
    """What these tasks need, what that needs in turn, and so on, as it stays until this transaction ends (BRD-8)."""
    await tx.tuples("tasks.hold_needs")
    found: dict[str, list[str]] = {}
    for task_id, prerequisite_id in await tx.tuples("tasks.needs_above", ids=json.dumps(list(ids))):
        found.setdefault(task_id, []).append(prerequisite_id)
    return found


async def dependants(tx: Tx, task_id: str, limit: int) -> list[str]:
    """Tasks that need a task."""
    return [row[0] for row in await tx.tuples("tasks.dependants", id=task_id, limit=limit)]


async def open_gates(tx: Tx, task_id: str) -> int:
    """A task is done that was not: those that need it, so many, wait for one less. Its own row has been written by now."""
    return await tx.run("tasks.open_gates", id=task_id)


async def close_gates(tx: Tx, task_id: str) -> None:
    """A task is not done any more: those that need it wait for one more."""
    await tx.run("tasks.close_gates", id=task_id)


async def is_waiting(tx: Tx, role: str) -> bool:
    """Whether there is anything to claim for a role."""
    return await tx.one("tasks.waiting", role=role) is not None


async def depths(tx: Tx) -> dict[str, int]:
    """How many tasks can be claimed now, by role."""
    return {row[0]: row[1] for row in await tx.tuples("tasks.depths")}


async def claim(
    tx: Tx, role: str, instance_id: str, *, claim_id: str, claimed_by: str, lock_us: int, limit: int
) -> list[Lock]:
    """Take up to ``limit`` tasks of a role, the most urgent first, the oldest of those first; never wait (BRD-1)."""
    taken = await tx.tuples(
        "tasks.claim",
        role=role,
        instance_id=instance_id,
        claim_id=claim_id,
        claimed_by=claimed_by,
        lock_us=lock_us,
        limit=limit,
    )
    locks = [Lock(*row) for row in taken]
    await tx.later("tasks.begin", [(lock.task_id, lock.fence) for lock in locks])
    return locks


async def under_claim(tx: Tx, instance_id: str, claim_id: str) -> list[Lock]:
    """What an instance holds by a claim of this name: asked where the claim's answer was lost (RUN-5a)."""
    found = await tx.tuples("tasks.under_claim", instance_id=instance_id, claim_id=claim_id)
    return [Lock(*row) for row in found]


async def renew(tx: Tx, held: Hold, lock_us: int) -> Row | None:
    """Renew a claim as its holder: until when it holds now, the instance's name and role; ``None``: not the holder's."""
    return await tx.one("tasks.renew", lock_us=lock_us, **_hold(held))


async def release(tx: Tx, held: Hold) -> Row | None:
    """Delete a lock as its holder: the instance's name and role; ``None``: not the holder's, and nothing changed."""
    return await tx.one("tasks.release", **_hold(held))


async def release_by_force(tx: Tx, task_id: str) -> Row | None:
    """Delete a lock, whoever's it is: its fence and the instance's name; ``None`` where nobody holds the task."""
    return await tx.one("tasks.release_by_force", task_id=task_id)


async def note(tx: Tx, task_id: str, fence: int, last_report: str) -> None:
    """Keep what the holder of a task says in the middle of its work (BRD-6)."""
    await tx.run("tasks.note", id=task_id, fence=fence, last_report=last_report)


async def move(  # noqa: PLR0917 - what a release says of a task, in full
    tx: Tx,
    task_id: str,
    fence: int,
    status: TaskStatus,
    role: str | None,
    last_report: str | None,
    *,
    half_done: bool,
) -> bool:
    """Move a task on whose lock has just been deleted; whether it was in progress under that fence."""
    row = await tx.one(
        "tasks.move",
        id=task_id,
        fence=fence,
        status=status,
        role=role,
        last_report=last_report,
        half_done=int(half_done),
    )
    return row is not None


async def expired(tx: Tx, timeout_us: int, calm_us: int | None, limit: int) -> list[Row]:
    """Claims that are over, or whose holder is silent, and why (BRD-4).

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did (RUN-5b).
    """
    return await tx.all("tasks.expired", timeout_us=timeout_us, calm_us=calm_us, limit=limit)


async def next_end(tx: Tx) -> int | None:
    """Microseconds until the next claim ends that is not renewed; ``None`` where there is none to come."""
    row = await tx.one("tasks.next_end")
    return None if row is None else row["wait_us"]


async def expire(tx: Tx, rows: Iterable[Row]) -> set[str]:
    """Take claims that ``expired`` gave, and put their tasks back into the backlog; those that had not been renewed."""
    seen = [{name: row[name] for name in ("task_id", "fence", "expires_at")} for row in rows]
    taken = {row[0] for row in await tx.many("tasks.expire", seen)}
    await tx.many("tasks.put_back", [row for row in seen if row["task_id"] in taken])
    return taken


def _hold(held: Hold) -> dict[str, Any]:
    return {
        "task_id": held.task_id,
        "fence": held.fence,
        "actor": held.actor,
        "instance": held.instance,
    }


def _task(row: Row) -> Task:
    return Task(
        id=row["id"],
        role=row["role"],
        title=row["title"],
        body=row["body"],
        priority=row["priority"],
        status=TaskStatus(row["status"]),
        needs=tuple(_needs(row["needs"])),
        dedup_key=row["dedup_key"],
        fence=row["fence"],
        possibly_half_done=bool(row["half_done"]),
        last_report=_report(row),
        held_by=_holder(row),
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
    )


def _needs(text: str | None) -> Iterable[Need]:
    for each in (text or "").split(",") if text else ():
        task_id, _, status = each.partition(" ")
        yield Need(task_id, TaskStatus(status))


def _holder(row: Row) -> Holder | None:
    if row["instance_id"] is None:
        return None
    return Holder(
        row["instance_id"],
        row["instance"] or row["instance_id"],
        row["held_fence"],
        from_micros(row["claimed_at"]),
        from_micros(row["expires_at"]),
    )


def _report(row: Row) -> Report | None:
    if row["last_report"] is None:
        return None
    kept = json.loads(row["last_report"])
    return Report(
        status=TaskStatus(kept["status"]),
        note=kept["note"],
        result=kept["result"],
        role=kept["role"],
        instance=kept["instance"],
        fence=kept["fence"],
        at=from_micros(row["reported_at"]),
    )
