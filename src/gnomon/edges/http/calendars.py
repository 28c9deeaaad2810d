"""Holiday calendars over HTTP (CAD-9)."""

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from gnomon.domain import calendar as forms
from gnomon.domain.calendar import Calendar
from gnomon.domain.caller import Caller
from gnomon.domain.scopes import Scope
from gnomon.domain.versions import tag
from gnomon.edges.http.answers import Keyed, Matching, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import SLUG, Listing, Written
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1/calendars", tags=["calendars"])
Named = Annotated[str, Path(description="Its id or slug")]


class CalendarEdit(Written):
    """A patch of a calendar; ``dates`` are replaced whole."""

    name: str | None = Field(None, min_length=1, max_length=200)
    dates: list[date] | None = Field(None, max_length=forms.MOST_DATES)


class CalendarWrite(CalendarEdit):
    """A calendar as it is made; a missing slug is made from the name."""

    slug: str | None = Field(None, pattern=SLUG)


class CalendarShape(Written):
    """A calendar as it is read."""

    id: str
    slug: str
    name: str
    dates: list[date]
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime


class CalendarPage(Listing):
    """One page of calendars."""

    items: list[CalendarShape]


@router.post(
    "",
    **described("Make a calendar", takes=CalendarWrite, gives=CalendarShape, status=201, problems=[409]),
)
async def create(
    caller: Annotated[Caller, needs(Scope.CALENDARS_WRITE)], served: Served, body: Body, keyed: Keyed
) -> Response:
    """Dates are local dates, in whatever zone a cadence has."""
    return respond(await served.calendars.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List calendars, the oldest first", gives=CalendarPage))
async def page(
    _caller: Annotated[Caller, needs(Scope.CALENDARS_READ)], served: Served, paging: Paged
) -> Response:
    """One page of all there are."""
    found = await served.calendars.page(paging.after, paging.wanted)
    return send(shown(paging.page(found, forms.to_json, lambda calendar: calendar.id)))


@router.get("/{calendar}", **described("Read a calendar", gives=CalendarShape, problems=[404]))
async def read(
    _caller: Annotated[Caller, needs(Scope.CALENDARS_READ)], served: Served, calendar: Named
) -> Response:
    """By id or slug, with its ETag."""
    return send(_shown(await served.calendars.get(calendar)))


@router.patch(
    "/{calendar}",
    **described(
        "Edit a calendar, and realign what uses it",
        takes=CalendarEdit,
        gives=CalendarShape,
        problems=[404, 409, 412],
    ),
)
async def edit(
    caller: Annotated[Caller, needs(Scope.CALENDARS_WRITE)],
    served: Served,
    calendar: Named,
    body: Body,
    match: Matching,
) -> Response:
    """The next slots of the schedules that use it are computed anew."""
    return send(_shown(await served.calendars.edit(caller, calendar, body, match=match)))


@router.delete("/{calendar}", **described("Delete a calendar that nothing uses", problems=[404, 409, 412]))
async def delete(
    caller: Annotated[Caller, needs(Scope.CALENDARS_WRITE)], served: Served, calendar: Named, match: Matching
) -> Response:
    """Refused while a schedule uses it."""
    await served.calendars.delete(caller, calendar, match=match)
    return done()


def _made(calendar: Calendar) -> Answer:
    location = f"/v1/calendars/{calendar.id}"
    return created(forms.to_json(calendar), location, tag=tag(calendar.id, calendar.version))


def _shown(calendar: Calendar) -> Answer:
    return shown(forms.to_json(calendar), tag=tag(calendar.id, calendar.version))
