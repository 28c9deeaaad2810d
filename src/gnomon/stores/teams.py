"""Teams: written, found by id or slug, paged. One method per query of ``sql/teams.sql``."""

import json

from gnomon.domain.team import Team
from gnomon.stores.database import Tx, Value
from gnomon.stores.targets import limits_to_text, team_from_row


async def insert(tx: Tx, team: Team) -> Team:
    """Insert a team; the record as it stands, its instants by the database's clock.

    Raises:
        UniqueViolation: its slug is taken.
    """
    row = await tx.one("teams.insert", slug=team.slug, created_by=team.created_by, **_parameters(team))
    assert row is not None
    return team_from_row(row)


async def find(tx: Tx, name: str) -> Team | None:
    """The team of this id or slug."""
    row = await tx.one("teams.find", name=name)
    return None if row is None else team_from_row(row)


async def page(tx: Tx, after: str, limit: int) -> list[Team]:
    """Teams in the order of their making, after an id."""
    return [team_from_row(row) for row in await tx.all("teams.page", after=after, limit=limit)]


async def update(tx: Tx, team: Team) -> Team | None:
    """Write what can be edited, if the version is still the record's; the record as it stands then."""
    row = await tx.one("teams.update", version=team.version, **_parameters(team))
    return None if row is None else team_from_row(row)


async def delete(tx: Tx, team_id: str) -> bool:
    """Mark a team as deleted; whether it was there."""
    return await tx.run("teams.delete", id=team_id) == 1


def _parameters(team: Team) -> dict[str, Value]:
    nodes = [
        {"id": node.id, "agent": node.agent, "query": node.query, "after": list(node.after)}
        for node in team.nodes
    ]
    return {
        "id": team.id,
        "name": team.name,
        "nodes": json.dumps(nodes, separators=(",", ":")),
        "output": team.output,
        "daily_cap": team.daily_cap,
        "limits": limits_to_text(team.limits),
        "enabled": int(team.enabled),
    }
