"""Any sound graph is walked in an order that its needs allow, each node once, from any checkpoint (TGT-3)."""

import asyncio
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.invocation import Limits, Result, Usage
from gnomon.domain.team import Node, Team, check
from gnomon.services.team_walk import walk

THEN = datetime(2026, 11, 29, tzinfo=UTC)


@st.composite
def sound_teams(draw: st.DrawFn) -> Team:
    count = draw(st.integers(1, 8))
    nodes = []
    for i in range(count):
        after = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        nodes.append(Node(f"n{i}", "x", "{{query}}", tuple(f"n{k}" for k in sorted(after))))
    needed = {name for node in nodes for name in node.after}
    loose = tuple(node.id for node in nodes if node.id not in needed)
    order = draw(st.permutations([*nodes, Node("z", "x", "{{query}}", loose)]))
    return Team("tea_1", "t", "T", tuple(order), "z", None, Limits(), True, 1, THEN, "p", THEN)


@settings(max_examples=100, deadline=None)
@given(sound_teams(), st.data())
def test_each_node_runs_once_after_what_it_needs_tgt_3(team: Team, data: st.DataObject) -> None:
    assert check(team, {"x": True}) == []
    ids = [node.id for node in team.nodes]
    done = {name: Result("old") for name in data.draw(st.sets(st.sampled_from(ids)))}
    pauses = data.draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids)))
    started: list[str] = []
    finished = set(done)

    async def run_node(node: Node, query: str) -> Result:
        assert set(node.after) <= finished
        started.append(node.id)
        for _ in range(pauses[ids.index(node.id)]):
            await asyncio.sleep(0)
        return Result("new", Usage(1))

    async def on_done(node: Node, result: Result) -> None:
        await asyncio.sleep(0)
        finished.add(node.id)

    found = asyncio.run(walk(team, "q", done, run_node, on_done))
    expected = set() if "z" in done else set(ids) - set(done)
    assert sorted(started) == sorted(expected)
    assert found.usage == (Usage(len(expected)) if expected else None)
    assert found.output == ("old" if "z" in done else "new")
