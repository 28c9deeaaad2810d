"""``/v1/overview`` and ``/v1/usage``: the state of everything in numbers, and what was used (CONTRACT, HTTP; UI-1)."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Invalid
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.domain.usage import Grouping, Used
from gnomon.edges.http.answers import send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.parameters import Instant, Zone
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import Listing
from gnomon.services.overview import STATES, Numbers, Role

router = APIRouter(prefix="/v1", tags=["records"])
GROUPS = ("day", "target", "principal")
MOST_SKIPPED = 1_000_000


class InstancesShape(BaseModel):
    """Instances by status."""

    online: int
    draining: int
    offline: int


class CompletionsShape(BaseModel):
    """What ended well since Monday; ``at_least`` where there may be more runs or triggers than were looked at."""

    runs: int
    tasks: int
    triggers: int
    at_least: bool


class EndedShape(BaseModel):
    """Runs and triggers that did not end well today."""

    runs: int
    triggers: int
    missed_triggers: int


class ExpiredShape(BaseModel):
    """Leases of runs and locks of tasks that ended by time today."""

    runs: int
    tasks: int


class LateShape(BaseModel):
    """What should have begun more than a minute ago: slots nobody took, runs and triggers nobody works on."""

    slots: int
    jobs: int
    runs: int


class RunsShape(BaseModel):
    """Runs that are unfinished: queued, waiting for another one, running."""

    queued: int
    waiting: int
    running: int


class QueueShape(BaseModel):
    """One role: its tasks that can be claimed, are gated, held, in review or blocked, and who is there for them."""

    role: str
    claimable: int
    gated: int
    in_progress: int
    in_review: int
    blocked: int
    instances: InstancesShape


class SchedulesShape(BaseModel):
    """Schedules by status."""

    active: int
    paused: int
    completed: int
    error: int
    disabled: int


class JobsShape(BaseModel):
    """Jobs that are enabled, that are not, and of those the ones that were set aside."""

    enabled: int
    disabled: int
    set_aside: int


class OverviewShape(BaseModel):
    """Everything at one moment. Today and the week are those of the zone that was asked for."""

    at: datetime
    zone: str
    today_at: datetime
    week_at: datetime
    processes: int
    instances: InstancesShape
    completions_this_week: CompletionsShape
    failed_today: EndedShape
    expired_locks_today: ExpiredShape
    late: LateShape
    runs: RunsShape
    waiting_triggers: int
    queue: list[QueueShape]
    schedules: SchedulesShape
    jobs: JobsShape


class UsedTarget(BaseModel):
    """A target; ``slug`` is null where its record is not there any more."""

    kind: str
    id: str
    slug: str | None


class UsedShape(BaseModel):
    """One sum; what it is not told apart by is null."""

    day: date | None
    target: UsedTarget | None
    principal: str | None
    runs: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="In US dollars")


class UsagePage(Listing):
    """Sums in order of day, target and principal; ``total`` is over all of them, not over the page."""

    since: datetime
    until: datetime
    by: list[str]
    total: UsedShape
    items: list[UsedShape]


@router.get("/overview", **described("Show the state of everything in numbers", gives=OverviewShape))
async def overview(
    _caller: Annotated[Caller, needs(Scope.OVERVIEW_READ)],
    served: Served,
    zone: Annotated[Zone, Query(description="Whose today and week are meant")] = "UTC",
) -> Response:
    """Health, queues by role, schedules by status."""
    return send(shown(_overview_json(await served.overview.numbers(zone))))


def _names(by: str) -> list[str]:
    return [name for name in by.split(",") if name]


def _grouped(by: str) -> str:
    if wrong := sorted(set(_names(by)) - set(GROUPS)):
        raise ValueError(f"must be of {', '.join(GROUPS)}, not {', '.join(wrong)[:60]}")
    return by


@router.get("/usage", **described("Sum up what runs have used", gives=UsagePage))
async def usage(
    _caller: Annotated[Caller, needs(Scope.USAGE_READ)],
    served: Served,
    paging: Paged,
    since: Annotated[Instant | None, Query(description="From when on; 30 days before the end")] = None,
    until: Annotated[Instant | None, Query(description="Until when, exclusive; now")] = None,
    by: Annotated[
        str,
        Query(max_length=40, description="day, target, principal, or some of them"),
        AfterValidator(_grouped),
    ] = "day,target,principal",
) -> Response:
    """A run counts on the day, in UTC, on which it ended. Targets that tell of no usage have none."""
    names = _names(by)
    skip = _skipped(paging.after)
    found = await served.usage.spent(since, until, Grouping.of(set(names)), skip, paging.wanted)
    more = str(skip + paging.limit) if len(found.items) > paging.limit else None
    page = paging.part(found.items[: paging.limit], _used_json, more)
    head = {"since": rfc3339(found.since), "until": rfc3339(found.until)}
    return send(shown({**head, "by": names, "total": _used_json(found.total), **page}))


def _skipped(position: str) -> int:
    if not position:
        return 0
    if not (position.isascii() and position.isdigit() and len(position) < 10):
        raise Invalid("The cursor is not one that this list gave.", code="bad_cursor")
    return min(int(position), MOST_SKIPPED)


def _overview_json(found: Numbers) -> dict[str, Any]:
    queue = found.queue
    return {
        "at": rfc3339(found.at),
        "zone": found.zone,
        "today_at": rfc3339(found.today_at),
        "week_at": rfc3339(found.week_at),
        "processes": found.processes,
        "instances": {status: found.instances(status) for status in InstancesShape.model_fields},
        "completions_this_week": {
            "runs": found.runs.well_this_week,
            "tasks": found.tasks_done,
            "triggers": found.triggers.well_this_week,
            "at_least": found.runs.at_least or found.triggers.at_least,
        },
        "failed_today": {
            "runs": found.runs.failed_today,
            "triggers": found.triggers.failed_today,
            "missed_triggers": found.triggers.missed_today,
        },
        "expired_locks_today": {
            "runs": found.expired_today.get("run", 0),
            "tasks": found.expired_today.get("task", 0),
        },
        "late": {"slots": queue["late_slots"], "jobs": queue["late_jobs"], "runs": queue["late_runs"]},
        "runs": {name: queue[name] for name in RunsShape.model_fields},
        "waiting_triggers": queue["waiting_triggers"],
        "queue": [_queue_json(role) for role in found.roles],
        "schedules": dict(found.schedules),
        "jobs": {
            "enabled": found.jobs["enabled"],
            "disabled": found.jobs["all_jobs"] - found.jobs["enabled"],
            "set_aside": found.jobs["set_aside"],
        },
    }


def _queue_json(role: Role) -> dict[str, Any]:
    return {
        "role": role.name,
        **{state: role.tasks.get(state, 0) for state in STATES},
        "instances": {status: role.instances.get(status, 0) for status in InstancesShape.model_fields},
    }


def _used_json(used: Used) -> dict[str, Any]:
    target = None
    if used.target_kind is not None:
        target = {"kind": used.target_kind, "id": used.target_id, "slug": used.target_slug}
    return {
        "day": None if used.day is None else used.day.isoformat(),
        "target": target,
        "principal": used.principal,
        "runs": used.runs,
        "model_calls": used.usage.model_calls,
        "input_tokens": used.usage.input_tokens,
        "output_tokens": used.usage.output_tokens,
        "cost": used.usage.cost,
    }
