"""API keys over HTTP: a key's text is in the answer to its POST alone (SEC-3)."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from gnomon.domain import api_key_form
from gnomon.domain.caller import Caller
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import Keyed, created, done, once_for, respond, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.bodies import Body
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import SLUG, Listing, TargetShape, Written
from gnomon.services.api_keys import NewKey
from gnomon.services.dedup import Answer

router = APIRouter(prefix="/v1/keys", tags=["keys"])
Id = Annotated[str, Path(description="The key's id, not its text")]


class KeyEdit(Written):
    """What of a key can change."""

    name: str | None = Field(None, min_length=1, max_length=200)
    expires_at: datetime | None = None


class KeyWrite(KeyEdit):
    """A key as it is made: bound to one target, or to scopes."""

    scopes: list[str] | None = Field(None, max_length=100)
    target: TargetShape | None = None
    role: str | None = Field(
        None, pattern=SLUG, description="It connects and claims for this role alone; goes with those scopes"
    )


class KeyShape(Written):
    """A key as it is read; ``hint`` is the end of its random part."""

    id: str
    name: str
    hint: str
    scopes: list[str]
    target: TargetShape | None
    role: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewKeyShape(KeyShape):
    """A key at its making: ``key`` is its text, shown this once."""

    key: str


class KeyPage(Listing):
    """One page of keys."""

    items: list[KeyShape]


@router.post("", **described("Make a key", takes=KeyWrite, gives=NewKeyShape, status=201, problems=[409]))
async def create(
    caller: Annotated[Caller, needs(Scope.KEYS_WRITE)], served: Served, body: Body, keyed: Keyed
) -> Response:
    """The answer is the only one that shows the key's text."""
    return respond(await served.api_keys.create(caller, body, once=once_for(keyed, body, _made)), _made)


@router.get("", **described("List keys, the oldest first", gives=KeyPage))
async def page(
    _caller: Annotated[Caller, needs(Scope.KEYS_READ)],
    served: Served,
    paging: Paged,
    revoked: Annotated[bool, Query(description="With those that were revoked")] = False,
) -> Response:
    """One page, by default of those that open something."""
    found = await served.api_keys.page(paging.after, paging.wanted, revoked=revoked)
    return send(shown(paging.page(found, api_key_form.to_json, lambda key: key.id)))


@router.get("/{key_id}", **described("Read a key", gives=KeyShape, problems=[404]))
async def read(_caller: Annotated[Caller, needs(Scope.KEYS_READ)], served: Served, key_id: Id) -> Response:
    """Without its text, which nobody has."""
    return send(shown(api_key_form.to_json(await served.api_keys.get(key_id))))


@router.patch(
    "/{key_id}",
    **described("Rename a key, or change its expiry", takes=KeyEdit, gives=KeyShape, problems=[404]),
)
async def edit(
    caller: Annotated[Caller, needs(Scope.KEYS_WRITE)], served: Served, key_id: Id, body: Body
) -> Response:
    """What a key opens never changes: make another and revoke this one."""
    return send(shown(api_key_form.to_json(await served.api_keys.edit(caller, key_id, body))))


@router.delete("/{key_id}", **described("Revoke a key", problems=[404]))
async def revoke(caller: Annotated[Caller, needs(Scope.KEYS_WRITE)], served: Served, key_id: Id) -> Response:
    """From the next request on it opens nothing; its record stays, for what it did."""
    await served.api_keys.revoke(caller, key_id)
    return done()


def _made(new: NewKey) -> Answer:
    return created(api_key_form.to_json(new.key, new.text), f"/v1/keys/{new.key.id}")
