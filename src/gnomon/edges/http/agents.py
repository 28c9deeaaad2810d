"""Agents over HTTP (CONTRACT, "Agent and team")."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from gnomon.domain import agent_form
from gnomon.domain.agent import Agent
from gnomon.domain.caller import Caller
from gnomon.domain.scopes import Scope
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import Keyed, Matching, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import SLUG, LimitsShape, Listing, Written
from gnomon.services.agents import SavedAgent
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1/agents", tags=["agents"])
Named = Annotated[str, Path(description="Its id or slug")]


class HttpRuntimeShape(Written):
    """A signed POST."""

    kind: Literal["http"]
    url: str = Field(min_length=1, max_length=2_000)
    headers: dict[str, str] | None = None


class CommandRuntimeShape(Written):
    """A program, without a shell."""

    kind: Literal["command"]
    argv: list[str] = Field(min_length=1, max_length=100)
    cwd: str | None = None
    env: dict[str, str] | None = None


class PythonRuntimeShape(Written):
    """An importable callable."""

    kind: Literal["python"]
    path: str = Field(description="module:callable")


class LlmRuntimeShape(Written):
    """A model; ``test`` answers offline."""

    kind: Literal["llm"]
    model: str = Field(min_length=1, max_length=200)
    instructions: str | None = None
    settings: dict[str, Any] | None = None


class RoleRuntimeShape(Written):
    """One connected instance of a role."""

    kind: Literal["role"]
    role: str = Field(pattern=SLUG)


RuntimeShape = Annotated[
    HttpRuntimeShape | CommandRuntimeShape | PythonRuntimeShape | LlmRuntimeShape | RoleRuntimeShape,
    Field(discriminator="kind"),
]


class _AgentFields(Written):
    name: str | None = Field(None, min_length=1, max_length=200)
    timeout_seconds: int | None = Field(None, ge=1, le=86_400)
    daily_cap: int | None = Field(None, ge=1, le=1_000_000, description="Runs a day")
    limits: LimitsShape | None = None
    enabled: bool | None = None


class AgentEdit(_AgentFields):
    """A patch of an agent: ``limits`` are merged, ``runtime`` is replaced whole, null brings a default back."""

    runtime: RuntimeShape | None = None


class AgentWrite(_AgentFields):
    """An agent as it is made; a missing slug is made from the name."""

    slug: str | None = Field(None, pattern=SLUG)
    runtime: RuntimeShape


class AgentShape(Written):
    """An agent as it is read. ``secret`` signs http requests and is shown only when it is drawn."""

    id: str
    slug: str
    name: str
    runtime: RuntimeShape
    timeout_seconds: int
    daily_cap: int | None
    limits: LimitsShape
    enabled: bool
    secret: str | None = None
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime


class AgentPage(Listing):
    """One page of agents."""

    items: list[AgentShape]


@router.post("", **described("Make an agent", takes=AgentWrite, gives=AgentShape, status=201, problems=[409]))
async def create(
    caller: Annotated[Caller, needs(Scope.AGENTS_WRITE)], served: Served, body: Body, keyed: Keyed
) -> Response:
    """The answer is the only one that shows an http agent's signing secret."""
    return respond(await served.agents.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List agents, the oldest first", gives=AgentPage))
async def page(
    _caller: Annotated[Caller, needs(Scope.AGENTS_READ)], served: Served, paging: Paged
) -> Response:
    """One page of those that are not deleted."""
    found = await served.agents.page(paging.after, paging.wanted)
    return send(shown(paging.page(found, agent_form.to_json, lambda agent: agent.id)))


@router.get("/{agent}", **described("Read an agent", gives=AgentShape, problems=[404]))
async def read(
    _caller: Annotated[Caller, needs(Scope.AGENTS_READ)], served: Served, agent: Named
) -> Response:
    """By id or slug, with its ETag."""
    return send(_shown(await served.agents.get(agent)))


@router.patch(
    "/{agent}", **described("Edit an agent", takes=AgentEdit, gives=AgentShape, problems=[404, 409, 412])
)
async def edit(
    caller: Annotated[Caller, needs(Scope.AGENTS_WRITE)],
    served: Served,
    agent: Named,
    body: Body,
    match: Matching,
) -> Response:
    """A patch that changes nothing leaves the version as it is."""
    saved = await served.agents.edit(caller, agent, body, match=match)
    return send(_shown(saved.agent, saved.secret))


@router.delete(
    "/{agent}", **described("Delete an agent, and disable its schedules", problems=[404, 409, 412])
)
async def delete(
    caller: Annotated[Caller, needs(Scope.AGENTS_WRITE)], served: Served, agent: Named, match: Matching
) -> Response:
    """Its schedules are disabled and its keys revoked; runs in flight go on (SCH-12)."""
    await served.agents.delete(caller, agent, match=match)
    return done()


def _made(saved: SavedAgent) -> Answer:
    agent = saved.agent
    body = agent_form.to_json(agent, secret=saved.secret)
    return created(body, f"/v1/agents/{agent.id}", tag=tag(agent.id, agent.version))


def _shown(agent: Agent, secret: str | None = None) -> Answer:
    return shown(agent_form.to_json(agent, secret=secret), tag=tag(agent.id, agent.version))
