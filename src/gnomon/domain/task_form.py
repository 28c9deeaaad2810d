"""What people and instances write about tasks: a new one, a patch, a claim, a renewal, a report (CONTRACT, HTTP)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnomon.domain.form import Form, merged
from gnomon.domain.instance import read_name
from gnomon.domain.task import REPORTABLE, Task, TaskStatus

TITLE_CHARACTERS = 200
BODY_CHARACTERS = 100_000
PRIORITY = (-1_000_000, 1_000_000)
MOST_PREREQUISITES = 1_000
DEDUP_KEY_CHARACTERS = 200
MOST_CLAIMED = 100
CLAIM_ID_CHARACTERS = 200
MOST_WAIT_SECONDS = 30
NOTE_CHARACTERS = 10_000
RESULT_CHARACTERS = 100_000
LARGEST_FENCE = 2**63 - 1
_WRITTEN = ("role", "title", "body", "priority", "prerequisites", "dedup_key")
_EDITED = ("role", "title", "body", "priority", "prerequisites", "status")
_READ_ONLY = (
    "id",
    "waits_for",
    "fence",
    "possibly_half_done",
    "last_report",
    "held_by",
    "created_at",
    "created_by",
    "updated_at",
)
_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task as it was written; each prerequisite once, in the order of the ids."""

    role: str
    title: str
    body: str
    priority: int
    prerequisites: tuple[str, ...]
    dedup_key: str | None = None
    status: TaskStatus = TaskStatus.BACKLOG


@dataclass(frozen=True, slots=True)
class ClaimForm:
    """A wish for up to ``limit`` tasks; ``claim_id`` names the wish, so that it can be repeated (RUN-5a)."""

    role: str
    instance: str
    limit: int
    claim_id: str | None
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class RenewForm:
    """A renewal; ``instance`` is who says that it holds the task, ``note`` how far it has come."""

    fence: int
    instance: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class ReportForm:
    """A report; ``role`` is the one that the task is handed over to, ``result`` any JSON."""

    fence: int
    status: TaskStatus
    note: str | None
    result: Any
    role: str | None
    instance: str | None


def read_new(form: Form) -> TaskDraft:
    """A new task as far as it can be read; its faults are the form's."""
    form.only(_WRITTEN, (*_READ_ONLY, "status"))
    draft = _read(form)
    dedup_key = form.text("dedup_key", 1, DEDUP_KEY_CHARACTERS)
    return TaskDraft(draft.role, draft.title, draft.body, draft.priority, draft.prerequisites, dedup_key)


def read_edit(task: Task, patch: Mapping[str, Any]) -> TaskDraft:
    """A task with a patch laid over it.

    Raises:
        Invalid: with every fault.
    """
    form = Form(patch)
    form.only(_EDITED, _READ_ONLY)
    if "dedup_key" in patch:
        form.faults = [fault for fault in form.faults if fault.field != "dedup_key"]
        form.fault("dedup_key", "can't be changed: it is the name under which the task exists once")
    whole = Form(merged(to_written(task), patch), faults=form.faults)
    draft = _read(whole)
    status = whole.choice("status", [status.value for status in TaskStatus], default=task.status.value)
    whole.finish()
    return TaskDraft(
        draft.role,
        draft.title,
        draft.body,
        draft.priority,
        draft.prerequisites,
        task.dedup_key,
        TaskStatus(status or task.status),
    )


def read_claim(form: Form) -> ClaimForm:
    """A claim as far as it can be read."""
    form.only(("role", "instance", "limit", "claim_id", "wait_seconds"))
    return ClaimForm(
        form.slug("role", required=True) or "",
        read_name(form, "instance") or "",
        form.integer("limit", 1, MOST_CLAIMED, default=1) or 1,
        form.text("claim_id", 1, CLAIM_ID_CHARACTERS),
        form.number("wait_seconds", 0, MOST_WAIT_SECONDS, default=0.0) or 0.0,
    )


def read_renew(form: Form) -> RenewForm:
    """A renewal as far as it can be read."""
    form.only(("fence", "instance", "note"))
    fence, instance = _held(form)
    return RenewForm(fence, instance, form.text("note", 0, NOTE_CHARACTERS, line=False))


def read_report(form: Form) -> ReportForm:
    """A report as far as it can be read."""
    form.only(("fence", "status", "note", "result", "role", "instance"))
    fence, instance = _held(form)
    allowed = sorted(status.value for status in REPORTABLE)
    status = form.choice("status", allowed, required=True)
    role = form.slug("role")
    if role is not None and status is not None and status != TaskStatus.BACKLOG:
        form.fault("role", 'goes with the status "backlog": the task then waits in the backlog of that role')
    result = form.given.get("result")
    if result is not None and len(written_result(result)) > RESULT_CHARACTERS:
        form.fault("result", f"must have at most {RESULT_CHARACTERS:,} characters as JSON")
    return ReportForm(
        fence,
        TaskStatus(status or TaskStatus.BACKLOG),
        form.text("note", 0, NOTE_CHARACTERS, line=False),
        result,
        role,
        instance,
    )


def written_result(result: Any) -> str:
    """A result as it is kept."""
    return json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def to_written(task: Task) -> dict[str, Any]:
    """The written form of a record."""
    return {
        "role": task.role,
        "title": task.title,
        "body": task.body,
        "priority": task.priority,
        "prerequisites": [need.task_id for need in task.needs],
        "status": task.status.value,
    }


def draft_of(task: Task) -> TaskDraft:
    """A record as if it had just been written so."""
    return TaskDraft(
        task.role,
        task.title,
        task.body,
        task.priority,
        tuple(need.task_id for need in task.needs),
        task.dedup_key,
        task.status,
    )


def _read(form: Form) -> TaskDraft:
    prerequisites = form.texts("prerequisites", 0, MOST_PREREQUISITES, 1, _ID_CHARACTERS)
    return TaskDraft(
        form.slug("role", required=True) or "",
        form.text("title", 1, TITLE_CHARACTERS, required=True) or "",
        form.text("body", 0, BODY_CHARACTERS, default="", line=False) or "",
        form.integer("priority", *PRIORITY, default=0) or 0,
        tuple(sorted(set(prerequisites))),
    )


def _held(form: Form) -> tuple[int, str | None]:
    fence = form.integer("fence", 0, LARGEST_FENCE, required=True)
    instance = read_name(form, "instance") if form.has("instance") else None
    return fence or 0, instance
