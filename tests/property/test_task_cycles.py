"""The check for cycles against networkx, which finds the same truths another way (BRD-8)."""

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.task import cycle_from

NAMES = "abcdefgh"
needs = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3, unique=True), max_size=8
)


@settings(max_examples=500)
@given(needs, st.sampled_from(NAMES))
def test_a_cycle_is_there_where_networkx_sees_one(graph: dict[str, list[str]], start: str) -> None:
    """BRD-8: found where one can be reached, and what is named is one."""
    oracle: nx.DiGraph[str] = nx.DiGraph([(a, b) for a, found in graph.items() for b in found])
    oracle.add_node(start)
    reach = oracle.subgraph({start} | nx.descendants(oracle, start))
    cycle = cycle_from(start, graph)
    assert (cycle is None) == nx.is_directed_acyclic_graph(reach)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(other in graph[one] for one, other in pairwise(cycle))
        assert set(cycle) <= set(reach)
        assert cycle[0] == start or start not in cycle
