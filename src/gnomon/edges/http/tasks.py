"""``/v1/tasks``: the board over HTTP (CONTRACT, HTTP; BRD)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.filters import TaskFilter
from gnomon.domain.scopes import Scope
from gnomon.domain.task import TaskStatus, to_json
from gnomon.edges.http.answers import Keyed, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body, OptionalBody
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.task_shapes import (
    ClaimWrite,
    Grants,
    ReleaseWrite,
    RenewedShape,
    RenewWrite,
    ReportWrite,
    TaskEdit,
    TaskPage,
    TaskShape,
    TaskWrite,
    grant_json,
    renewed_json,
)
from gnomon.services.dedup import Answer
from gnomon.services.task_writing import MadeTask

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
Reader = Annotated[Caller, needs(Scope.TASKS_READ)]
Writer = Annotated[Caller, needs(Scope.TASKS_WRITE)]
Worker = Annotated[Caller, needs(Scope.TASKS_CLAIM)]
Named = Annotated[str, Path(description="Its id")]


@router.post(
    "",
    **described("Put a task on the board", takes=TaskWrite, gives=TaskShape, status=201, problems=[409]),
)
async def create(caller: Writer, served: Served, body: Body, keyed: Keyed) -> Response:
    """201; or 200 with what its dedup key has made before, marked with Idempotent-Replayed (IDM-2)."""
    return respond(await served.tasks.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List tasks, the oldest first", gives=TaskPage))
async def page(
    caller: Reader,
    served: Served,
    paged: Paged,
    *,
    role: Annotated[str | None, Query(max_length=64, description="Only those of this role")] = None,
    status: Annotated[TaskStatus | None, Query(description="Only those in this status")] = None,
    holder: Annotated[
        str | None, Query(max_length=200, description="Only those that this instance holds: its name or id")
    ] = None,
    dedup_key: Annotated[
        str | None,
        Query(max_length=200, description="Only the one of this dedup key, if there is one (IDM-2)"),
    ] = None,
) -> Response:
    """One page of the board."""
    chosen = TaskFilter(role, status, holder, dedup_key)
    found = await served.tasks.page(caller, chosen, paged.after, paged.wanted)
    return send(shown(paged.page(found, to_json, lambda task: task.id)))


@router.post("/claim", **described("Claim tasks", takes=ClaimWrite, gives=Grants))
async def claim(request: Request, caller: Worker, served: Served, body: Body) -> Response:
    """Up to ``limit`` tasks that can be worked on, the most urgent first; empty where there is nothing (BRD-1)."""
    granted = await served.tasks.claim(caller, body, is_gone=request.is_disconnected)
    items = [grant_json(grant, served.tasks.renew_seconds) for grant in granted]
    return send(shown({"items": items}))


@router.get("/{task}", **described("Read a task", gives=TaskShape, problems=[404]))
async def read(caller: Reader, served: Served, task: Named) -> Response:
    """With who holds it, and what it waits for."""
    return send(shown(to_json(await served.tasks.get(caller, task))))


@router.patch(
    "/{task}",
    **described("Edit a task that nobody holds", takes=TaskEdit, gives=TaskShape, problems=[404, 409]),
)
async def edit(caller: Writer, served: Served, task: Named, body: Body) -> Response:
    """409 with the holder while somebody works on it; 422 with the cycle that its prerequisites would close (BRD-8)."""
    return send(shown(to_json(await served.tasks.edit(caller, task, body))))


@router.delete("/{task}", **described("Delete a task that nobody holds and none needs", problems=[404, 409]))
async def delete(caller: Writer, served: Served, task: Named) -> Response:
    """Its dedup key is free after that; the audit keeps what became of it."""
    await served.tasks.delete(caller, task)
    return done()


@router.post(
    "/{task}/renew",
    **described("Renew a claim", takes=RenewWrite, gives=RenewedShape, problems=[404, 409]),
)
async def renew(caller: Worker, served: Served, task: Named, body: Body) -> Response:
    """409 where the claim has ended: stop working on the task (BRD-2)."""
    renewed = await served.tasks.renew(caller, task, body)
    return send(shown(renewed_json(renewed, served.tasks.renew_seconds)))


@router.post(
    "/{task}/report",
    **described(
        "Report what became of a task, and release it",
        takes=ReportWrite,
        gives=TaskShape,
        problems=[404, 409],
    ),
)
async def report(caller: Worker, served: Served, task: Named, body: Body) -> Response:
    """409 where the claim has ended: nothing was changed (BRD-3). The same report again is answered as the first."""
    reported = await served.tasks.report(caller, task, body)
    return send(shown(to_json(reported.task)), replayed=reported.replayed)


@router.post(
    "/{task}/release",
    **described(
        "Take a task from its holder",
        takes=ReleaseWrite,
        body_required=False,
        gives=TaskShape,
        problems=[404, 409],
    ),
)
async def release(caller: Writer, served: Served, task: Named, body: OptionalBody) -> Response:
    """A person's word: the holder's next renewal or report is refused, and what it did is possibly half done (BRD-6)."""
    return send(shown(to_json(await served.tasks.release(caller, task, body))))


def _made(made: MadeTask) -> Answer:
    answer = created(to_json(made.task), f"/v1/tasks/{made.task.id}")
    if made.existed:
        answer |= {"status": 200, "headers": {**answer["headers"], "Idempotent-Replayed": "true"}}
    return answer
