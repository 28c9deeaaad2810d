"""Sessions over HTTP: read, and erased for good (RUN-12)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.responses import Response

from gnomon.domain import session as forms
from gnomon.domain.caller import Caller
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import done, send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import Listing

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])
Id = Annotated[str, Path(description="The session's id")]


class SessionShape(BaseModel):
    """A session."""

    id: str
    created_at: datetime
    turn_count: int
    last_message_at: datetime | None


class MessageShape(BaseModel):
    """A message; that of an assistant has the ``message_id`` of its run."""

    id: str
    run_id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime


class MessagePage(Listing):
    """One page of messages; ``limit`` counts turns, of up to two messages each."""

    items: list[MessageShape]


@router.get("/{session_id}", **described("Read a session", gives=SessionShape, problems=[404]))
async def read(
    _caller: Annotated[Caller, needs(Scope.SESSIONS_READ)], served: Served, session_id: Id
) -> Response:
    """How much was said in it, and when."""
    return send(shown(forms.to_json(await served.sessions.get(session_id))))


@router.get(
    "/{session_id}/messages",
    **described("List a session's messages, the oldest first", gives=MessagePage, problems=[404]),
)
async def messages(
    _caller: Annotated[Caller, needs(Scope.SESSIONS_READ)], served: Served, session_id: Id, paging: Paged
) -> Response:
    """The full answers of its runs are here (RUN-9)."""
    turns = await served.sessions.turns(session_id, paging.after, paging.wanted)
    page: dict[str, Any] = paging.page(turns, forms.messages, lambda turn: turn.run_id)
    page["items"] = [message for of_turn in page["items"] for message in of_turn]
    return send(shown(page))


@router.delete(
    "/{session_id}", **described("Erase a session and all that was said in it", problems=[404, 409])
)
async def erase(
    caller: Annotated[Caller, needs(Scope.SESSIONS_ERASE)], served: Served, session_id: Id
) -> Response:
    """The slots that led to it are stamped, in the same transaction (RUN-12)."""
    await served.sessions.erase(caller, session_id)
    return done()
