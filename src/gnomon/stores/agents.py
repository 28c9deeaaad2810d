"""Agents: written, found by id or slug, paged. One method per query of ``sql/agents.sql``."""

import json

from gnomon.domain.agent import Agent, runtime_to_json
from gnomon.stores.database import Tx, Value
from gnomon.stores.targets import agent_from_row, limits_to_text


async def insert(tx: Tx, agent: Agent) -> Agent:
    """Insert an agent; the record as it stands, its instants by the database's clock.

    Raises:
        UniqueViolation: its slug is taken.
    """
    row = await tx.one("agents.insert", slug=agent.slug, created_by=agent.created_by, **_parameters(agent))
    assert row is not None
    return agent_from_row(row)


async def find(tx: Tx, name: str) -> Agent | None:
    """The agent of this id or slug."""
    row = await tx.one("agents.find", name=name)
    return None if row is None else agent_from_row(row)


async def page(tx: Tx, after: str, limit: int) -> list[Agent]:
    """Agents in the order of their making, after an id."""
    return [agent_from_row(row) for row in await tx.all("agents.page", after=after, limit=limit)]


async def update(tx: Tx, agent: Agent) -> Agent | None:
    """Write what can be edited, if the version is still the record's; the record as it stands then."""
    row = await tx.one("agents.update", version=agent.version, **_parameters(agent))
    return None if row is None else agent_from_row(row)


async def delete(tx: Tx, agent_id: str) -> bool:
    """Mark an agent as deleted and forget its secret; whether it was there."""
    return await tx.run("agents.delete", id=agent_id) == 1


def _parameters(agent: Agent) -> dict[str, Value]:
    return {
        "id": agent.id,
        "name": agent.name,
        "runtime": json.dumps(runtime_to_json(agent.runtime), separators=(",", ":")),
        "timeout_seconds": agent.timeout_seconds,
        "daily_cap": agent.daily_cap,
        "limits": limits_to_text(agent.limits),
        "secret": agent.secret,
        "enabled": int(agent.enabled),
    }
