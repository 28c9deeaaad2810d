"""``/v1/schedules``: schedules, their state, their slots past and to come (CONTRACT, HTTP)."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.filters import EVER, LAST, RunPlace, ScheduleFilter
from gnomon.domain.form import Form
from gnomon.domain.instants import to_micros
from gnomon.domain.occurrence import Disposition
from gnomon.domain.run import Run, RunStatus
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.domain.scopes import Scope
from gnomon.domain.target import TargetKind
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import (
    Keyed,
    Matching,
    Traced,
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
from gnomon.edges.http.paging import Paged, number
from gnomon.edges.http.parameters import Instant
from gnomon.edges.http.routing import described
from gnomon.edges.http.run_shapes import RunPage, RunShape, run_json
from gnomon.edges.http.schedule_answers import (
    explanation_json,
    occurrence_json,
    revision_json,
    schedule_json,
    slot_json,
)
from gnomon.edges.http.schedule_shapes import (
    ExplanationShape,
    NextSlots,
    OccurrencePage,
    PauseWrite,
    RevisionPage,
    ScheduleEdit,
    SchedulePage,
    ScheduleShape,
    ScheduleWrite,
)
from gnomon.edges.http.served import Served

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
Reader = Annotated[Caller, needs(Scope.SCHEDULES_READ)]
Writer = Annotated[Caller, needs(Scope.SCHEDULES_WRITE)]
Runner = Annotated[Caller, needs(Scope.SCHEDULES_RUN)]
RunReader = Annotated[Caller, needs(Scope.RUNS_READ)]
Named = Annotated[str, Path(description="Its id")]
REASON_CHARACTERS = (1, 1_000)
_COUNT = (1, 100)


def _shown(schedule: Schedule) -> dict[str, Any]:
    return shown(schedule_json(schedule), tag=tag(schedule.id, schedule.revision))


def _created(schedule: Schedule) -> dict[str, Any]:
    location = f"/v1/schedules/{schedule.id}"
    return created(schedule_json(schedule), location, tag=tag(schedule.id, schedule.revision))


def _started(run: Run) -> dict[str, Any]:
    return accepted(run_json(run), f"/v1/runs/{run.id}")


@router.post(
    "",
    **described("Make a schedule", gives=ScheduleShape, takes=ScheduleWrite, status=201, problems=(409,)),
)
async def create(caller: Writer, served: Served, body: Body, keyed: Keyed) -> Response:
    """201 with the schedule; ``next_fire_at`` is its first slot. What would never fire is refused (SCH-14)."""
    once = once_for(keyed, body, _created)
    made = await served.schedules.create(body, caller.actor, once=once)
    return respond(made, _created)


@router.get("", **described("List schedules", gives=SchedulePage))
async def page(  # noqa: PLR0917 - the parameters of the address
    _caller: Reader,
    served: Served,
    paged: Paged,
    status: Annotated[ScheduleStatus | None, Query(description="Only those in this status")] = None,
    target: Annotated[str | None, Query(max_length=64, description="A target's id or slug")] = None,
    target_kind: Annotated[TargetKind | None, Query(description="agent or team")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only those of this name")] = None,
) -> Response:
    """Schedules in the order of their making."""
    chosen = ScheduleFilter(status, target_kind, target, name)
    found = await served.schedules.page(chosen, paged.after, paged.wanted)
    return send(shown(paged.page(found, schedule_json, lambda schedule: schedule.id)))


@router.get("/{schedule}", **described("Read a schedule", gives=ScheduleShape, problems=(404,)))
async def get(_caller: Reader, served: Served, schedule: Named) -> Response:
    """The schedule as it stands, under its ETag."""
    return send(_shown(await served.schedules.get(schedule)))


@router.patch(
    "/{schedule}",
    **described("Edit a schedule", gives=ScheduleShape, takes=ScheduleEdit, problems=(404, 409, 412)),
)
async def edit(caller: Writer, served: Served, schedule: Named, body: Body, match: Matching) -> Response:
    """The schedule after the edit; ``next_fire_at`` is the first slot under the new revision (SCH-12a)."""
    saved = await served.schedules.edit(schedule, body, caller.actor, match=match)
    return send(_shown(saved.schedule))


@router.delete("/{schedule}", **described("Delete a schedule", problems=(404, 409, 412)))
async def delete(caller: Writer, served: Served, schedule: Named, match: Matching) -> Response:
    """204: no slot of it fires any more. While a run is in flight: 409 that names it (SCH-10)."""
    await served.schedules.delete(schedule, caller.actor, match=match)
    return done()


@router.post(
    "/{schedule}/pause",
    **described(
        "Pause a schedule", gives=ScheduleShape, takes=PauseWrite, body_required=False, problems=(404, 409)
    ),
)
async def pause(caller: Writer, served: Served, schedule: Named, body: OptionalBody) -> Response:
    """The schedule, paused: by whom, why, until when. A run in flight goes on."""
    form = Form(body)
    form.only(("reason", "until"))
    reason = form.text("reason", *REASON_CHARACTERS)
    until = form.instant("until")
    form.finish()
    paused = await served.pausing.pause(schedule, caller.actor, reason=reason, until=until)
    return send(_shown(paused))


@router.post("/{schedule}/resume", **described("Resume a schedule", gives=ScheduleShape, problems=(404, 409)))
async def resume(caller: Writer, served: Served, schedule: Named, body: OptionalBody) -> Response:
    """The schedule, active, realigned from now, its streak cleared. 409 with the reason where nothing is left."""
    _nothing_in(body)
    return send(_shown(await served.pausing.resume(schedule, caller.actor)))


@router.post(
    "/{schedule}/run", **described("Run a schedule now", gives=RunShape, status=202, problems=(404, 409))
)
async def run(  # noqa: PLR0917 - the parameters of the request
    caller: Runner, served: Served, schedule: Named, body: OptionalBody, keyed: Keyed, traced: Traced
) -> Response:
    """202 with the run and its address. While a run is in flight: 409 that names it (SCH-11)."""
    _nothing_in(body)
    once = once_for(keyed, body, _started)
    started = await served.run_now.run(
        schedule, caller.actor, api_key_id=caller.key_id, source="api", trace_id=traced, once=once
    )
    return respond(started, _started)


@router.get("/{schedule}/next", **described("Show the next slots", gives=NextSlots, problems=(404,)))
async def next_slots(
    _caller: Reader,
    served: Served,
    schedule: Named,
    count: Annotated[int, Query(ge=_COUNT[0], le=_COUNT[1], description="How many")] = 5,
) -> Response:
    """The slots that will fire, as the preview shows them; none while the schedule stands still."""
    found = await served.schedules.next_slots(schedule, count)
    return send(shown({"items": [slot_json(slot) for slot in found]}))


@router.get(
    "/{schedule}/occurrences", **described("Read the slot ledger", gives=OccurrencePage, problems=(404,))
)
async def occurrences(  # noqa: PLR0917 - the parameters of the address
    _caller: Reader,
    served: Served,
    schedule: Named,
    paged: Paged,
    disposition: Annotated[Disposition | None, Query(description="fired, skipped or missed")] = None,
    since: Annotated[Instant | None, Query(description="The earliest slot, an instant")] = None,
    until: Annotated[Instant | None, Query(description="The instant before which they lie")] = None,
) -> Response:
    """What became of its slots, the newest first."""
    before = number(paged.after, EVER)
    if until is not None:
        before = min(before, to_micros(until))
    begin = -EVER if since is None else to_micros(since)
    found = await served.runs.occurrences(schedule, before, begin, disposition, paged.wanted)
    body = paged.page(found, occurrence_json, lambda told: str(to_micros(told.occurrence.nominal_fire_at)))
    return send(shown(body))


@router.get("/{schedule}/runs", **described("List the runs of a schedule", gives=RunPage, problems=(404,)))
async def runs(
    _caller: RunReader,
    served: Served,
    schedule: Named,
    paged: Paged,
    status: Annotated[RunStatus | None, Query(description="Only those in this status")] = None,
) -> Response:
    """Its runs, those people started among them, the newest first."""
    slot, run_id = paged.after.partition(" ")[::2]
    place = RunPlace(number(slot, EVER), run_id or LAST)
    found = await served.runs.of_schedule(schedule, status, place, paged.limit)
    rest = None if found.rest is None else f"{found.rest.before_slot} {found.rest.before_id}"
    return send(shown(paged.part(found.runs, run_json, rest)))


@router.get("/{schedule}/revisions", **described("List revisions", gives=RevisionPage, problems=(404,)))
async def revisions(_caller: Reader, served: Served, schedule: Named, paged: Paged) -> Response:
    """Its definitions, the newest first, each with its author (SCH-4)."""
    found = await served.schedules.revisions(schedule, number(paged.after, EVER), paged.wanted)
    return send(shown(paged.page(found, revision_json, lambda revision: str(revision.revision))))


@router.get("/{schedule}/explain", **described("Explain an instant", gives=ExplanationShape, problems=(404,)))
async def explain(
    _caller: Reader,
    served: Served,
    schedule: Named,
    at: Annotated[Instant, Query(description="Any instant, with its offset")],
) -> Response:
    """What became of the slot at this instant and why; for an instant that is none, the slots around it (DSP-9)."""
    found = await served.explain.explain(schedule, at)
    return send(shown(explanation_json(found)))


def _nothing_in(body: dict[str, Any]) -> None:
    form = Form(body)
    form.only(())
    form.finish()
