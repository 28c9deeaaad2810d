"""Tasks as JSON: how the API describes what is written and read of them, and how a claim is answered."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from gnomon.domain import task_form as forms
from gnomon.domain.instance import NAME_CHARACTERS
from gnomon.domain.instants import rfc3339
from gnomon.domain.task import TaskGrant, TaskStatus, to_json
from gnomon.edges.http.shapes import SLUG, Listing, Written
from gnomon.services.tasks import REASON_CHARACTERS, Renewed

_FENCE = Field(ge=0, le=forms.LARGEST_FENCE, description="The number that the claim was given")
_INSTANCE = Field(
    None,
    min_length=1,
    max_length=NAME_CHARACTERS,
    description="Who holds the task; needed where another key claimed it",
)


class TaskFields(Written):
    """What a task is written with."""

    body: str | None = Field(None, max_length=forms.BODY_CHARACTERS)
    priority: int | None = Field(
        None, ge=forms.PRIORITY[0], le=forms.PRIORITY[1], description="Higher comes first"
    )
    prerequisites: list[str] | None = Field(
        None, max_length=forms.MOST_PREREQUISITES, description="Tasks that must be done before, of any role"
    )


class TaskWrite(TaskFields):
    """A task as it is made."""

    role: str = Field(pattern=SLUG, description="Whose instances may claim it")
    title: str = Field(min_length=1, max_length=forms.TITLE_CHARACTERS)
    dedup_key: str | None = Field(
        None,
        min_length=1,
        max_length=forms.DEDUP_KEY_CHARACTERS,
        description="The name under which it exists once: a repeat answers with what is there",
    )


class TaskEdit(TaskFields):
    """A patch of a task that nobody holds; ``prerequisites`` are replaced whole."""

    role: str | None = Field(None, pattern=SLUG)
    title: str | None = Field(None, min_length=1, max_length=forms.TITLE_CHARACTERS)
    status: TaskStatus | None = Field(None, description="Any but in_progress, which is a claim's")


class ClaimWrite(Written):
    """A wish for tasks."""

    role: str = Field(pattern=SLUG)
    instance: str = Field(
        min_length=1, max_length=NAME_CHARACTERS, description="The name of who will work on them"
    )
    limit: int | None = Field(None, ge=1, le=forms.MOST_CLAIMED, description="At most so many; one by itself")
    claim_id: str | None = Field(
        None,
        min_length=1,
        max_length=forms.CLAIM_ID_CHARACTERS,
        description="A name of this wish: repeated, it gives what is still held by it",
    )
    wait_seconds: float | None = Field(
        None, ge=0, le=forms.MOST_WAIT_SECONDS, description="How long to wait where there is nothing yet"
    )


class RenewWrite(Written):
    """A renewal by the holder."""

    fence: int = _FENCE
    instance: str | None = _INSTANCE
    note: str | None = Field(
        None,
        max_length=forms.NOTE_CHARACTERS,
        description="How far it has come, for whoever must go on after a loss",
    )


class ReportWrite(Written):
    """A report by the holder, which releases the task."""

    fence: int = _FENCE
    instance: str | None = _INSTANCE
    status: TaskStatus = Field(description="Any but in_progress")
    note: str | None = Field(None, max_length=forms.NOTE_CHARACTERS)
    result: Any = Field(
        None, description=f"Any JSON, of up to {forms.RESULT_CHARACTERS:,} characters as text"
    )
    role: str | None = Field(
        None,
        pattern=SLUG,
        description="With the status backlog: the role that it is handed over to",
    )


class ReleaseWrite(Written):
    """A release by a person."""

    reason: str | None = Field(None, max_length=REASON_CHARACTERS)
    status: TaskStatus | None = Field(
        None, description="What the task becomes: the backlog's again, or any but in_progress"
    )


class NeedShape(BaseModel):
    """A prerequisite that is not done, and how it stands."""

    id: str
    status: TaskStatus


class HolderShape(BaseModel):
    """Who holds a task, by name and id, until ``expires_at`` unless they renew."""

    instance: str
    instance_id: str
    fence: int
    since: datetime
    expires_at: datetime


class LastReport(BaseModel):
    """What a holder said last; ``in_progress`` where it said so with a renewal."""

    status: TaskStatus
    note: str | None
    result: Any
    role: str | None
    instance: str
    fence: int
    at: datetime


class TaskShape(BaseModel):
    """A task as it is read; while ``waits_for`` names anything, nobody can claim it."""

    id: str
    role: str
    title: str
    body: str
    priority: int
    status: TaskStatus
    prerequisites: list[str]
    waits_for: list[NeedShape]
    dedup_key: str | None
    fence: int
    possibly_half_done: bool
    last_report: LastReport | None
    held_by: HolderShape | None
    created_at: datetime
    created_by: str
    updated_at: datetime


class TaskPage(Listing):
    """One page of tasks, the oldest first."""

    items: list[TaskShape]


class GrantShape(BaseModel):
    """One claimed task. ``verify_first``: the last holder may have left half of the work, so look before you begin."""

    task: TaskShape
    fence: int
    expires_at: datetime
    verify_first: bool
    claim_id: str
    renew_seconds: float


class Grants(BaseModel):
    """What was claimed; empty where there is nothing."""

    items: list[GrantShape]


class RenewedShape(BaseModel):
    """A renewed claim; renew again within ``renew_seconds``."""

    fence: int
    expires_at: datetime
    renew_seconds: float
    task: TaskShape


def grant_json(grant: TaskGrant, renew_seconds: float) -> dict[str, Any]:
    """One claimed task (CONTRACT, HTTP)."""
    return {
        "task": to_json(grant.task),
        "fence": grant.fence,
        "expires_at": rfc3339(grant.expires_at),
        "verify_first": grant.verify_first,
        "claim_id": grant.claim_id,
        "renew_seconds": renew_seconds,
    }


def renewed_json(renewed: Renewed, renew_seconds: float) -> dict[str, Any]:
    """A renewed claim."""
    return {
        "fence": renewed.task.fence,
        "expires_at": rfc3339(renewed.expires_at),
        "renew_seconds": renew_seconds,
        "task": to_json(renewed.task),
    }
