"""Tools over schedules: what comes next, what became of a slot, run now, pause, resume."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from gnomon.cadence import Slot
from gnomon.domain import definition as definitions
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.form import read_instant
from gnomon.domain.instants import maybe_rfc3339, rfc3339
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.domain.scopes import Scope
from gnomon.edges.mcp.paging import CURSOR, LIMIT, page_of
from gnomon.edges.mcp.runs import RunGiven, run_given
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Asked, Given, Instant, Seat, Side, tool
from gnomon.services.dedup import Once, Replay
from gnomon.services.explain import Verdict

_ID = "The schedule's id, as list_schedules gives it (sch_…)"
_INSTANT = "An instant with its offset, such as 2026-11-29T09:00:00Z"
_Named = Field(description=_ID, min_length=1, max_length=64)


class SlotShown(BaseModel):
    """One slot; ``note`` says where a rule moved it."""

    at: Instant
    local_time: str
    offset: str
    note: str | None


class ScheduleShown(BaseModel):
    """What an agent needs of a schedule; the whole of it is in the API."""

    id: str
    name: str
    target: dict[str, str]
    cadence: dict[str, Any]
    status: ScheduleStatus
    status_reason: str | None
    paused_until: Instant | None
    next_fire_at: Instant | None
    last_fire_at: Instant | None
    run_count: int
    failure_streak: int
    last_error: str | None
    in_flight_run_id: str | None


class PreviewAsked(Asked):
    """Of one of the two: a rule, or a schedule."""

    cadence: dict[str, Any] | None = Field(
        None,
        description='A rule, such as {"unit": "day", "at": ["09:00"], "zone": "Europe/Berlin"} or '
        '{"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"}',
    )
    schedule_id: str | None = Field(
        None, description=_ID + ", instead of a rule", min_length=1, max_length=64
    )
    count: int = Field(5, ge=1, le=50, description="How many slots")


class PreviewGiven(Given):
    """The slots, in order."""

    slots: list[SlotShown]


@tool(Side.OPERATOR, Scope.SCHEDULES_READ, reads=True)
async def preview_schedule(services: Services, _seat: Seat, asked: PreviewAsked) -> PreviewGiven:
    """Show the next slots of a rule or of a schedule.

    The rule need not be saved. Use it to check a rule before a schedule is made with it, and to see when a schedule fires
    next. A note says where a clock change or a short month moved a slot.
    """
    if (asked.cadence is None) == (asked.schedule_id is None):
        raise Invalid([Fault("cadence", "or schedule_id is needed, and not both")])
    if asked.schedule_id is not None:
        slots = await services.schedules.next_slots(asked.schedule_id, asked.count)
        silent = "This schedule stands still or is over: list_schedules shows its status and why."
    else:
        slots = await services.previews.preview({"cadence": asked.cadence, "count": asked.count})
        silent = "This rule has no slot to come: change it."
    last = "Tell these slots to whoever asked; nothing was saved or changed." if slots else silent
    return PreviewGiven(slots=[_slot(slot) for slot in slots], next=last)


class SchedulesAsked(Asked):
    """Which schedules."""

    status: ScheduleStatus | None = Field(None, strict=False, description="Only those in this status")
    target: str | None = Field(
        None, description="Only those of this agent or team, by id or slug", max_length=64
    )
    name: str | None = Field(None, description="Only those of exactly this name", max_length=200)
    limit: int = LIMIT
    cursor: str | None = CURSOR


class ScheduleGiven(Given):
    """One schedule."""

    schedule: ScheduleShown


class SchedulesGiven(Given):
    """A page of schedules."""

    schedules: list[ScheduleShown]
    next_cursor: str | None


@tool(Side.OPERATOR, Scope.SCHEDULES_READ, reads=True)
async def list_schedules(services: Services, _seat: Seat, asked: SchedulesAsked) -> SchedulesGiven:
    """List schedules.

    In the order of their making, each with its status and why, its next slot, and the run that is in flight.
    """
    chosen = ScheduleFilter(status=asked.status, target=asked.target, name=asked.name)
    found = await services.schedules.page(chosen, asked.cursor or "", asked.limit + 1)
    shown, cursor = page_of(found, asked.limit, lambda schedule: schedule.id)
    last = (
        "More follow: call list_schedules with this next_cursor as cursor."
        if cursor
        else "These are all. explain_slot says why a slot did or did not fire; run_now starts a run at once."
    )
    return SchedulesGiven(schedules=[_shown(each) for each in shown], next_cursor=cursor, next=last)


class ExplainAsked(Asked):
    """Which instant of which schedule."""

    schedule_id: str = _Named
    at: Instant = Field(description=_INSTANT + ": a slot, or any instant", max_length=40)


class ExplainGiven(Given):
    """What became of it."""

    verdict: Verdict
    sentence: str = Field(description="The answer for a person")
    local_time: str
    run_id: str | None = Field(description="The run that fired, if one did")
    before: Instant | None = Field(description="The slot before an instant that is none")
    after: Instant | None = Field(description="The slot after an instant that is none")


@tool(Side.OPERATOR, Scope.SCHEDULES_READ, reads=True)
async def explain_slot(services: Services, _seat: Seat, asked: ExplainAsked) -> ExplainGiven:
    """Say what became of one instant of a schedule, and why.

    It fired, was skipped for a reason, was missed, coalesced, paused, or is no slot at all. Use it for every question like
    "why did it not run at nine".
    """
    found = await services.explain.explain(asked.schedule_id, _instant("at", asked.at))
    run_id = None if found.told is None else found.told.occurrence.run_id
    return ExplainGiven(
        verdict=found.verdict,
        sentence=found.sentence,
        local_time=found.local_time,
        run_id=run_id,
        before=maybe_rfc3339(found.before),
        after=maybe_rfc3339(found.after),
        next="Tell this answer as it is."
        if run_id is None
        else f"get_run with {run_id} shows how that run went.",
    )


class RunNowAsked(Asked):
    """Which schedule, and a name for the wish."""

    schedule_id: str = _Named
    idempotency_key: str | None = Field(
        None,
        description="A name of your making for this one wish: a repeat with it gives the same run instead of another",
        min_length=1,
        max_length=255,
    )


@tool(Side.OPERATOR, Scope.SCHEDULES_RUN)
async def run_now(services: Services, seat: Seat, asked: RunNowAsked) -> RunGiven:
    """Start a run of a schedule at once.

    Its cadence stays as it is. Refused while a run of it is unfinished. Give an idempotency_key, so that a repeat after a
    lost answer starts nothing twice.
    """
    started = await services.run_now.run(
        asked.schedule_id,
        seat.caller.actor,
        api_key_id=seat.caller.key_id,
        source="mcp",
        once=_once(seat, asked),
    )
    return RunGiven.model_validate(started.answer) if isinstance(started, Replay) else run_given(started)


class PauseAsked(Asked):
    """Which schedule, why, until when."""

    schedule_id: str = _Named
    reason: str | None = Field(None, description="Why, for people", min_length=1, max_length=1_000)
    until: Instant | None = Field(
        None, description=_INSTANT + ", at which it resumes by itself", max_length=40
    )


@tool(Side.OPERATOR, Scope.SCHEDULES_WRITE, destroys=True, repeats=True)
async def pause_schedule(services: Services, seat: Seat, asked: PauseAsked) -> ScheduleGiven:
    """Let no slot of a schedule fire until it is resumed, or until an instant.

    A run in flight goes on. What lies in the pause is never made up for. Say why: people read the reason.
    """
    until = None if asked.until is None else _instant("until", asked.until)
    paused = await services.pausing.pause(
        asked.schedule_id, seat.caller.actor, reason=asked.reason, until=until
    )
    last = "It resumes by itself." if until else "resume_schedule lets it fire again."
    return ScheduleGiven(schedule=_shown(paused), next=last)


class ResumeAsked(Asked):
    """Which schedule."""

    schedule_id: str = _Named


@tool(Side.OPERATOR, Scope.SCHEDULES_WRITE, repeats=True)
async def resume_schedule(services: Services, seat: Seat, asked: ResumeAsked) -> ScheduleGiven:
    """Let a paused or failed schedule fire again.

    It goes on from its next slot, its streak of failures cleared; nothing that lay in the pause fires. One that is active
    stays as it is.
    """
    resumed = await services.pausing.resume(asked.schedule_id, seat.caller.actor)
    first = maybe_rfc3339(resumed.next_fire_at)
    return ScheduleGiven(schedule=_shown(resumed), next=f"It fires next at {first}.")


def _once(seat: Seat, asked: RunNowAsked) -> Once | None:
    if asked.idempotency_key is None:
        return None
    scope = f"{seat.caller.actor} mcp run_now"
    body = {"schedule_id": asked.schedule_id}
    return Once.under(
        asked.idempotency_key, scope, seat.seal, body, lambda run: run_given(run).model_dump(mode="json")
    )


def _slot(slot: Slot) -> SlotShown:
    return SlotShown(at=rfc3339(slot.at), local_time=slot.local_time, offset=slot.offset, note=slot.note)


def _shown(schedule: Schedule) -> ScheduleShown:
    written = definitions.to_json(schedule.definition)
    detail = schedule.status_detail
    return ScheduleShown(
        id=schedule.id,
        name=written["name"],
        target=written["target"],
        cadence=written["cadence"],
        status=schedule.status,
        status_reason=detail.reason,
        paused_until=maybe_rfc3339(detail.until),
        next_fire_at=maybe_rfc3339(schedule.next_fire_at),
        last_fire_at=maybe_rfc3339(schedule.last_fire_at),
        run_count=schedule.run_count,
        failure_streak=schedule.failure_streak,
        last_error=None if schedule.last_error is None else schedule.last_error.message,
        in_flight_run_id=schedule.in_flight_run_id,
    )


def _instant(field: str, text: str) -> datetime:
    try:
        return read_instant(text)
    except ValueError:
        raise Invalid([Fault(field, "must be an instant such as 2026-11-29T09:00:00Z")]) from None


TOOLS = (preview_schedule, list_schedules, explain_slot, run_now, pause_schedule, resume_schedule)
