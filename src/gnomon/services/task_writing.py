"""What people write on the board, each inside a transaction of the caller: new tasks, edits, deletions (BRD-8, IDM-2)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gnomon.domain import task_form as forms
from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Fault, Invalid
from gnomon.domain.instants import rfc3339
from gnomon.domain.task import TRANSITIONS, Task, TaskStatus, cycle_from
from gnomon.domain.task_form import TaskDraft
from gnomon.services.task_claims import there
from gnomon.stores import audit, tasks
from gnomon.stores.database import Tx

DEPENDANTS_NAMED = 20


@dataclass(frozen=True, slots=True)
class MadeTask:
    """A task that was asked for; ``existed`` where its dedup key had made it before (IDM-2)."""

    task: Task
    existed: bool = False


async def create(tx: Tx, caller: Caller, task_id: str, draft: TaskDraft) -> MadeTask:
    """Put a task on the board, under ``task_id``; one whose dedup key is there already is given as it stands.

    Raises:
        Invalid: a prerequisite is not there; ``dedup_key_reused``, the key made another task before.
    """
    standing = await _standing(tx, draft)
    if standing is not None:
        return standing
    found = await tasks.statuses(tx, draft.prerequisites)
    _refuse_unknown(draft.prerequisites, found)
    inserted = await tasks.insert(
        tx,
        {
            "id": task_id,
            "role": draft.role,
            "title": draft.title,
            "body": draft.body,
            "priority": draft.priority,
            "unmet": _unmet(found),
            "dedup_key": draft.dedup_key,
            "dedup_mark": None if draft.dedup_key is None else _mark(draft),
            "created_by": caller.actor,
        },
    )
    if not inserted:  # another was first with the key, and has committed by now
        standing = await _standing(tx, draft)
        assert standing is not None
        return standing
    await tasks.need(tx, task_id, draft.prerequisites)
    await _note(tx, caller, Action.CREATE, task_id, {"role": draft.role, "dedup_key": draft.dedup_key})
    return MadeTask(await there(tx, task_id))


async def edit(tx: Tx, caller: Caller, task_id: str, patch: Mapping[str, Any]) -> Task:
    """Lay a patch over a task that nobody holds; one that changes nothing changes nothing.

    Raises:
        Invalid: with every fault; ``dependency_cycle``, naming it.
        Missing: there is none of this id.
        Conflict: ``task_held``, naming the holder.
    """
    await tasks.hold(tx, {task_id, *_named(patch)})
    standing = await there(tx, task_id)
    draft = forms.read_edit(standing, patch)
    _refuse_held(standing, "edited")
    _refuse_transition(standing.status, draft.status)
    before = forms.draft_of(standing)
    if draft == before:
        return standing
    unmet = None
    if draft.prerequisites != before.prerequisites:
        found = await tasks.statuses(tx, draft.prerequisites)
        _refuse_unknown(draft.prerequisites, found)
        unmet = _unmet(found)
        await _refuse_cycle(tx, task_id, draft.prerequisites)
        await tasks.need_instead(tx, task_id, draft.prerequisites)
    await tasks.update(
        tx,
        task_id,
        role=draft.role,
        title=draft.title,
        body=draft.body,
        priority=draft.priority,
        status=draft.status,
        unmet=unmet,
    )
    if draft.status is TaskStatus.DONE is not standing.status:
        await tasks.open_gates(tx, task_id)
    elif standing.status is TaskStatus.DONE is not draft.status:
        await tasks.close_gates(tx, task_id)
    changed = [name for name, value in asdict(draft).items() if value != getattr(before, name)]
    detail: dict[str, object] = {"fields": changed}
    if draft.status is not standing.status:
        detail |= {"was": standing.status.value, "status": draft.status.value}
    await _note(tx, caller, Action.UPDATE, task_id, detail)
    return await there(tx, task_id)


async def delete(tx: Tx, caller: Caller, task_id: str) -> None:
    """Delete a task that nobody holds and no other task needs.

    Raises:
        Missing: there is none of this id.
        Conflict: ``task_held``, naming the holder; ``task_needed``, naming some of those that need it.
    """
    await tasks.hold(tx, [task_id])
    standing = await there(tx, task_id)
    _refuse_held(standing, "deleted")
    needing = await tasks.dependants(tx, task_id, DEPENDANTS_NAMED)
    if needing:
        raise Conflict(
            f"Other tasks need task {task_id}: {', '.join(needing)}. Take it out of their prerequisites first, or cancel "
            "it and leave it on the board.",
            code="task_needed",
            data={"tasks": needing},
        )
    await tasks.delete(tx, task_id)
    await _note(tx, caller, Action.DELETE, task_id, {"role": standing.role, "dedup_key": standing.dedup_key})


def _named(patch: Mapping[str, Any]) -> list[str]:
    """The tasks that a patch names as prerequisites, whatever else is wrong with it."""
    given = patch.get("prerequisites")
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


async def _standing(tx: Tx, draft: TaskDraft) -> MadeTask | None:
    """The task that the draft's dedup key has made already."""
    found = None if draft.dedup_key is None else await tasks.under_key(tx, draft.dedup_key)
    if found is None:
        return None
    task_id, mark = found
    if mark != _mark(draft):
        raise Invalid(
            [Fault("dedup_key", f"has made another task already: {task_id}. Use a new key for other work")],
            code="dedup_key_reused",
            data={"task_id": task_id},
        )
    return MadeTask(await there(tx, task_id), existed=True)


