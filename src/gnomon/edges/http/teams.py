"""Teams over HTTP, and the check of their graphs (TGT-3)."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from gnomon.domain import team_form
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault
from gnomon.domain.scopes import Scope
from gnomon.domain.team import Team
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import Keyed, Matching, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body, OptionalBody
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import SLUG, FaultShape, LimitsShape, Listing, Written
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1/teams", tags=["teams"])
Named = Annotated[str, Path(description="Its id or slug")]


class NodeShape(Written):
    """One agent of the graph, with the nodes that it needs."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    agent: str = Field(min_length=1, max_length=64, description="An agent's id or slug")
    query: str = Field(
        "{{query}}",
        max_length=100_000,
        description="May use {{query}} and {{nodes.ID.output}} of nodes upstream",
    )
    after: list[str] = Field(default_factory=list)


class TeamEdit(Written):
    """A patch of a team; ``nodes`` are replaced whole."""

    name: str | None = Field(None, min_length=1, max_length=200)
    nodes: list[NodeShape] | None = Field(None, min_length=1, max_length=200)
    output: str | None = Field(None, description="The node whose answer is the team's")
    daily_cap: int | None = Field(None, ge=1, le=1_000_000, description="Runs a day")
    limits: LimitsShape | None = None
    enabled: bool | None = Field(None, description="One that is not enabled may have faults in its graph")


class TeamWrite(TeamEdit):
    """A team as it is made; a missing slug is made from the name."""

    slug: str | None = Field(None, pattern=SLUG)
    nodes: list[NodeShape] = Field(min_length=1, max_length=200)
    output: str = Field(description="The node whose answer is the team's")


class TeamShape(Written):
    """A team as it is read."""

    id: str
    slug: str
    name: str
    nodes: list[NodeShape]
    output: str
    daily_cap: int | None
    limits: LimitsShape
    enabled: bool
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime


class TeamPage(Listing):
    """One page of teams."""

    items: list[TeamShape]


class TeamCheck(BaseModel):
    """What is wrong with a graph: all of it."""

    ok: bool
    summary: str
    faults: list[FaultShape]


@router.post("", **described("Make a team", takes=TeamWrite, gives=TeamShape, status=201, problems=[409]))
async def create(
    caller: Annotated[Caller, needs(Scope.TEAMS_WRITE)], served: Served, body: Body, keyed: Keyed
) -> Response:
    """An enabled team must have a sound graph: every fault of it is in the answer (TGT-3)."""
    return respond(await served.teams.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List teams, the oldest first", gives=TeamPage))
async def page(
    _caller: Annotated[Caller, needs(Scope.TEAMS_READ)], served: Served, paging: Paged
) -> Response:
    """One page of those that are not deleted."""
    found = await served.teams.page(paging.after, paging.wanted)
    return send(shown(paging.page(found, team_form.to_json, lambda team: team.id)))


@router.get("/{team}", **described("Read a team", gives=TeamShape, problems=[404]))
async def read(_caller: Annotated[Caller, needs(Scope.TEAMS_READ)], served: Served, team: Named) -> Response:
    """By id or slug, with its ETag."""
    return send(_shown(await served.teams.get(team)))


@router.patch(
    "/{team}", **described("Edit a team", takes=TeamEdit, gives=TeamShape, problems=[404, 409, 412])
)
async def edit(
    caller: Annotated[Caller, needs(Scope.TEAMS_WRITE)],
    served: Served,
    team: Named,
    body: Body,
    match: Matching,
) -> Response:
    """A patch that changes nothing leaves the version as it is."""
    return send(_shown(await served.teams.edit(caller, team, body, match=match)))


@router.delete("/{team}", **described("Delete a team, and disable its schedules", problems=[404, 409, 412]))
async def delete(
    caller: Annotated[Caller, needs(Scope.TEAMS_WRITE)], served: Served, team: Named, match: Matching
) -> Response:
    """Its schedules are disabled and its keys revoked; runs in flight go on (SCH-12)."""
    await served.teams.delete(caller, team, match=match)
    return done()


@router.post(
    "/{team}/check",
    **described(
        "List every fault of a team's graph, as it stands or with a patch laid over it",
        takes=TeamEdit,
        body_required=False,
        gives=TeamCheck,
        problems=[404],
    ),
)
async def check(
    _caller: Annotated[Caller, needs(Scope.TEAMS_READ)], served: Served, team: Named, body: OptionalBody
) -> Response:
    """The body, if there is one, is a patch that is tried and not saved (TGT-3)."""
    return send(shown(_checked(await served.teams.check(team, body))))


def _made(team: Team) -> Answer:
    return created(team_form.to_json(team), f"/v1/teams/{team.id}", tag=tag(team.id, team.version))


def _shown(team: Team) -> Answer:
    return shown(team_form.to_json(team), tag=tag(team.id, team.version))


def _checked(faults: list[Fault]) -> dict[str, object]:
    summary = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
    return {
        "ok": not faults,
        "summary": summary or "The team can be invoked.",
        "faults": [{"field": fault.field, "message": fault.message} for fault in faults],
    }
