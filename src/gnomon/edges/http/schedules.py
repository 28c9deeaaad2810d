"""``/v1/schedules``: schedules, their state, their slots past and to come (CONTRACT, HTTP)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.filters import EVER, LAST, RunPlace, ScheduleFilter
from gnomon.domain.form import Form, read_instant
from gnomon.domain.instants import from_micros, to_micros
from gnomon.domain.occurrence import Disposition
from gnomon.domain.run import Run, RunStatus
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.domain.scopes import Scope
from gnomon.domain.target import TargetKind
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import (
    Keyed,
    Matching,
    accepted,
    created,
    done,
    once_for,
    respond,
    send,
    shown,
)
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body, OptionalBody
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.run_shapes import RunList, RunModel, run_json
from gnomon.edges.http.schedule_shapes import (
    ExplanationModel,
    OccurrenceList,
    PauseWrite,
    RevisionList,
    ScheduleEdit,
    ScheduleList,
    ScheduleModel,
    ScheduleWrite,
    SlotList,
    explanation_json,
    occurrence_json,
    revision_json,
    schedule_json,
    slot_json,
)
from gnomon.edges.http.services import Services

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
Reader = Annotated[Caller, needs(Scope.SCHEDULES_READ)]
Writer = Annotated[Caller, needs(Scope.SCHEDULES_WRITE)]
Runner = Annotated[Caller, needs(Scope.SCHEDULES_RUN)]
RunReader = Annotated[Caller, needs(Scope.RUNS_READ)]
REASON_CHARACTERS = (1, 1_000)
_COUNT = (1, 100)


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def _shown(schedule: Schedule) -> dict[str, Any]:
    return shown(schedule_json(schedule), tag=tag(schedule.id, schedule.revision))


def _created(schedule: Schedule) -> dict[str, Any]:
    location = f"/v1/schedules/{schedule.id}"
    return created(schedule_json(schedule), location, tag=tag(schedule.id, schedule.revision))


def _started(run: Run) -> dict[str, Any]:
    return accepted(run_json(run), f"/v1/runs/{run.id}")


@router.post(
    "",
    **described("Make a schedule", gives=ScheduleModel, takes=ScheduleWrite, status=201, problems=(409,)),
)
async def create(caller: Writer, request: Request, body: Body, keyed: Keyed) -> Response:
    """201 with the schedule; ``next_fire_at`` is its first slot. What would never fire is refused (SCH-14)."""
    once = once_for(keyed, body, _created)
    made = await _services(request).schedules.create(body, caller.actor, once=once)
    return respond(made, _created)


@router.get("", **described("List schedules", gives=ScheduleList))
async def page(  # noqa: PLR0917 - the parameters of the address
    _: Reader,
    request: Request,
    paged: Paged,
    status: Annotated[ScheduleStatus | None, Query(description="Only those in this status")] = None,
    target: Annotated[str | None, Query(max_length=64, description="A target's id or slug")] = None,
    target_kind: Annotated[TargetKind | None, Query(description="agent or team")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only those of this name")] = None,
) -> Response:
    """Schedules in the order of their making."""
    chosen = ScheduleFilter(status, target_kind, target, name)
    found = await _services(request).schedules.page(chosen, paged.after, paged.wanted)
    return send(shown(paged.page(found, schedule_json, lambda schedule: schedule.id)))


@router.get("/{id}", **described("Read a schedule", gives=ScheduleModel, problems=(404,)))
async def get(_: Reader, request: Request, id: str) -> Response:  # noqa: A002 - the contract's name
    """The schedule as it stands, under its ETag."""
    return send(_shown(await _services(request).schedules.get(id)))


@router.patch(
    "/{id}",
    **described("Edit a schedule", gives=ScheduleModel, takes=ScheduleEdit, problems=(404, 409, 412)),
)
async def edit(caller: Writer, request: Request, id: str, body: Body, match: Matching) -> Response:  # noqa: A002
    """The schedule after the edit; ``next_fire_at`` is the first slot under the new revision (SCH-12a)."""
    saved = await _services(request).schedules.edit(id, body, caller.actor, match=match)
    return send(_shown(saved.schedule))


@router.delete("/{id}", **described("Delete a schedule", problems=(404, 409, 412)))
async def delete(caller: Writer, request: Request, id: str, match: Matching) -> Response:  # noqa: A002
    """204: no slot of it fires any more. While a run is in flight: 409 that names it (SCH-10)."""
    await _services(request).schedules.delete(id, caller.actor, match=match)
    return done()


@router.post(
    "/{id}/pause",
    **described(
        "Pause a schedule", gives=ScheduleModel, takes=PauseWrite, body_required=False, problems=(404, 409)
    ),
)
async def pause(caller: Writer, request: Request, id: str, body: OptionalBody) -> Response:  # noqa: A002
    """The schedule, paused: by whom, why, until when. A run in flight goes on."""
    form = Form(body)
    form.only(("reason", "until"))
    reason = form.text("reason", *REASON_CHARACTERS)
    until = form.instant("until")
    form.finish()
    paused = await _services(request).pausing.pause(id, caller.actor, reason=reason, until=until)
    return send(_shown(paused))


@router.post("/{id}/resume", **described("Resume a schedule", gives=ScheduleModel, problems=(404, 409)))
async def resume(caller: Writer, request: Request, id: str, body: OptionalBody) -> Response:  # noqa: A002
    """The schedule, active, realigned from now, its streak cleared. 409 with the reason where nothing is left."""
    _nothing_in(body)
    return send(_shown(await _services(request).pausing.resume(id, caller.actor)))


@router.post("/{id}/run", **described("Run a schedule now", gives=RunModel, status=202, problems=(404, 409)))
async def run(caller: Runner, request: Request, id: str, body: OptionalBody, keyed: Keyed) -> Response:  # noqa: A002
    """202 with the run and its address. While a run is in flight: 409 that names it (SCH-11)."""
    _nothing_in(body)
    once = once_for(keyed, body, _started)
    started = await _services(request).run_now.run(
        id, caller.actor, api_key_id=caller.key_id, source="api", once=once
    )
    return respond(started, _started)


@router.get("/{id}/next", **described("Show the next slots", gives=SlotList, problems=(404,)))
async def next_slots(
    _: Reader,
    request: Request,
    id: str,  # noqa: A002
    count: Annotated[int, Query(ge=_COUNT[0], le=_COUNT[1], description="How many")] = 5,
) -> Response:
    """The slots that will fire, as the preview shows them; none while the schedule stands still."""
    found = await _services(request).schedules.next_slots(id, count)
    return send(shown({"items": [slot_json(slot) for slot in found]}))


@router.get("/{id}/occurrences", **described("Read the slot ledger", gives=OccurrenceList, problems=(404,)))
async def occurrences(  # noqa: PLR0917 - the parameters of the address
    _: Reader,
    request: Request,
    id: str,  # noqa: A002
    paged: Paged,
    disposition: Annotated[Disposition | None, Query(description="fired, skipped or missed")] = None,
    since: Annotated[str | None, Query(max_length=40, description="The earliest slot, an instant")] = None,
    until: Annotated[
        str | None, Query(max_length=40, description="The instant before which they lie")
    ] = None,
) -> Response:
    """What became of its slots, the newest first."""
    before = (
        _number(paged.after, EVER) if until is None else min(_number(paged.after, EVER), _at("until", until))
    )
    begin = -EVER if since is None else _at("since", since)
    found = await _services(request).runs.occurrences(id, before, begin, disposition, paged.wanted)
    body = paged.page(found, occurrence_json, lambda told: str(to_micros(told.occurrence.nominal_fire_at)))
    return send(shown(body))


@router.get("/{id}/runs", **described("List the runs of a schedule", gives=RunList, problems=(404,)))
async def runs(
    _: RunReader,
    request: Request,
    id: str,  # noqa: A002
    paged: Paged,
    status: Annotated[RunStatus | None, Query(description="Only those in this status")] = None,
) -> Response:
    """Its runs, those people started among them, the newest first."""
    slot, run_id = paged.after.partition(" ")[::2]
    place = RunPlace(_number(slot, EVER), run_id or LAST)
    found = await _services(request).runs.of_schedule(id, status, place, paged.limit)
    rest = None if found.rest is None else f"{found.rest.before_slot} {found.rest.before_id}"
    return send(shown(paged.part(found.runs, run_json, rest)))


@router.get("/{id}/revisions", **described("List revisions", gives=RevisionList, problems=(404,)))
async def revisions(_: Reader, request: Request, id: str, paged: Paged) -> Response:  # noqa: A002
    """Its definitions, the newest first, each with its author (SCH-4)."""
    found = await _services(request).schedules.revisions(id, _number(paged.after, EVER), paged.wanted)
    return send(shown(paged.page(found, revision_json, lambda revision: str(revision.revision))))


@router.get("/{id}/explain", **described("Explain an instant", gives=ExplanationModel, problems=(404,)))
async def explain(
    _: Reader,
    request: Request,
    id: str,  # noqa: A002
    at: Annotated[str, Query(max_length=40, description="Any instant, with its offset")],
) -> Response:
    """What became of the slot at this instant and why; for an instant that is none, the slots around it (DSP-9)."""
    found = await _services(request).explain.explain(id, from_micros(_at("at", at)))
    return send(shown(explanation_json(found)))


def _nothing_in(body: dict[str, Any]) -> None:
    form = Form(body)
    form.only(())
    form.finish()


def _at(field: str, text: str) -> int:
    """An instant of the address, in microseconds; a plus sign that came unescaped reads as a space."""
    try:
        return to_micros(read_instant(text.strip().replace(" ", "+")))
    except ValueError:
        raise Invalid([Fault(field, "must be an instant such as 2026-11-29T09:00:00Z")]) from None


def _number(position: str, beginning: int) -> int:
    """The number that a cursor of ours holds."""
    if not position:
        return beginning
    digits = position.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Invalid("The cursor is not one that this list gave.", code="bad_cursor")
    return max(-EVER, min(EVER, int(position)))
