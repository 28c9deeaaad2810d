"""Tools for whoever works on tasks: claim, renew, tell how far it is, report (BRD-1 to BRD-3, UI-5).

The protocol has no sessions, so task and fence are arguments of every call; a claim holds by them alone.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.instance import NAME_CHARACTERS
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.domain.task import TaskGrant
from gnomon.domain.task_form import CLAIM_ID_CHARACTERS, LARGEST_FENCE, MOST_WAIT_SECONDS, NOTE_CHARACTERS
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tasks import ID, ReportShown, TaskShown, report_shown, shown_task
from gnomon.edges.mcp.tool import Asked, Given, Instant, Seat, Side, tool

NEEDS_TOLD = 20
_Fence: Any = Field(description="The fence that next_task gave with the task", ge=0, le=LARGEST_FENCE)


class NobodyAsked(Asked):
    """Nothing."""


class WhoGiven(Given):
    """The caller as Gnomon knows them."""

    actor: str = Field(description="What stands in the audit")
    scopes: list[str]
    role: str | None = Field(description="The role to claim for; without one, name it with next_task")
    instance: str = Field(description="The name under which you work unless you name another")
    renew_seconds: float = Field(description="Renew a claim this often")


@tool(Side.WORKER, None, reads=True)
async def whoami(services: Services, seat: Seat, asked: NobodyAsked) -> WhoGiven:  # noqa: ARG001 - it takes nothing
    """Say who you are here.

    Your role, your instance's name, what your key allows, and how often a claim has to be renewed. Call it once, first.
    """
    caller, role = seat.caller, seat.role or seat.caller.role
    works = caller.may(Scope.TASKS_CLAIM)
    last = (
        f"Call next_task{'' if role else ' with your role'} to get work."
        if works
        else "This key claims no tasks; use the tools that you see."
    )
    return WhoGiven(
        actor=caller.actor,
        scopes=list(caller.scopes),
        role=role,
        instance=seat.name,
        renew_seconds=services.tasks.renew_seconds,
        next=last,
    )


class NextAsked(Asked):
    """Work of which kind, for whom."""

    role: str | None = Field(
        None,
        description="The kind of work; may be left out where whoami names your role",
        min_length=1,
        max_length=64,
    )
    instance: str | None = Field(
        None,
        description="Your own name, the same in every call; needed only where several agents share one key",
        min_length=1,
        max_length=NAME_CHARACTERS,
    )
    wait_seconds: float = Field(
        0, description="Wait so long for work where there is none", ge=0, le=MOST_WAIT_SECONDS
    )
    claim_id: str | None = Field(
        None,
        description="A name of your making for this one wish: after a lost answer, call again with it and get the same "
        "task",
        min_length=1,
        max_length=CLAIM_ID_CHARACTERS,
    )


class NeedShown(BaseModel):
    """A task that had to be done first, and what was reported of it."""

    id: str
    title: str
    report: ReportShown | None


class NextGiven(Given):
    """A task that is yours now, or none. Keep ``task_id`` and ``fence``."""

    task_id: str | None
    fence: int | None = Field(description="Give it with every further call for this task")
    expires_at: Instant | None = Field(description="Renew before this instant, or the task is taken back")
    renew_seconds: float = Field(description="Renew this often")
    verify_first: bool = Field(description="Another one may have done half of it: look what is there first")
    task: TaskShown | None
    prerequisites: list[NeedShown] = Field(description="What was done before, with the answers to questions")


@tool(Side.WORKER, Scope.TASKS_CLAIM)
async def next_task(services: Services, seat: Seat, asked: NextAsked) -> NextGiven:
    """Get the next task to work on: it is yours alone until it expires.

    Keep task_id and fence. While you work call renew_claim at least every renew_seconds, and end with report_task. One
    task at a time. An empty answer means that there is nothing to do now.
    """
    role = asked.role or seat.role or seat.caller.role
    if role is None:
        raise Invalid([Fault("role", "is required: it says which kind of work you do")])
    wish = {
        "role": role,
        "instance": asked.instance or seat.name,
        "limit": 1,
        "claim_id": asked.claim_id,
        "wait_seconds": asked.wait_seconds,
    }
    granted = await services.tasks.claim(seat.caller, wish, is_gone=seat.is_gone)
    renew_seconds = services.tasks.renew_seconds
    if not granted:
        return NextGiven(
            task_id=None,
            fence=None,
            expires_at=None,
            renew_seconds=renew_seconds,
            verify_first=False,
            task=None,
            prerequisites=[],
            next=f'There is nothing for the role "{role}" now. Call next_task again in a minute, or with wait_seconds, or '
            "end your work here.",
        )
    grant = granted[0]
    return NextGiven(
        task_id=grant.task.id,
        fence=grant.fence,
        expires_at=rfc3339(grant.expires_at),
        renew_seconds=renew_seconds,
        verify_first=grant.verify_first,
        task=shown_task(grant.task),
        prerequisites=await _needs(services, seat, grant),
        next=_begin(grant, renew_seconds),
    )


class HeldAsked(Asked):
    """Which claim."""

    task_id: str = ID
    fence: int = _Fence


class RenewedGiven(Given):
    """How long the claim holds now."""

    task_id: str
    fence: int
    expires_at: Instant


@tool(Side.WORKER, Scope.TASKS_CLAIM, repeats=True)
async def renew_claim(services: Services, seat: Seat, asked: HeldAsked) -> RenewedGiven:
    """Keep a task that you are working on.

    Call it at least every renew_seconds. If it says that the claim is not yours any more, stop working on the task.
    """
    return await _renew(services, seat, asked, None)


class ProgressAsked(HeldAsked):
    """Which claim, and how far it is."""

    note: str = Field(
        description="What is done and what is left, so that another could go on from here",
        min_length=1,
        max_length=NOTE_CHARACTERS,
    )


@tool(Side.WORKER, Scope.TASKS_CLAIM, repeats=True)
async def log_progress(services: Services, seat: Seat, asked: ProgressAsked) -> RenewedGiven:
    """Write down how far a task is, and keep it.

    People see the note on the board, and whoever gets the task after you, should you vanish, begins with it. It takes
    the place of the note before. It renews the claim as well.
    """
    return await _renew(services, seat, asked, asked.note)


class ReportAsked(HeldAsked):
    """Which claim, and what became of the task."""

    status: Literal["done", "in_review", "blocked", "cancelled", "backlog"] = Field(
        description="done; in_review: a person has to look at it; blocked: it can't be done as things are; cancelled: it "
        "should not be done; backlog: give it back undone",
    )
    note: str | None = Field(
        None,
        description="What was done, what was found, for people and for those after you",
        max_length=NOTE_CHARACTERS,
    )
    result: Any = Field(None, description="Any JSON that programs should find")
    role: str | None = Field(
        None,
        description="With the status backlog: hand the task over to this role",
        min_length=1,
        max_length=64,
    )


class ReportedGiven(Given):
    """The task as the report left it."""

    task: TaskShown
    repeated: bool = Field(description="This very report had been taken before")


@tool(Side.WORKER, Scope.TASKS_CLAIM, destroys=True, repeats=True)
async def report_task(services: Services, seat: Seat, asked: ReportAsked) -> ReportedGiven:
    """Say what became of a task, which gives it out of your hands.

    The last call for a task. A repeat of the same report after a lost answer changes nothing. To wait for a person's
    answer call ask_human instead.
    """
    given = asked.model_dump(mode="json", exclude={"task_id"}, exclude_none=True)
    reported = await services.tasks.report(seat.caller, asked.task_id, given)
    return ReportedGiven(
        task=shown_task(reported.task),
        repeated=reported.replayed,
        next="It is out of your hands: do nothing more for it. Call next_task for more work.",
    )


async def _renew(services: Services, seat: Seat, asked: HeldAsked, note: str | None) -> RenewedGiven:
    given = {"fence": asked.fence, "note": note}
    renewed = await services.tasks.renew(seat.caller, asked.task_id, given)
    return RenewedGiven(
        task_id=asked.task_id,
        fence=asked.fence,
        expires_at=rfc3339(renewed.expires_at),
        next=f"Go on with the task. {_renew_again(services.tasks.renew_seconds, renewed.expires_at)}",
    )


async def _needs(services: Services, seat: Seat, grant: TaskGrant) -> list[NeedShown]:
    """What the prerequisites brought: among them the answers of people."""
    found = [await services.tasks.get(seat.caller, need.task_id) for need in grant.task.needs[:NEEDS_TOLD]]
    return [
        NeedShown(
            id=task.id,
            title=task.title,
            report=None if task.last_report is None else report_shown(task.last_report),
        )
        for task in found
    ]


def _begin(grant: TaskGrant, renew_seconds: float) -> str:
    first = (
        "Look first what is there: another one may have done half of it; its last report says how far it came. Then do "
        "what is left"
        if grant.verify_first
        else "Do what the task says"
    )
    return (
        f"{first}. {_renew_again(renew_seconds, grant.expires_at)} End with report_task, task_id {grant.task.id} and fence "
        f"{grant.fence}."
    )


def _renew_again(renew_seconds: float, expires_at: datetime) -> str:
    return f"Call renew_claim or log_progress every {renew_seconds:g} seconds, before {rfc3339(expires_at)}."


TOOLS = (whoami, next_task, renew_claim, log_progress, report_task)
