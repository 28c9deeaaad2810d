"""The tool that an agent who watches begins with: how everything stands, in numbers, and what to look at."""

from pydantic import BaseModel, Field

from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Asked, Given, Instant, Seat, Side, tool
from gnomon.services.overview import STATES, Numbers


class OverviewAsked(Asked):
    """Whose day it is."""

    zone: str = Field(
        "UTC", description="Whose day and week, such as Europe/Berlin", min_length=1, max_length=64
    )


class RoleShown(BaseModel):
    """One role: its tasks by state, its instances by status."""

    role: str
    tasks: dict[str, int]
    instances: dict[str, int]


class OverviewGiven(Given):
    """Everything at one moment; today and this week are those of the zone."""

    at: Instant
    processes: int = Field(description="Processes of Gnomon that are alive")
    runs_queued: int
    runs_running: int
    late: int = Field(description="Slots, jobs and runs that should have begun more than a minute ago")
    runs_succeeded_this_week: int
    runs_failed_today: int
    tasks_done_this_week: int
    triggers_missed_today: int
    expired_today: dict[str, int] = Field(description="Claims of runs and of tasks that ran out")
    schedules: dict[str, int] = Field(description="By status")
    roles: list[RoleShown]


@tool(Side.OPERATOR, Scope.OVERVIEW_READ, reads=True)
async def overview(services: Services, _seat: Seat, asked: OverviewAsked) -> OverviewGiven:
    """Tell how everything stands, in numbers.

    What runs and waits, what is late, what failed today, which roles have work and who is there for it. Begin with it; the
    answer says what to look at.
    """
    numbers = await services.overview.numbers(asked.zone)
    return OverviewGiven(
        at=rfc3339(numbers.at),
        processes=numbers.processes,
        runs_queued=numbers.queue["queued"] + numbers.queue["waiting"],
        runs_running=numbers.queue["running"],
        late=_late(numbers),
        runs_succeeded_this_week=numbers.runs.well_this_week,
        runs_failed_today=numbers.runs.failed_today,
        tasks_done_this_week=numbers.tasks_done,
        triggers_missed_today=numbers.triggers.missed_today,
        expired_today=dict(numbers.expired_today),
        schedules={str(status): count for status, count in numbers.schedules.items()},
        roles=[
            RoleShown(
                role=role.name,
                tasks={state: role.tasks.get(state, 0) for state in STATES},
                instances=dict(role.instances),
            )
            for role in numbers.roles
        ],
        next=_look_at(numbers),
    )


def _late(numbers: Numbers) -> int:
    return sum(int(numbers.queue[name]) for name in ("late_slots", "late_jobs", "late_runs"))


def _look_at(numbers: Numbers) -> str:
    """What a person would look at first."""
    found = []
    if not numbers.processes:
        found.append(
            "No process of Gnomon is alive: nothing fires and nothing is worked on until one is started."
        )
    if _late(numbers):
        found.append("Something is late: list_runs with the status queued shows runs that wait.")
    if numbers.schedules.get("error"):
        found.append(
            "Schedules have stopped after failures: list_schedules with the status error shows them and why."
        )
    if numbers.runs.failed_today:
        found.append(
            "Runs have failed today: list_runs with the status failed, timed_out or lost shows them."
        )
    if any(role.tasks.get("blocked") or role.tasks.get("in_review") for role in numbers.roles):
        found.append("Tasks wait for a person: list_tasks with the status blocked or in_review shows them.")
    return " ".join(found) or "All is well; there is nothing to do."


TOOLS = (overview,)
