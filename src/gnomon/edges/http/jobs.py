"""``/v1/jobs``: jobs, and what became of their slots (CONTRACT, HTTP; JOB)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from gnomon.domain import job_form, trigger
from gnomon.domain.caller import Caller
from gnomon.domain.filters import EVER
from gnomon.domain.instants import to_micros
from gnomon.domain.job import Job
from gnomon.domain.scopes import Scope
from gnomon.domain.trigger import TriggerStatus
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import Keyed, Matching, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.job_shapes import JobEdit, JobPage, JobShape, JobWrite, TriggerPage
from gnomon.edges.http.paging import Paged, number
from gnomon.edges.http.routing import described
from gnomon.edges.http.schedule_answers import slot_json
from gnomon.edges.http.schedule_shapes import NextSlots
from gnomon.edges.http.served import Served
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
Reader = Annotated[Caller, needs(Scope.JOBS_READ)]
Writer = Annotated[Caller, needs(Scope.JOBS_WRITE)]
Named = Annotated[str, Path(description="Its id or slug")]


@router.post("", **described("Make a job", takes=JobWrite, gives=JobShape, status=201, problems=[409]))
async def create(caller: Writer, served: Served, body: Body, keyed: Keyed) -> Response:
    """201 with the job; ``next_fire_at`` is its first slot. One without a dedup key is refused (IDM-1)."""
    return respond(await served.jobs.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List jobs, the oldest first", gives=JobPage))
async def page(
    _caller: Reader,
    served: Served,
    paged: Paged,
    *,
    role: Annotated[str | None, Query(max_length=64, description="Only those of this role")] = None,
    enabled: Annotated[bool | None, Query(description="Only those that are enabled, or are not")] = None,
) -> Response:
    """One page of all there are."""
    found = await served.jobs.page(paged.after, paged.wanted, role=role, enabled=enabled)
    return send(shown(paged.page(found, job_form.to_json, lambda job: job.id)))


@router.get("/{job}", **described("Read a job", gives=JobShape, problems=[404]))
async def read(_caller: Reader, served: Served, job: Named) -> Response:
    """By id or slug, with its ETag."""
    return send(_shown(await served.jobs.get(job)))


@router.patch("/{job}", **described("Edit a job", takes=JobEdit, gives=JobShape, problems=[404, 409, 412]))
async def edit(caller: Writer, served: Served, job: Named, body: Body, match: Matching) -> Response:
    """The job after the edit; its next slot lies after it. Disabled, what waits for an instance is missed."""
    return send(_shown(await served.jobs.edit(caller, job, body, match=match)))


@router.delete("/{job}", **described("Delete a job", problems=[404, 412]))
async def delete(caller: Writer, served: Served, job: Named, match: Matching) -> Response:
    """204: none of its slots fires any more. What was pushed already goes on."""
    await served.jobs.delete(caller, job, match=match)
    return done()


@router.get(
    "/{job}/triggers", **described("List what became of a job's slots", gives=TriggerPage, problems=[404])
)
async def triggers(
    _caller: Reader,
    served: Served,
    job: Named,
    paged: Paged,
    *,
    status: Annotated[TriggerStatus | None, Query(description="Only those in this status")] = None,
) -> Response:
    """One for each slot, the newest first."""
    found = await served.triggers.page(job, number(paged.after, EVER), paged.wanted, status)
    return send(shown(paged.page(found, trigger.to_json, lambda one: str(to_micros(one.nominal_fire_at)))))


@router.get("/{job}/next", **described("Show the next slots", gives=NextSlots, problems=[404]))
async def next_slots(
    _caller: Reader,
    served: Served,
    job: Named,
    *,
    count: Annotated[int, Query(ge=1, le=100, description="How many")] = 5,
) -> Response:
    """The slots that will get a trigger, as the preview shows them; none while the job is not enabled."""
    return send(shown({"items": [slot_json(slot) for slot in await served.jobs.next_slots(job, count)]}))


def _made(job: Job) -> Answer:
    return created(job_form.to_json(job), f"/v1/jobs/{job.id}", tag=tag(job.id, job.version))


def _shown(job: Job) -> Answer:
    return shown(job_form.to_json(job), tag=tag(job.id, job.version))