def _mark(draft: TaskDraft) -> str:
    """A digest of what was written: two spellings of one body are the same body."""
    said = [draft.role, draft.title, draft.body, draft.priority, draft.prerequisites]
    return hashlib.blake2b(json.dumps(said, separators=(",", ":")).encode(), digest_size=16).hexdigest()


def _unmet(found: Mapping[str, TaskStatus]) -> int:
    return sum(1 for status in found.values() if status is not TaskStatus.DONE)


def _refuse_unknown(wanted: Sequence[str], found: Mapping[str, TaskStatus]) -> None:
    faults = [
        Fault("prerequisites", f'names a task that is not there: "{task_id}"')
        for task_id in wanted
        if task_id not in found
    ]
    if faults:
        raise Invalid(faults)


def _refuse_held(task: Task, what: str) -> None:
    held = task.held_by
    if held is not None:
        raise Conflict(
            f'Task {task.id} can\'t be {what}: "{held.instance}" holds it until {rfc3339(held.expires_at)}. Wait for its '
            f"report, or release it by force first: gnomon tasks release {task.id}, or POST /v1/tasks/{task.id}/release.",
            code="task_held",
            data={
                "holder": held.instance,
                "task_fence": held.fence,
                "expires_at": rfc3339(held.expires_at),
            },
        )


def _refuse_transition(was: TaskStatus, wanted: TaskStatus) -> None:
    allowed = TRANSITIONS[was] - {TaskStatus.IN_PROGRESS}
    if wanted is was or wanted in allowed:
        return
    message = f"can't become {wanted.value} from {was.value}; it can become {', '.join(sorted(allowed))}"
    if wanted is TaskStatus.IN_PROGRESS:
        message = "becomes in_progress by a claim alone: POST /v1/tasks/claim"
    raise Invalid([Fault("status", message)])


async def _refuse_cycle(tx: Tx, task_id: str, prerequisites: Sequence[str]) -> None:
    needs = await tasks.needs_above(tx, prerequisites)
    cycle = cycle_from(task_id, {**needs, task_id: list(prerequisites)})
    if cycle is not None:
        raise Invalid(
            [Fault("prerequisites", f"would close a cycle: {' needs '.join(cycle)}")],
            code="dependency_cycle",
            data={"cycle": list(cycle)},
        )


async def _note(tx: Tx, caller: Caller, action: Action, task_id: str, detail: dict[str, object]) -> None:
    await audit.append(
        tx, actor=caller.actor, action=action, subject_kind="task", subject_id=task_id, detail=detail
    )
