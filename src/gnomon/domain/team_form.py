"""The written and the read form of a team (CONTRACT, "Agent and team"). What its graph must be, ``domain.team`` knows."""

from dataclasses import dataclass
from typing import Any

from gnomon.domain.agent import DAILY_CAP
from gnomon.domain.agent_form import limits_to_json, read_limits, read_names
from gnomon.domain.form import Form
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Limits
from gnomon.domain.team import NODES, Node, Team

_WRITTEN = ("slug", "name", "nodes", "output", "daily_cap", "limits", "enabled")
_READ_ONLY = ("id", "version", "created_at", "created_by", "updated_at")
QUERY_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class TeamDraft:
    """A team as it was written. ``whole`` is false where a node could not be read, so that its graph can't be judged."""

    slug: str
    name: str
    nodes: tuple[Node, ...]
    output: str
    daily_cap: int | None
    limits: Limits
    enabled: bool
    whole: bool


def read(form: Form) -> TeamDraft:
    """A team as far as it can be read; its faults are the form's."""
    form.only(_WRITTEN, _READ_ONLY)
    slug, name = read_names(form)
    before = len(form.faults)
    nodes = tuple(_node(node) for node in form.objects("nodes", *NODES, required=True))
    output = form.text("output", 1, 64, required=True)
    return TeamDraft(
        slug=slug,
        name=name,
        nodes=nodes,
        output=output or "",
        whole=len(form.faults) == before,
        daily_cap=form.integer("daily_cap", *DAILY_CAP),
        limits=read_limits(form.part("limits")),
        enabled=form.boolean("enabled", default=True),
    )


def to_written(team: Team) -> dict[str, Any]:
    """The written form of a record: what a patch is laid over, and what an export holds."""
    return {
        "slug": team.slug,
        "name": team.name,
        "nodes": [
            {"id": node.id, "agent": node.agent, "query": node.query, "after": list(node.after)}
            for node in team.nodes
        ],
        "output": team.output,
        "daily_cap": team.daily_cap,
        "limits": limits_to_json(team.limits),
        "enabled": team.enabled,
    }


def to_json(team: Team) -> dict[str, Any]:
    """The read form."""
    return {
        "id": team.id,
        **to_written(team),
        "version": team.version,
        "created_at": rfc3339(team.created_at),
        "created_by": team.created_by,
        "updated_at": rfc3339(team.updated_at),
    }


def _node(form: Form) -> Node:
    form.only(("id", "agent", "query", "after"))
    return Node(
        id=form.text("id", 1, 64, required=True) or "",
        agent=form.text("agent", 1, 64, required=True) or "",
        query=form.text("query", 0, QUERY_CHARACTERS, default="{{query}}", line=False) or "",
        after=form.texts("after", 0, NODES[1], 1, 64),
    )
