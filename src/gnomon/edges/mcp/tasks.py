"""Tools over the board for whoever only looks: list tasks, read one, put one on it."""

from typing import Any

from pydantic import BaseModel, Field

from gnomon.domain.filters import TaskFilter
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.domain.task import Report, Task, TaskStatus
from gnomon.domain.task_form import BODY_CHARACTERS, DEDUP_KEY_CHARACTERS, TITLE_CHARACTERS
from gnomon.edges.mcp.paging import CURSOR, LIMIT, page_of
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Asked, Given, Instant, Seat, Side, tool
from gnomon.services.dedup import Replay

ID: Any = Field(description="The task's id (tsk_…)", min_length=1, max_length=64)
PREREQUISITES = 100


class ReportShown(BaseModel):
    """What a holder last said of a task."""

    status: TaskStatus
    note: str | None
    result: Any
    instance: str
    at: Instant


class HolderShown(BaseModel):
    """Who works on a task."""

    instance: str
    since: Instant
    expires_at: Instant


class TaskBrief(BaseModel):
    """A task as lists show it. While ``waits_for`` names a task that is not done, nobody can claim it."""

    id: str
    role: str
    title: str
    priority: int
    status: TaskStatus
    waits_for: list[str]
    dedup_key: str | None
    possibly_half_done: bool
    held_by: HolderShown | None
    updated_at: Instant


class TaskShown(TaskBrief):
    """A whole task."""

    body: str
    prerequisites: list[str]
    last_report: ReportShown | None
    created_at: Instant
    created_by: str


class TasksAsked(Asked):
    """Which tasks."""

    role: str | None = Field(None, description="Only those of this role", min_length=1, max_length=64)
    status: TaskStatus | None = Field(None, strict=False, description="Only those in this status")
    holder: str | None = Field(
        None,
        description="Only those that this instance works on, by name or id",
        min_length=1,
        max_length=200,
    )
    limit: int = LIMIT
    cursor: str | None = CURSOR


class TasksGiven(Given):
    """A page of tasks."""

    tasks: list[TaskBrief]
    next_cursor: str | None


@tool(Side.OPERATOR, Scope.TASKS_READ, reads=True)
async def list_tasks(services: Services, seat: Seat, asked: TasksAsked) -> TasksGiven:
    """List the tasks on the board, the oldest first.

    Each with who works on it and what it waits for. To get work, call next_task instead: a task that is listed is not
    yours.
    """
    chosen = TaskFilter(role=asked.role, status=asked.status, holder=asked.holder)
    found = await services.tasks.page(seat.caller, chosen, asked.cursor or "", asked.limit + 1)
    shown, cursor = page_of(found, asked.limit, lambda task: task.id)
    last = (
        "More follow: call list_tasks with this next_cursor as cursor and the same filters."
        if cursor
        else "These are all. get_task shows one with its body and its last report."
    )
    return TasksGiven(tasks=[TaskBrief(**_brief(task)) for task in shown], next_cursor=cursor, next=last)


class TaskAsked(Asked):
    """Which task."""

    task_id: str = ID


class TaskGiven(Given):
    """One task."""

    task: TaskShown


@tool(Side.WORKER, Scope.TASKS_READ, reads=True)
async def get_task(services: Services, seat: Seat, asked: TaskAsked) -> TaskGiven:
    """Read one task.

    Its body, its status, who works on it, what it waits for, and what was last reported of it: the answer, where it is a
    question that was asked with ask_human.
    """
    task = await services.tasks.get(seat.caller, asked.task_id)
    return TaskGiven(task=shown_task(task), next=_how_it_stands(task))


class NewTaskAsked(Asked):
    """The task as it is written."""

    role: str = Field(description="Who is to do it, such as writer or human", min_length=1, max_length=64)
    title: str = Field(description="One line", min_length=1, max_length=TITLE_CHARACTERS)
    body: str = Field("", description="All that whoever does it has to know", max_length=BODY_CHARACTERS)
    priority: int = Field(0, description="Higher is done earlier", ge=-1_000_000, le=1_000_000)
    prerequisites: list[str] = Field(
        default=[], description="Ids of tasks that must be done first", max_length=PREREQUISITES
    )
    dedup_key: str = Field(
        description="The name under which this task may exist once, made of what makes it unique, such as "
        "fix-login:2026-W48: a repeat gives the task that is there",
        min_length=1,
        max_length=DEDUP_KEY_CHARACTERS,
    )


class NewTaskGiven(TaskGiven):
    """The task under this key; ``existed`` where it was there before."""

    existed: bool


@tool(Side.WORKER, Scope.TASKS_WRITE, repeats=True)
async def create_task(services: Services, seat: Seat, asked: NewTaskAsked) -> NewTaskGiven:
    """Put a task on the board, once under its dedup_key.

    Some instance of its role claims it. Choose the dedup_key before you call, from the work itself and not from the
    clock: after a lost answer, or when another agent had the same thought, the same key gives the task that is there.
    """
    made = await services.tasks.create(seat.caller, asked.model_dump())
    assert not isinstance(made, Replay)  # there is no Idempotency-Key
    last = (
        "It was there before: do not create it again under another key."
        if made.existed
        else "It is on the board; whoever serves its role claims it. Go on with your own work."
    )
    return NewTaskGiven(task=shown_task(made.task), existed=made.existed, next=last)


def shown_task(task: Task) -> TaskShown:
    """A whole task."""
    last = task.last_report
    return TaskShown(
        **_brief(task),
        body=task.body,
        prerequisites=[need.task_id for need in task.needs],
        last_report=None if last is None else report_shown(last),
        created_at=rfc3339(task.created_at),
        created_by=task.created_by,
    )


def report_shown(report: Report) -> ReportShown:
    """What a holder last said."""
    return ReportShown(
        status=report.status,
        note=report.note,
        result=report.result,
        instance=report.instance,
        at=rfc3339(report.at),
    )


def _brief(task: Task) -> dict[str, Any]:
    held = task.held_by
    return {
        "id": task.id,
        "role": task.role,
        "title": task.title,
        "priority": task.priority,
        "status": task.status,
        "waits_for": [need.task_id for need in task.waits_for],
        "dedup_key": task.dedup_key,
        "possibly_half_done": task.possibly_half_done,
        "held_by": None
        if held is None
        else HolderShown(
            instance=held.instance, since=rfc3339(held.since), expires_at=rfc3339(held.expires_at)
        ),
        "updated_at": rfc3339(task.updated_at),
    }


def _how_it_stands(task: Task) -> str:
    if task.held_by is not None:
        return f"{task.held_by.instance!r} works on it. Unless that is you, leave it alone."
    if task.status is TaskStatus.BACKLOG:
        return "Nobody works on it. Do not begin it because you have read it: next_task hands tasks out."
    return f"It is {task.status.value}; there is nothing to do for it now."


TOOLS = (get_task, create_task, list_tasks)
