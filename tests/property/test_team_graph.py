"""The graph check against networkx, which finds the same truths another way (TGT-3)."""

from datetime import UTC, datetime

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.invocation import Limits
from gnomon.domain.team import Node, Team, check, render

THEN = datetime(2026, 11, 29, tzinfo=UTC)
NAMES = list("abcdefg")


@st.composite
def teams(draw: st.DrawFn) -> Team:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True))
    after = st.lists(st.sampled_from([*names, *names, "ghost"]), max_size=2, unique=True)
    template = st.sampled_from([*[f"{{{{nodes.{n}.output}}}}" for n in names], "{{query}}", "plain"])
    nodes = tuple(Node(n, "x", draw(template), tuple(draw(after))) for n in names)
    return Team(
        "tea_1", "t", "T", nodes, draw(st.sampled_from(names)), None, Limits(), True, 1, THEN, "p", THEN
    )


def graph_of(team: Team) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(node.id for node in team.nodes)
    graph.add_edges_from(
        (need, node.id) for node in team.nodes for need in node.after if need in {n.id for n in team.nodes}
    )
    return graph


@settings(max_examples=300, deadline=None)
@given(teams())
def test_check_says_what_networkx_says_tgt_3(team: Team) -> None:
    graph = graph_of(team)
    faults = check(team, {"x": True})
    said = [(fault.field, fault.message) for fault in faults]
    index = {node.id: i for i, node in enumerate(team.nodes)}

    assert any(m.startswith("a cycle") for _, m in said) == (not nx.is_directed_acyclic_graph(graph))
    for _, message in said:
        if message.startswith("a cycle: "):
            path = message.removeprefix("a cycle: ").split(" → ")
            assert path[0] == path[-1]
            assert nx.is_path(graph, path)

    cyclic = {
        n for c in nx.strongly_connected_components(graph) for n in c if len(c) > 1 or graph.has_edge(n, n)
    }
    ghostly = {node.id for node in team.nodes if "ghost" in node.after}
    dead = cyclic | ghostly
    named_cyclic = {
        n for _, m in said if m.startswith("a cycle: ") for n in m.removeprefix("a cycle: ").split(" → ")
    }
    for node in team.nodes:
        startable = not (nx.ancestors(graph, node.id) | {node.id}) & dead
        unreachable = (f"nodes.{index[node.id]}.after", "unreachable") in [
            (field, "unreachable") for field, message in said if "unreachable" in message
        ]
        accused = unreachable or node.id in named_cyclic or node.id in ghostly
        assert accused == (not startable)
        useful = node.id == team.output or nx.has_path(graph, node.id, team.output)
        assert (f"nodes.{index[node.id]}" in {field for field, _ in said}) == (not useful)
        names_other = node.query.startswith("{{nodes.")
        upstream = names_other and node.query[8] in nx.ancestors(graph, node.id)
        assert (f"nodes.{index[node.id]}.query" in {field for field, _ in said}) == (
            names_other and not upstream
        )


@given(st.text(alphabet="{}query. nodesab", max_size=40), st.text(alphabet="{}query ", max_size=20))
def test_what_was_put_in_is_never_expanded_tgt_3(query: str, output: str) -> None:
    rendered = render("<{{query}}|{{nodes.a.output}}>", query, {"a": output})
    assert rendered == f"<{query}|{output}>"
