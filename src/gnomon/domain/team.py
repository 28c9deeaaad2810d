"""A team: a graph of agents, its record, its check and the templates of its nodes (TGT-3).

The graph is read along ``after``: a node needs the nodes it names there, and starts once all of them are done. What
executes it is ``services/team_walk``; nothing here runs anything or knows where agents are kept.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter

from gnomon.domain.errors import Fault
from gnomon.domain.invocation import Limits, Result

NODES = (1, 200)
_NODE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_OUTPUT_OF = re.compile(r"nodes\.([A-Za-z0-9_-]{1,64})\.output")

NodeOutput = Result  # what a finished node left behind: its text, and what it cost


@dataclass(frozen=True, slots=True)
class Node:
    """One agent in a team: ``agent`` is an id or a slug, ``query`` its template, ``after`` the nodes it needs."""

    id: str
    agent: str
    query: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Team:
    """The record of one team. ``output`` names the node whose answer is the team's; ``version`` is its ETag."""

    id: str
    slug: str
    name: str
    nodes: tuple[Node, ...]
    output: str
    daily_cap: int | None
    limits: Limits
    enabled: bool
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime


def check(team: Team, known_agents: Mapping[str, bool]) -> list[Fault]:
    """Every fault of a team's graph at once, in the order of its nodes; an empty list means it can be invoked.

    ``known_agents`` maps each agent's id and slug to whether it is enabled. A node inside a cycle, or one that needs
    an unknown node, is reported as that and not again as unreachable; what waits for it is.
    """
    needs = _needs(team)
    faults = [*_faults_of_ids(team), *_faults_of_references(team, needs, known_agents)]
    cycles = list(_cycles(needs))
    faults += [Fault("nodes", f"a cycle: {' → '.join(cycle)}") for cycle in cycles]
    stuck = {node for cycle in cycles for node in cycle} | {
        node_id for node_id, after in needs.items() if any(name not in needs for name in after)
    }
    faults += _faults_of_reach(team, needs, stuck)
    faults += _faults_of_templates(team, needs)
    return faults


def render(node_query: str, query: str, outputs: Mapping[str, str]) -> str:
    """A node's query with ``{{query}}`` and ``{{nodes.ID.output}}`` put in, in one pass.

    What was put in is never looked at again, so an output that holds a placeholder stays as it is (TGT-3, SCH-6).
    """
    if "{{" not in node_query:
        return node_query

    def value(match: re.Match[str]) -> str:
        name = match.group(1).strip()
        if name == "query":
            return query
        reference = _OUTPUT_OF.fullmatch(name)
        return outputs.get(reference.group(1), match.group(0)) if reference else match.group(0)

    return _PLACEHOLDER.sub(value, node_query)


def _needs(team: Team) -> dict[str, tuple[str, ...]]:
    """What each node needs; of two nodes with one id the first counts."""
    needs: dict[str, tuple[str, ...]] = {}
    for node in team.nodes:
        needs.setdefault(node.id, node.after)
    return needs


def _faults_of_ids(team: Team) -> Iterator[Fault]:
    if not NODES[0] <= len(team.nodes) <= NODES[1]:
        yield Fault("nodes", f"a team has {NODES[0]} to {NODES[1]} nodes, not {len(team.nodes)}")
    seen: set[str] = set()
    for index, node in enumerate(team.nodes):
        if not _NODE_ID.fullmatch(node.id):
            message = f'"{node.id}" is no node id: 1 to 64 of letters, digits, "-" and "_"'
            yield Fault(f"nodes.{index}.id", message)
        elif node.id in seen:
            yield Fault(f"nodes.{index}.id", f'there is already a node "{node.id}"')
        seen.add(node.id)


def _faults_of_references(
    team: Team, needs: Mapping[str, object], known_agents: Mapping[str, bool]
) -> Iterator[Fault]:
    for index, node in enumerate(team.nodes):
        if node.agent not in known_agents:
            yield Fault(f"nodes.{index}.agent", f'there is no agent "{node.agent}"')
        elif not known_agents[node.agent]:
            yield Fault(f"nodes.{index}.agent", f'the agent "{node.agent}" is disabled')
        for name in dict.fromkeys(node.after):
            if name not in needs:
                yield Fault(f"nodes.{index}.after", f'node "{node.id}" waits for "{name}", which is no node')
    if not team.output:
        yield Fault("output", "no way out: the team names no output node")
    elif team.output not in needs:
        yield Fault("output", f'no way out: the output "{team.output}" is no node')


def _cycles(needs: Mapping[str, tuple[str, ...]]) -> Iterator[list[str]]:
    """Cycles that share no node, each as its walk with the first node again at the end."""
    rest = {node: [name for name in after if name in needs] for node, after in needs.items()}
    while True:
        try:
            TopologicalSorter(rest).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1]
            yield cycle
            rest = {
                node: [name for name in after if name not in cycle]
                for node, after in rest.items()
                if node not in cycle
            }
        else:
            return


def _reach(start: Collection[str], edges: Mapping[str, Collection[str]]) -> set[str]:
    """All nodes that a walk along ``edges`` comes to from ``start``, the start included."""
    found = set(start)
    frontier = list(start)
    while frontier:
        for name in edges.get(frontier.pop(), ()):
            if name not in found:
                found.add(name)
                frontier.append(name)
    return found


def _faults_of_reach(team: Team, needs: Mapping[str, tuple[str, ...]], stuck: set[str]) -> Iterator[Fault]:
    """Nodes that can never start, and nodes whose work never comes to the output."""
    dependants: dict[str, list[str]] = {}
    for node_id, after in needs.items():
        for name in after:
            dependants.setdefault(name, []).append(node_id)
    never = _reach(stuck, dependants) - stuck
    useful = _reach({team.output}, needs) if team.output in needs else set(needs)
    for index, node in enumerate(team.nodes):
        if node.id in never:
            blocked = min(_reach(node.after, needs) & stuck)
            message = f'node "{node.id}" is unreachable: it waits for "{blocked}", which can never be done'
            yield Fault(f"nodes.{index}.after", message)
        if node.id not in useful:
            message = f'node "{node.id}" leads nowhere: the output "{team.output}" never uses it'
            yield Fault(f"nodes.{index}", message)


def _faults_of_templates(team: Team, needs: Mapping[str, tuple[str, ...]]) -> Iterator[Fault]:
    for index, node in enumerate(team.nodes):
        if "{{" not in node.query:
            continue
        upstream = _reach(node.after, needs) - {node.id}
        for text in dict.fromkeys(_PLACEHOLDER.findall(node.query)):
            name = text.strip()
            reference = _OUTPUT_OF.fullmatch(name)
            if name == "query" or (reference and reference.group(1) in upstream & needs.keys()):
                continue
            if reference and reference.group(1) in needs:
                message = f'node "{node.id}" uses the output of "{reference.group(1)}", which is not upstream'
            elif reference:
                message = f'node "{node.id}" uses the output of "{reference.group(1)}", which is no node'
            else:
                known = "{{query}} and {{nodes.ID.output}}"
                message = f'unknown placeholder {{{{{name}}}}} in node "{node.id}"; known are {known}'
            yield Fault(f"nodes.{index}.query", message)
