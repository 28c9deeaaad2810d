"""What an agent is shown: few tools, each described in full, those that its scopes cover and no other (UI-5, SEC-1)."""

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from gnomon.domain.scopes import Scope
from gnomon.domain.task import REPORTABLE
from gnomon.edges.mcp.catalogue import TOOLS
from gnomon.edges.mcp.tool import Side, Tool
from support.agents import MODES, Mode, refused, said
from support.api import Api

each_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in nodes(part)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for part in schema.values() for found in nodes(part))]


def test_no_tool_makes_or_changes_a_schedule() -> None:
    """Casebook slf-02, slf-03: whatever a query says, an agent that is asked to remind can only stop and go on."""
    writing = {tool.name for tool in TOOLS.values() if tool.scope is Scope.SCHEDULES_WRITE}
    assert writing == {"pause_schedule", "resume_schedule"}
    assert Scope.SCHEDULES_WRITE not in {tool.scope for tool in TOOLS.values() if tool.side is Side.WORKER}


def test_there_are_at_most_ten_tools_for_each_side() -> None:
    """UI-5: a model that sees forty chooses badly."""
    assert Counter(tool.side for tool in TOOLS.values()) == {Side.WORKER: 8, Side.OPERATOR: 10}
    assert {
        "whoami",
        "next_task",
        "renew_claim",
        "report_task",
        "log_progress",
        "create_task",
        "ask_human",
    } < set(TOOLS)
    assert {"preview_schedule", "list_schedules", "run_now", "pause_schedule", "explain_slot"} < set(TOOLS)


@each_tool
def test_each_tool_says_what_it_takes_gives_and_does(tool: Tool) -> None:
    """UI-5: every argument is described and bounded, and nothing has to be looked up."""
    assert tool.title
    assert tool.description.startswith(tool.title)
    assert not (tool.reads and tool.destroys)
    assert tool.output_schema["properties"]["next"]["type"] == "string"
    assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
    assert tool.input_schema["additionalProperties"] is False
    for schema in (tool.input_schema, tool.output_schema):
        assert "$ref" not in json.dumps(schema)
    for name, argument in tool.input_schema.get("properties", {}).items():
        assert argument.get("description"), name
        for node in nodes(argument):
            if node.get("type") == "string" and "enum" not in node:
                assert "maxLength" in node or name == "prerequisites", name
            if node.get("type") in {"integer", "number"}:
                assert "maximum" in node, name


def test_a_report_offers_what_the_board_takes() -> None:
    """BRD-3."""
    offered = TOOLS["report_task"].input_schema["properties"]["status"]["enum"]
    assert set(offered) == {status.value for status in REPORTABLE}


@each_tool
def test_reading_needs_a_reading_scope_and_changing_another(tool: Tool) -> None:
    """SEC-1."""
    assert tool.reads == (tool.scope is None or tool.scope.value.endswith(":read"))


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_sees_the_tools_that_its_key_covers(api: Api, comes: Any, mode: Mode) -> None:
    """SEC-1, UI-5."""
    async with comes(await api.key("tasks:*"), mode) as client:
        listed = (await client.list_tools()).tools
        worker = [tool.name for tool in listed]
    async with comes(await api.key("schedules:read"), mode) as client:
        reader = [tool.name for tool in (await client.list_tools()).tools]
    assert worker == [
        name for name, tool in TOOLS.items() if tool.scope is None or tool.scope.value.startswith("tasks:")
    ]
    assert reader == ["whoami", "preview_schedule", "list_schedules", "explain_slot"]
    for shown in listed:
        tool, notes = TOOLS[shown.name], shown.annotations
        assert notes is not None
        assert (shown.title, shown.description) == (tool.title, tool.description)
        assert (notes.read_only_hint, notes.destructive_hint) == (tool.reads, tool.destroys)
        assert (notes.idempotent_hint, notes.open_world_hint) == (tool.reads or tool.repeats, False)
        assert (shown.input_schema, shown.output_schema) == (tool.input_schema, tool.output_schema)


async def test_each_call_is_judged_again_with_every_scope_but_its_own(api: Api, comes: Any) -> None:
    """SEC-1: what an agent does not see it can't call either, whatever else it may do."""
    for tool in TOOLS.values():
        if tool.scope is None:
            continue
        others = [scope.value for scope in Scope if scope is not tool.scope]
        async with comes(await api.key(*others)) as client:
            code, words = await refused(client, tool.name)
        assert code == "scope_missing"
        assert tool.scope.value in words


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(api: Api, comes: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with comes(await api.key()) as client:
        with pytest.raises(MCPError, match="no tool of this name"):
            await client.call_tool("drop_tables", {})


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_is_the_same_for_models_and_for_programs(api: Api, comes: Any, mode: Mode) -> None:
    """UI-5: some clients show a model the text alone."""
    async with comes(await api.key(), mode) as client:
        result = await client.call_tool("whoami", {})
    assert json.loads(said(result)) == result.structured_content
    assert list(result.structured_content)[-1] == "next"


def test_nobody_pays_for_the_sdk_who_does_not_use_it() -> None:
    """The SDK takes a third of a second to import: neither the command line nor a start has it."""
    program = (
        "import sys, gnomon.cli.app, gnomon.wiring.doors; gnomon.cli.app.build();"
        "print([name for name in sys.modules if name.partition('.')[0] in {'mcp', 'mcp_types'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
