"""One piece of work on the board: its states, their transitions, its record, and the check for cycles (BRD-1, BRD-8).

Pure: who holds a task, and until when, is decided by the database's clock and told here as it was.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from gnomon.domain.instants import rfc3339


class TaskStatus(StrEnum):
    """Where a task stands."""

    BACKLOG = "backlog"  # waits for an instance of its role, or for what it needs
    IN_PROGRESS = "in_progress"  # somebody holds it, and nobody else can
    IN_REVIEW = "in_review"  # waits for a person's word
    BLOCKED = "blocked"  # can't go on until a person has done something
    DONE = "done"
    CANCELLED = "cancelled"


_S = TaskStatus
# The default workflow. Into in_progress leads a claim and nothing else; out of it lead a report, a release, a sweep.
TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    _S.BACKLOG: frozenset({_S.IN_PROGRESS, _S.BLOCKED, _S.DONE, _S.CANCELLED}),
    _S.IN_PROGRESS: frozenset({_S.BACKLOG, _S.IN_REVIEW, _S.BLOCKED, _S.DONE, _S.CANCELLED}),
    _S.IN_REVIEW: frozenset({_S.BACKLOG, _S.BLOCKED, _S.DONE, _S.CANCELLED}),
    _S.BLOCKED: frozenset({_S.BACKLOG, _S.DONE, _S.CANCELLED}),
    # what is over can be opened again by a person; what depended on it is gated again where nobody has begun it
    _S.DONE: frozenset({_S.BACKLOG}),
    _S.CANCELLED: frozenset({_S.BACKLOG}),
}
REPORTABLE = TRANSITIONS[_S.IN_PROGRESS]
OVER = frozenset({_S.DONE, _S.CANCELLED})


@dataclass(frozen=True, slots=True)
class Need:
    """A prerequisite, and how it stands: only ``done`` opens the gate."""

    task_id: str
    status: TaskStatus


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a task: the instance by id and by name, under which fence, since when, and until when unless renewed."""

    instance_id: str
    instance: str
    fence: int
    since: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Report:
    """What a holder last said: ``in_progress`` with a renewal, any other status with its release.

    ``role`` is the one that the task was handed over to.
    """

    status: TaskStatus
    note: str | None
    result: Any
    role: str | None
    instance: str
    fence: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Task:
    """The record of one task (CONTRACT, "Task"). ``fence`` is the last one that was granted; it never falls."""

    id: str
    role: str
    title: str
    body: str
    priority: int
    status: TaskStatus
    needs: tuple[Need, ...]
    dedup_key: str | None
    fence: int
    possibly_half_done: bool
    last_report: Report | None
    held_by: Holder | None
    created_at: datetime
    created_by: str
    updated_at: datetime

    @property
    def waits_for(self) -> tuple[Need, ...]:
        """The prerequisites that are not done: while there is one, nobody can claim the task."""
        return tuple(need for need in self.needs if need.status is not TaskStatus.DONE)


@dataclass(frozen=True, slots=True)
class TaskGrant:
    """One claim: the task as it was taken, under which fence, until when; whether to look first what is there (BRD-6)."""

    task: Task
    fence: int
    claim_id: str
    expires_at: datetime

    @property
    def verify_first(self) -> bool:
        """Whether the last holder may have left half of the work."""
        return self.task.possibly_half_done


def cycle_from(task_id: str, needs: Mapping[str, Collection[str]]) -> tuple[str, ...] | None:
    """A cycle that following needs from a task leads into, with its first task again at its end (BRD-8).

    It begins with the task itself where that is part of it. ``None`` where there is none. ``needs`` says what each task
    needs; a task that is missing there needs nothing.
    """
    reachable: dict[str, Collection[str]] = {}
    frontier = [task_id]
    while frontier:
        name = frontier.pop()
        if name not in reachable:
            reachable[name] = needs.get(name, ())
            frontier += reachable[name]
    try:
        TopologicalSorter(reachable).prepare()
    except CycleError as error:
        walk: list[str] = error.args[1][::-1]  # the library names them from a need to whoever needs it
        start = walk.index(task_id) if task_id in walk else 0
        return (*walk[start:-1], *walk[:start], walk[start])
    return None


def to_json(task: Task) -> dict[str, Any]:
    """The read form (CONTRACT, "Task")."""
    held = task.held_by
    return {
        "id": task.id,
        "role": task.role,
        "title": task.title,
        "body": task.body,
        "priority": task.priority,
        "status": task.status.value,
        "prerequisites": [need.task_id for need in task.needs],
        "waits_for": [{"id": need.task_id, "status": need.status.value} for need in task.waits_for],
        "dedup_key": task.dedup_key,
        "fence": task.fence,
        "possibly_half_done": task.possibly_half_done,
        "last_report": None if task.last_report is None else report_json(task.last_report),
        "held_by": None
        if held is None
        else {
            "instance": held.instance,
            "instance_id": held.instance_id,
            "fence": held.fence,
            "since": rfc3339(held.since),
            "expires_at": rfc3339(held.expires_at),
        },
        "created_at": rfc3339(task.created_at),
        "created_by": task.created_by,
        "updated_at": rfc3339(task.updated_at),
    }


def report_json(report: Report) -> dict[str, Any]:
    """What a holder last said, as it is read."""
    return {
        "status": report.status.value,
        "note": report.note,
        "result": report.result,
        "role": report.role,
        "instance": report.instance,
        "fence": report.fence,
        "at": rfc3339(report.at),
    }
