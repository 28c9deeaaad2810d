"""The gates before there is a run: is the target there, may it be invoked now? Asked for a whole batch (RUN-2).

What a gate refuses becomes a skipped slot with its reason, or the caller's refusal; never a run.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gnomon.domain import team as teams_domain
from gnomon.domain.agent import Agent
from gnomon.domain.grant import Resolved
from gnomon.domain.occurrence import Reason
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.team import Team
from gnomon.stores import targets
from gnomon.stores.database import Tx

TargetKey = tuple[str, str]  # kind and id, as the rows have them


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gates say of a target: resolved, or the reason for a skip with a sentence of detail."""

    resolved: Resolved | None
    reason: Reason | None = None
    detail: str | None = None


class Gates:
    """Judges targets inside the transaction that claims for them."""

    async def judge(self, tx: Tx, keys: Iterable[TargetKey]) -> dict[TargetKey, Verdict]:
        """A verdict for each target."""
        wanted = set(keys)
        agent_ids = {key[1] for key in wanted if key[0] == TargetKind.AGENT}
        team_ids = {key[1] for key in wanted if key[0] == TargetKind.TEAM}
        found_agents = await targets.live_agents(tx, agent_ids) if agent_ids else {}
        found_teams = await targets.live_teams(tx, team_ids) if team_ids else {}
        named = {node.agent for team in found_teams.values() for node in team.nodes}
        members = await targets.live_agents(tx, named) if named else {}
        verdicts: dict[TargetKey, Verdict] = {}
        for kind, target_id in wanted:
            target = Target(TargetKind(kind), target_id)
            if target.kind is TargetKind.AGENT:
                verdicts[kind, target_id] = _agent(target, found_agents.get(target_id))
            else:
                verdicts[kind, target_id] = _team(target, found_teams.get(target_id), members)
        return verdicts


def _agent(target: Target, agent: Agent | None) -> Verdict:
    if agent is None:
        return Verdict(None, Reason.TARGET_GONE, f"the agent {target.id} was deleted")
    if not agent.enabled:
        return Verdict(None, Reason.TARGET_INVALID, f"the agent {agent.slug} is not enabled")
    return Verdict(Resolved(target, agent=agent))


def _team(target: Target, team: Team | None, members: dict[str, Agent]) -> Verdict:
    if team is None:
        return Verdict(None, Reason.TARGET_GONE, f"the team {target.id} was deleted")
    if not team.enabled:
        return Verdict(None, Reason.TARGET_INVALID, f"the team {team.slug} is not enabled")
    faults = teams_domain.check(team, {name: agent.enabled for name, agent in members.items()})
    if faults:
        summary = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
        return Verdict(None, Reason.TARGET_INVALID, f"the team {team.slug} can't run: {summary}")
    return Verdict(Resolved(target, team=team, agents=dict(members)))
