"""``/v1/runs``: runs read, cancelled, completed, watched as they work (CONTRACT, HTTP)."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response, StreamingResponse

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Missing, Unavailable
from gnomon.domain.filters import LAST, RunFilter
from gnomon.domain.form import Form
from gnomon.domain.invocation import Usage
from gnomon.domain.run import RunStatus, Trigger
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import accepted, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body, OptionalBody
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.run_shapes import (
    CompleteWrite,
    RunDetail,
    RunPage,
    RunShape,
    run_detail_json,
    run_json,
)
from gnomon.edges.http.served import Served
from gnomon.services.runs import COMPLETIONS, Streamed

router = APIRouter(prefix="/v1/runs", tags=["runs"])
EVENTS = "text/event-stream"
Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Listener = Annotated[Caller, needs(Scope.RUNS_READ, offers=(EVENTS,))]
Canceller = Annotated[Caller, needs(Scope.RUNS_CANCEL)]
Completer = Annotated[Caller, needs(Scope.RUNS_COMPLETE)]
Named = Annotated[str, Path(description="Its id")]
OUTPUT_CHARACTERS = (0, 1_000_000)
_LARGEST = 2**63 - 1
_COST = (0.0, 1e12)


@router.get("", **described("List runs", gives=RunPage))
async def page(
    _caller: Reader,
    served: Served,
    paged: Paged,
    status: Annotated[RunStatus | None, Query(description="Only those in this status")] = None,
    trigger: Annotated[Trigger | None, Query(description="schedule, manual or invoke")] = None,
    target: Annotated[str | None, Query(max_length=64, description="A target's id or slug")] = None,
) -> Response:
    """Runs, the newest first. Answers are shown by their beginnings."""
    chosen = RunFilter(status, trigger, target)
    found = await served.runs.page(chosen, paged.after or LAST, paged.wanted)
    return send(shown(paged.page(found, run_json, lambda run: run.id)))


@router.get("/{run}", **described("Read a run", gives=RunDetail, problems=(404,)))
async def get(_caller: Reader, served: Served, run: Named) -> Response:
    """The run with its attempts and its answer in full, long after whoever started it has gone (RUN-11)."""
    found, output = await served.runs.get(run)
    return send(shown(run_detail_json(found, output)))


@router.post("/{run}/cancel", **described("Cancel a run", gives=RunShape, status=202, problems=(404, 409)))
async def cancel(caller: Canceller, served: Served, run: Named, body: OptionalBody) -> Response:
    """202 with the run: cancelled already where nobody worked on it, else asked to stop, then stopped (RUN-10)."""
    form = Form(body)
    form.only(())
    form.finish()
    found = await served.runs.cancel(run, caller.actor)
    return send(accepted(run_json(found), f"/v1/runs/{found.id}"))


@router.post(
    "/{run}/complete",
    **described("Complete a run", gives=RunDetail, takes=CompleteWrite, problems=(404, 409)),
)
async def complete(_caller: Completer, served: Served, run: Named, body: Body) -> Response:
    """The run, over. 409 where the fence is an old one: nothing was changed, and the work is to be dropped (RUN-6)."""
    form = Form(body)
    form.only(("fence", "status", "output", "usage"))
    fence = form.integer("fence", 0, _LARGEST, required=True)
    status = form.choice("status", sorted(COMPLETIONS), required=True)
    output = form.text("output", *OUTPUT_CHARACTERS, line=False)
    usage = _usage(form)
    form.finish()
    assert fence is not None
    assert status is not None
    found = await served.runs.complete(run, fence, RunStatus(status), output, usage)
    return send(shown(run_detail_json(found, output)))


@router.get(
    "/{run}/events",
    response_class=StreamingResponse,
    **described("Watch a run", problems=(404,), status=200),
)
async def events(
    _caller: Listener,
    served: Served,
    run: Named,
    last_event_id: Annotated[str | None, Header(max_length=40, description="Resume after this event")] = None,
) -> Response:
    """A stream of server-sent events: what the run reports, each change of its status; it ends with the run."""
    await served.runs.get(run)
    return StreamingResponse(_lines(served.runs.events(run, last_event_id)), media_type=EVENTS)


async def _lines(stream: AsyncIterator[Streamed | None]) -> AsyncIterator[str]:
    with suppress(
        Missing, Unavailable
    ):  # the run was cleaned up, or the program stops: the client asks again
        async for event in stream:
            yield ": quiet\n\n" if event is None else _line(event)


def _line(event: Streamed) -> str:
    data = json.dumps(event.data, separators=(",", ":"), allow_nan=False)
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"


def _usage(form: Form) -> Usage | None:
    inner = form.part("usage")
    if inner is None:
        return None
    inner.only(("model_calls", "input_tokens", "output_tokens", "cost"))
    counts: dict[str, Any] = {
        name: inner.integer(name, 0, _LARGEST, default=0) or 0
        for name in ("model_calls", "input_tokens", "output_tokens")
    }
    return Usage(**counts, cost=inner.number("cost", *_COST, default=0.0) or 0.0)
