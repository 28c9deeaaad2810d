"""Who holds which task: claims, renewals, reports, releases, each inside a transaction of the caller (BRD-1 to BRD-3).

A refusal is a return value where it has to be remembered: the audit entry of a write with an old fence is committed,
and the error is raised after that.
"""

import json
from dataclasses import dataclass

from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, FenceStale, Missing
from gnomon.domain.instance import InstanceStatus
from gnomon.domain.instants import from_micros
from gnomon.domain.task import Report, Task, TaskGrant, TaskStatus
from gnomon.domain.task_form import ClaimForm, RenewForm, ReportForm
from gnomon.stores import audit, instances, tasks
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Tx
from gnomon.stores.tasks import Hold, Lock


@dataclass(frozen=True, slots=True)
class Claimer:
    """Who claims, and for how long (microseconds); ``instance_id`` is used where the instance has never been seen."""

    caller: Caller
    instance_id: str
    claim_id: str
    lock_us: int


@dataclass(frozen=True, slots=True)
class Reported:
    """A task as a report left it, and the role that it was of.

    ``replayed`` where that very report had been taken before; ``frees`` where there may be more to claim for it.
    """

    task: Task
    role: str
    replayed: bool = False
    frees: bool = False


async def claim(tx: Tx, claimer: Claimer, form: ClaimForm) -> list[TaskGrant]:
    """Up to ``form.limit`` tasks for an instance; none where it is draining, and so gets nothing new.

    A claim id under which the instance holds tasks gives these again and takes none (RUN-5a).
    """
    row = await instances.seen(tx, claimer.instance_id, form.role, form.instance)
    if form.claim_id is not None:
        standing = await tasks.under_claim(tx, row["id"], form.claim_id)
        if standing:
            return await _grants(tx, standing, form.claim_id)
    if row["status"] == InstanceStatus.DRAINING:
        return []
    taken = await tasks.claim(
        tx,
        form.role,
        row["id"],
        claim_id=claimer.claim_id,
        claimed_by=claimer.caller.actor,
        lock_us=claimer.lock_us,
        limit=form.limit,
    )
    if not taken:
        return []
    detail = {"instance": form.instance, "role": form.role}
    actor = claimer.caller.actor
    await audit.append_many(
        tx, [new_entry(actor, Action.CLAIM, "task", lock.task_id, lock.fence, detail) for lock in taken]
    )
    return await _grants(tx, taken, claimer.claim_id)


async def renew(tx: Tx, held: Hold, form: RenewForm, lock_us: int) -> Task | FenceStale:
    """Hold a task for another lock window from now on, and keep what its holder says of it (BRD-2, BRD-6)."""
    row = await tasks.renew(tx, held, lock_us)
    if row is None:
        return await _fenced(tx, held, "renew", await there(tx, held.task_id))
    if form.note:
        said = ReportForm(form.fence, TaskStatus.IN_PROGRESS, form.note, None, None, None)
        await tasks.note(tx, held.task_id, held.fence, _kept(said, row["instance"]))
    await instances.seen(tx, "", row["role"], row["instance"])
    await _note(tx, held, Action.RENEW, {"instance": row["instance"]})
    return await there(tx, held.task_id)


async def report(tx: Tx, held: Hold, form: ReportForm) -> Reported | FenceStale:
    """The transition and the release in one: the lock goes, the task moves on, gates open (BRD-3).

    A report that was taken before, whose answer was lost, is told so and has no second effect, as long as nobody has
    claimed the task since.
    """
    row = await tasks.release(tx, held)
    if row is None:
        task = await there(tx, held.task_id)
        if _is_told_already(task, held, form):
            return Reported(task, task.role, replayed=True)
        return await _fenced(tx, held, "report", task)
    kept = _kept(form, row["instance"])
    frees = await _move(tx, held.task_id, held.fence, form.status, form.role, kept)
    await instances.seen(tx, "", row["role"], row["instance"])
    detail: dict[str, object] = {"status": form.status.value, "instance": row["instance"]}
    if form.role is not None:
        detail["role"] = form.role
    await _note(tx, held, Action.RELEASE, detail)
    return Reported(await there(tx, held.task_id), row["role"], frees=frees)


