"""What the centre says of itself: its audit log (SEC-7) and its settings (OPS-5)."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from gnomon.domain.audit import Action, AuditEntry
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Invalid
from gnomon.domain.instants import rfc3339
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.paging import Paged
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served
from gnomon.edges.http.shapes import Listing

router = APIRouter(prefix="/v1", tags=["records"])


class SubjectShape(BaseModel):
    """What an entry is about."""

    kind: str
    id: str


class AuditShape(BaseModel):
    """One entry; it never changes."""

    seq: int
    at: datetime
    actor: str
    action: Action
    subject: SubjectShape
    fence: int | None
    detail: dict[str, Any]


class AuditPage(Listing):
    """One page of entries."""

    items: list[AuditShape]


class SettingsPage(Listing):
    """Every setting of the process that answers."""

    items: list[dict[str, Any]]


@router.get("/audit", **described("Read the audit log, forward from a number", gives=AuditPage))
async def audit(
    _caller: Annotated[Caller, needs(Scope.AUDIT_READ)],
    served: Served,
    paging: Paged,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="The seq to go on after")] = 0,
    action: Annotated[Action | None, Query()] = None,
    subject: Annotated[str | None, Query(max_length=100, description="The id of what it is about")] = None,
) -> Response:
    """Give the last ``seq`` that you have as ``after`` to follow the log."""
    seq = max(after, _seq(paging.after))
    found = await served.audit_log.after(
        seq, paging.wanted, action=None if action is None else action.value, subject=subject
    )
    return send(shown(paging.page(found, _entry_json, lambda entry: str(entry.seq))))


@router.get(
    "/settings", **described("List the settings, with where each value came from", gives=SettingsPage)
)
async def settings(_caller: Annotated[Caller, needs(Scope.SETTINGS_READ)], served: Served) -> Response:
    """Of the process that answers."""
    return send(shown({"items": served.settings(), "next_cursor": None}))


def _seq(position: str) -> int:
    if not position:
        return 0
    if not position.isascii() or not position.isdigit() or len(position) > 18:
        raise Invalid("The cursor is not one that this list gave.", code="bad_cursor")
    return int(position)


def _entry_json(entry: AuditEntry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": rfc3339(entry.at),
        "actor": entry.actor,
        "action": entry.action.value,
        "subject": {"kind": entry.subject_kind, "id": entry.subject_id},
        "fence": entry.fence,
        "detail": entry.detail,
    }
