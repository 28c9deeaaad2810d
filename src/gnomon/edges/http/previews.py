"""The next slots of a cadence, without a record (CAD-8)."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from gnomon.cadence import Slot
from gnomon.domain.caller import Caller
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import CadenceShape, Written

router = APIRouter(prefix="/v1/preview", tags=["preview"])


class PreviewAsked(Written):
    """What is asked for."""

    cadence: CadenceShape
    after: datetime | None = Field(None, description="Now, if it is not given")
    count: int | None = Field(None, ge=1, le=1_000, description="5, if it is not given")
    anchor: datetime | None = Field(None, description="Where phases count from; after, if it is not given")
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000_000)


class SlotShape(BaseModel):
    """One slot; ``note`` says where a rule moved it."""

    at: datetime
    local_time: str
    offset: str
    note: str | None


class PreviewShape(BaseModel):
    """The slots, in order."""

    items: list[SlotShape]


def slot_json(slot: Slot) -> dict[str, str | None]:
    """A slot as it is read."""
    return {
        "at": rfc3339(slot.at),
        "local_time": slot.local_time,
        "offset": slot.offset,
        "note": slot.note,
    }


@router.post("", **described("List the next slots of a cadence", takes=PreviewAsked, gives=PreviewShape))
async def preview(
    _caller: Annotated[Caller, needs(Scope.SCHEDULES_READ)], served: Served, body: Body
) -> Response:
    """Computed by what the dispatcher itself computes with."""
    slots = await served.previews.preview(body)
    return send(shown({"items": [slot_json(slot) for slot in slots]}))
