"""Instances over HTTP, and the schema of the frames that they speak (JOB-5)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.form import Form
from gnomon.domain.instance import InstanceStatus, to_json
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import OptionalBody
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import SLUG, Listing, Written

router = APIRouter(prefix="/v1", tags=["instances"])
Reader = Annotated[Caller, needs(Scope.INSTANCES_READ)]
Writer = Annotated[Caller, needs(Scope.INSTANCES_WRITE)]
Named = Annotated[str, Path(description="Its id")]
Role = Annotated[str | None, Query(pattern=SLUG, description="Of this role alone")]
Status = Annotated[InstanceStatus | None, Query(description="In this status alone")]


class InstanceShape(Written):
    """An instance as it is read; ``in_flight`` counts what was pushed to it and has not ended."""

    id: str
    name: str
    role: str
    status: Literal["online", "draining", "offline"]
    epoch: int
    last_heartbeat_at: datetime
    in_flight: int
    max_in_flight: int
    server: str | None
    version: str | None
    connected_at: datetime | None
    drain_asked_at: datetime | None
    created_at: datetime


class InstancePage(Listing):
    """One page of instances."""

    items: list[InstanceShape]


class FramesShape(Written):
    """The JSON schema of every frame, by the type that it names."""

    from_instance: dict[str, Any]
    from_centre: dict[str, Any]


@router.get("/instances", **described("List instances, the first to come first", gives=InstancePage))
async def page(
    _caller: Reader, served: Served, paging: Paged, role: Role = None, status: Status = None
) -> Response:
    """One page, of a role or a status or all."""
    found = await served.instances.page(paging.after, paging.wanted, role=role, status=status)
    return send(shown(paging.page(found, to_json, lambda instance: instance.id)))


@router.get("/instances/{instance}", **described("Read an instance", gives=InstanceShape, problems=[404]))
async def read(_caller: Reader, served: Served, instance: Named) -> Response:
    """Where it is connected, when it was last heard of, how much it works on."""
    return send(shown(to_json(await served.instances.get(instance))))


@router.post(
    "/instances/{instance}/drain",
    **described("Drain an instance", gives=InstanceShape, problems=[404, 409]),
)
async def drain(caller: Writer, served: Served, instance: Named, body: OptionalBody) -> Response:
    """It finishes what it has and gets nothing new, over reconnects too, until it was offline."""
    form = Form(body)
    form.only(())
    form.finish()
    return send(shown(to_json(await served.instances.drain(caller, instance))))


@router.get(
    "/connect/schema",
    **described("The frames of the WebSocket /v1/connect", gives=FramesShape),
)
async def frames(_caller: Reader, served: Served) -> Response:
    """A JSON schema for each frame, from the instance and from the centre."""
    return send(shown(served.frames()))