async def release_by_force(
    tx: Tx, caller: Caller, task_id: str, status: TaskStatus, reason: str | None
) -> Task:
    """Take a task from whoever holds it, by a person's word; what was done of it is not known (BRD-6).

    Raises:
        Missing: there is no such task.
        Conflict: ``task_not_held``.
    """
    row = await tasks.release_by_force(tx, task_id)
    if row is None:
        task = await there(tx, task_id)
        raise Conflict(
            f"Nobody holds task {task_id}: it is {task.status.value}.",
            code="task_not_held",
            data={"status": task.status.value},
        )
    await _move(tx, task_id, row["fence"], status, None, None, half_done=status is not TaskStatus.DONE)
    detail: dict[str, object] = {"status": status.value, "instance": row["instance"], "by_force": True}
    if reason is not None:
        detail["reason"] = reason
    await _note(tx, Hold(task_id, row["fence"], caller.actor), Action.RELEASE, detail)
    return await there(tx, task_id)


async def there(tx: Tx, task_id: str) -> Task:
    """The task of this id.

    Raises:
        Missing: there is none.
    """
    found = await tasks.get(tx, task_id)
    if found is None:
        raise Missing(f'There is no task "{task_id[:64]}".')
    return found


async def _grants(tx: Tx, locks: list[Lock], claim_id: str) -> list[TaskGrant]:
    found = await tasks.records(tx, [lock.task_id for lock in locks])
    grants = [
        TaskGrant(found[lock.task_id], lock.fence, claim_id, from_micros(lock.expires_at)) for lock in locks
    ]
    return sorted(grants, key=lambda grant: (-grant.task.priority, grant.task.id))


async def _move(  # noqa: PLR0917 - what a release says of a task, in full
    tx: Tx,
    task_id: str,
    fence: int,
    status: TaskStatus,
    role: str | None,
    kept: str | None,
    *,
    half_done: bool = False,
) -> bool:
    """Write what a release says; whether there may be more to claim for it."""
    moved = await tasks.move(tx, task_id, fence, status, role, kept, half_done=half_done)
    if not moved:  # a lock is there while its task is in progress, and no longer
        raise AssertionError(f"task {task_id} was locked under fence {fence} and was not in progress")
    if status is TaskStatus.DONE:
        return await tasks.open_gates(tx, task_id) > 0
    return status is TaskStatus.BACKLOG


def _kept(form: ReportForm, instance: str) -> str:
    """What a holder said, as it is kept: the instant is beside it."""
    said = {
        "status": form.status.value,
        "note": form.note,
        "result": form.result,
        "role": form.role,
        "instance": instance,
        "fence": form.fence,
    }
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _is_told_already(task: Task, held: Hold, form: ReportForm) -> bool:
    last = task.last_report
    return (
        last is not None
        and task.fence == held.fence == last.fence
        and task.held_by is None
        and _said(last) == _said(form)
        and held.instance in (None, last.instance)
    )


def _said(report: Report | ReportForm) -> tuple[object, ...]:
    return report.status, report.note, report.result, report.role


async def _fenced(tx: Tx, held: Hold, refused: str, task: Task) -> FenceStale:
    detail: dict[str, object] = {"refused": refused}
    if held.instance is not None:
        detail["instance"] = held.instance
    await _note(tx, held, Action.FENCED, detail)
    holder = None if task.held_by is None else task.held_by.instance
    return FenceStale(
        f"{_why(task, held)} Nothing was changed. Stop working on it.",
        data={
            "task_id": task.id,
            "task_status": task.status.value,
            "task_fence": task.fence,
            "holder": holder,
        },
    )


def _why(task: Task, held: Hold) -> str:
    holder = task.held_by
    if held.fence > task.fence:
        return f"Fence {held.fence} of task {task.id} was never granted; the last one is {task.fence}."
    if holder is not None and holder.fence == held.fence:
        return (
            f'Task {task.id} was claimed under fence {held.fence} by "{holder.instance}" with another key: name the '
            "instance in the request if you are it."
            if held.instance is None
            else f'Task {task.id} is held by "{holder.instance}", not by "{held.instance}".'
        )
    if holder is not None:
        return (
            f'Your claim of task {task.id} under fence {held.fence} has ended, and "{holder.instance}" holds it now under '
            f"fence {holder.fence}."
        )
    if task.last_report is not None and task.last_report.fence == held.fence == task.fence:
        said = task.last_report.status.value
        if said != TaskStatus.IN_PROGRESS:
            return f"Task {task.id} was reported as {said} under fence {held.fence} already."
    return (
        f"Your claim of task {task.id} under fence {held.fence} has ended: it was not renewed in time, or a person took it "
        f"back. The task is {task.status.value} now."
    )


async def _note(tx: Tx, held: Hold, action: Action, detail: dict[str, object]) -> None:
    await audit.append(
        tx,
        actor=held.actor,
        action=action,
        subject_kind="task",
        subject_id=held.task_id,
        fence=held.fence,
        detail=detail,
    )
