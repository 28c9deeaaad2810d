"""The graph check of a team and its templates (TGT-3)."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from gnomon.domain.errors import Fault
from gnomon.domain.invocation import Limits
from gnomon.domain.team import Node, Team, check, render

AGENTS = {"writer": True, "critic": True, "asleep": False}
THEN = datetime(2026, 11, 29, tzinfo=UTC)


def team(*nodes: Node, output: str = "z") -> Team:
    return Team("tea_1", "t", "T", nodes, output, None, Limits(), True, 1, THEN, "prn_1", THEN)


def node(node_id: str, *after: str, query: str = "{{query}}", agent: str = "writer") -> Node:
    return Node(node_id, agent, query, after)


def faults(*nodes: Node, output: str = "z", agents: Mapping[str, bool] = AGENTS) -> list[tuple[str, str]]:
    return [(fault.field, fault.message) for fault in check(team(*nodes, output=output), agents)]


def test_a_sound_graph_has_no_fault_tgt_3() -> None:
    found = faults(
        node("a"),
        node("b", "a", query="{{ nodes.a.output }}"),
        node("c", "a", agent="critic"),
        node("z", "b", "c", query="{{nodes.a.output}} {{nodes.b.output}} {{nodes.c.output}} {{query}}"),
    )
    assert found == []


def test_a_node_may_be_sent_text_that_uses_nothing_tgt_3() -> None:
    assert faults(node("z", query="Say good morning.")) == []
    assert faults(node("z", query="a lone { brace }} is no placeholder")) == []


def test_one_node_alone_is_a_team() -> None:
    assert faults(node("z")) == []


def test_a_cycle_is_named_as_its_path_tgt_3() -> None:
    found = faults(node("a", "c"), node("b", "a"), node("c", "b"), node("z", "c"))
    assert found[0] == ("nodes", "a cycle: a → b → c → a")
    assert found[1] == (
        "nodes.3.after",
        'node "z" is unreachable: it waits for "a", which can never be done',
    )
    assert len(found) == 2


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    assert faults(node("z", "z")) == [("nodes", "a cycle: z → z")]


def test_every_cycle_is_named() -> None:
    found = faults(node("a", "b"), node("b", "a"), node("c", "d"), node("d", "c"), node("z"), output="z")
    cycles = [message for field, message in found if field == "nodes"]
    assert cycles == ["a cycle: a → b → a", "a cycle: c → d → c"]


def test_unknown_and_disabled_agents_tgt_3() -> None:
    found = faults(node("a", agent="nobody"), node("z", "a", agent="asleep"))
    assert found == [
        ("nodes.0.agent", 'there is no agent "nobody"'),
        ("nodes.1.agent", 'the agent "asleep" is disabled'),
    ]


def test_an_unknown_need_and_what_waits_behind_it_tgt_3() -> None:
    found = faults(node("a", "ghost"), node("z", "a"))
    assert found == [
        ("nodes.0.after", 'node "a" waits for "ghost", which is no node'),
        ("nodes.1.after", 'node "z" is unreachable: it waits for "a", which can never be done'),
    ]


@pytest.mark.parametrize("bad", ["", "a.b", "a b", "ä", "x" * 65, "a\n"])
def test_a_node_id_has_a_form(bad: str) -> None:
    assert [field for field, _ in faults(node(bad), node("z", bad))] == ["nodes.0.id"]


def test_a_duplicate_id() -> None:
    assert faults(node("z"), node("z")) == [("nodes.1.id", 'there is already a node "z"')]


def test_no_way_out_tgt_3() -> None:
    assert faults(node("a"), output="") == [("output", "no way out: the team names no output node")]
    assert faults(node("a"), output="q") == [("output", 'no way out: the output "q" is no node')]


def test_a_node_whose_work_nobody_uses() -> None:
    found = faults(node("a"), node("b", "a"), node("z"))
    assert [field for field, _ in found] == ["nodes.0", "nodes.1"]
    assert found[1][1] == 'node "b" leads nowhere: the output "z" never uses it'


def test_templates_name_upstream_nodes_alone_tgt_3() -> None:
    found = faults(
        node("a", query="{{nodes.z.output}}"),
        node("b", query="{{nodes.a.output}}"),
        node("z", "a", "b", query="{{nodes.z.output}} {{nodes.q.output}} {{nodes.a}} {{date}} {{}}"),
    )
    assert [field for field, _ in found] == ["nodes.0.query", "nodes.1.query", *["nodes.2.query"] * 5]
    messages = [message for _, message in found]
    assert messages[0] == 'node "a" uses the output of "z", which is not upstream'
    assert messages[1] == 'node "b" uses the output of "a", which is not upstream'
    assert messages[2] == 'node "z" uses the output of "z", which is not upstream'
    assert messages[3] == 'node "z" uses the output of "q", which is no node'
    assert messages[4].startswith("unknown placeholder {{nodes.a}}")
    assert messages[5].startswith("unknown placeholder {{date}}")


def test_all_faults_come_at_once_tgt_3() -> None:
    found = faults(
        node("a", "b", agent="nobody"),
        node("b", "a", query="{{nope}}"),
        node("b"),
        node("c", "ghost"),
        output="nowhere",
    )
    assert [field for field, _ in found] == [
        "nodes.2.id",
        "nodes.0.agent",
        "nodes.3.after",
        "output",
        "nodes",
        "nodes.1.query",
    ]


def test_a_team_needs_a_node_and_not_too_many() -> None:
    assert faults(output="")[0] == ("nodes", "a team has 1 to 200 nodes, not 0")
    many = [node(f"n{i}") for i in range(200)]
    found = check(team(*many, node("z", *(n.id for n in many))), AGENTS)
    assert found == [Fault("nodes", "a team has 1 to 200 nodes, not 201")]


def test_render_fills_in_and_never_looks_again_tgt_3() -> None:
    outputs = {"a": "{{query}} {{nodes.b.output}}", "b": "B"}
    template = "{{query}} / {{ nodes.a.output }} / {{nodes.b.output}}"
    assert render(template, "{{nodes.b.output}}", outputs) == (
        "{{nodes.b.output}} / {{query}} {{nodes.b.output}} / B"
    )


def test_render_leaves_text_without_placeholders_alone() -> None:
    assert render("plain } { text \\1", "q", {}) == "plain } { text \\1"
    assert render("{{unknown}} {{nodes.q.output}}", "q", {}) == "{{unknown}} {{nodes.q.output}}"
    assert render("{{query}}", r"\g<0> \1", {}) == r"\g<0> \1"
