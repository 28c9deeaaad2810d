"""``/v1/apply`` and ``/v1/export``: definitions as code (SCH-13). Each section asks for its own noun's scope besides."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import Keyed, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import Written
from gnomon.services.apply import Outcome, Step
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1", tags=["code"])


class Document(Written):
    """Definitions in the form that their own addresses take, section by section."""

    calendars: list[dict[str, Any]] | None = Field(None, description="Known by their slug")
    agents: list[dict[str, Any]] | None = Field(None, description="Known by their slug")
    teams: list[dict[str, Any]] | None = Field(None, description="Known by their slug")
    schedules: list[dict[str, Any]] | None = Field(None, description="Known by their target and name")


class Exported(BaseModel):
    """What stands, as a document; a section without anything is left out."""

    model_config = ConfigDict(extra="allow")


class DifferenceShape(BaseModel):
    """One field: what stands, and what the document says."""

    field: str
    standing: Any
    wanted: Any


class ChangeShape(BaseModel):
    """What happens to one definition; ``id`` is null where a plan would make it."""

    section: str
    key: str
    step: Step
    id: str | None
    differences: list[DifferenceShape]
    secret: str | None = Field(None, description="The signing secret of a new http agent, shown once")


class Changes(BaseModel):
    """What was done, or would be."""

    applied: bool
    items: list[ChangeShape]


@router.post("/apply", **described("Apply a document", takes=Document, gives=Changes, problems=[409]))
async def apply(
    caller: Annotated[Caller, needs(Scope.SCHEDULES_WRITE)],
    served: Served,
    body: Body,
    keyed: Keyed,
    dry_run: Annotated[bool, Query(description="Plan alone: say what would happen, change nothing")] = False,
) -> Response:
    """All of it or nothing. A document is the whole definition of what it names; applying it again changes nothing."""
    if dry_run:
        return send(_changes(await served.apply.plan(caller, body), planned=True))
    return respond(await served.apply.apply(caller, body, once=once_for(keyed, body, _changes)), _changes)


@router.get("/export", **described("Export everything as a document", gives=Exported))
async def export(caller: Annotated[Caller, needs(Scope.SCHEDULES_READ)], served: Served) -> Response:
    """What the caller may read, in the form that apply takes; applying it here would change nothing."""
    return send(shown(await served.apply.export(caller)))


def _changes(outcomes: list[Outcome], *, planned: bool = False) -> Answer:
    items = [_change(outcome, planned=planned) for outcome in outcomes]
    return shown({"applied": not planned, "items": items})


def _change(outcome: Outcome, *, planned: bool) -> dict[str, Any]:
    unmade = planned and outcome.step is Step.CREATE  # its id and its secret were rolled back
    return {
        "section": outcome.section,
        "key": outcome.key,
        "step": outcome.step.value,
        "id": None if unmade else outcome.id,
        "differences": [
            {"field": each.field, "standing": each.standing, "wanted": each.wanted}
            for each in outcome.differences
        ],
        "secret": None if planned else outcome.secret,
    }
