"""Agents and teams as the gates read them: whole records of those that live, by id or slug."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from gnomon.domain.agent import Agent, runtime_from_json
from gnomon.domain.instants import from_micros
from gnomon.domain.invocation import Limits
from gnomon.domain.team import Node, Team
from gnomon.stores.database import Row, Tx


async def live_agents(tx: Tx, names: Iterable[str]) -> dict[str, Agent]:
    """The agents of these ids and slugs that are not deleted, under each name that was asked for."""
    wanted = set(names)
    rows = await tx.all("targets.live_agents", names=json.dumps(sorted(wanted)))
    found = [agent_from_row(row) for row in rows]
    return {name: agent for agent in found for name in (agent.id, agent.slug) if name in wanted}


async def live_teams(tx: Tx, names: Iterable[str]) -> dict[str, Team]:
    """The teams of these ids and slugs that are not deleted, under each name that was asked for."""
    wanted = set(names)
    rows = await tx.all("targets.live_teams", names=json.dumps(sorted(wanted)))
    found = [team_from_row(row) for row in rows]
    return {name: team for team in found for name in (team.id, team.slug) if name in wanted}


def agent_from_row(row: Row) -> Agent:
    """The record of an agent's row."""
    return Agent(
        id=row["id"],
        slug=row["slug"],
        name=row["name"],
        runtime=runtime_from_json(json.loads(row["runtime"])),
        timeout_seconds=row["timeout_seconds"],
        daily_cap=row["daily_cap"],
        limits=limits_from_text(row["limits"]),
        enabled=bool(row["enabled"]),
        version=row["version"],
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
        secret=row["secret"],
    )


def team_from_row(row: Row) -> Team:
    """The record of a team's row."""
    return Team(
        id=row["id"],
        slug=row["slug"],
        name=row["name"],
        nodes=tuple(
            Node(node["id"], node["agent"], node["query"], tuple(node.get("after", ())))
            for node in json.loads(row["nodes"])
        ),
        output=row["output"],
        daily_cap=row["daily_cap"],
        limits=limits_from_text(row["limits"]),
        enabled=bool(row["enabled"]),
        version=row["version"],
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
    )


def limits_from_text(text: str) -> Limits:
    """The stored limits: a JSON object that holds what is bounded."""
    return Limits(**json.loads(text))


def limits_to_text(limits: Limits) -> str:
    """The other way round."""
    return json.dumps({name: value for name, value in asdict(limits).items() if value is not None})
