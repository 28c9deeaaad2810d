"""``/v1/doctor``: what could happen twice, not at all, or be lost (IDM-4)."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from gnomon.domain.caller import Caller
from gnomon.domain.finding import Finding, Kind
from gnomon.domain.scopes import Scope
from gnomon.edges.http.answers import send, shown
from gnomon.edges.http.auth import needs
from gnomon.edges.http.routing import described
from gnomon.edges.http.served import Served

router = APIRouter(prefix="/v1/doctor", tags=["records"])


class WhereShape(BaseModel):
    """What a finding is about: a schedule, a job, a process, an API key, the database."""

    kind: str
    id: str
    name: str


class FindingShape(BaseModel):
    """One thing to look at: what was seen, and what to do about it."""

    finding: Kind
    where: WhereShape
    what: str
    advice: str


class Findings(BaseModel):
    """Everything that was found: counted by kind, and of each kind the first by name."""

    healthy: bool
    counts: dict[str, int]
    items: list[FindingShape]


@router.get("", **described("Look for what could happen twice, not at all, or be lost", gives=Findings))
async def look(_caller: Annotated[Caller, needs(Scope.SETTINGS_READ)], served: Served) -> Response:
    """Reads one snapshot and changes nothing. What is broken already, ``gnomon verify`` finds."""
    found = await served.doctor.look()
    body = {
        "healthy": not found.counts,
        "counts": {kind.value: count for kind, count in found.counts.items()},
        "items": [_finding_json(finding) for finding in found.named],
    }
    return send(shown(body))


def _finding_json(finding: Finding) -> dict[str, Any]:
    where = finding.where
    return {
        "finding": finding.kind.value,
        "where": {"kind": where.kind, "id": where.id, "name": where.name},
        "what": finding.what,
        "advice": finding.advice,
    }
