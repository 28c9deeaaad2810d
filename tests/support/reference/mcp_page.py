"""``docs/reference/mcp.md``: every tool of the Model Context Protocol with what it takes and gives (UI-5)."""

from collections.abc import Iterator
from typing import Any

from gnomon.edges.mcp.catalogue import TOOLS
from gnomon.edges.mcp.tool import Side, Tool
from support.reference.markdown import table

_SIDES = {
    Side.WORKER: ("For those who work", "Claim a task, keep it, report it."),
    Side.OPERATOR: ("For those who watch over it", "Schedules, runs, and the board."),
}


def mcp_page() -> str:
    """The page."""
    lines = [
        "# Tools for agents",
        "",
        "What `/mcp` and `gnomon mcp` offer over the Model Context Protocol. An agent sees the tools that the scopes of its",
        "key cover, and every call is judged again. How to connect one is in the [guide](../guide/mcp.md).",
        "",
        "Every answer ends with `next`: what to do now. A call that was not done says in words what was wrong and what to do,",
        "and has the code of the [API](api.md#problems) in `_meta.problem.code`.",
    ]
    for side, (title, told) in _SIDES.items():
        lines += ["", f"## {title}", "", told]
        for tool in TOOLS.values():
            if tool.side is side:
                lines += ["", f"### {tool.name}", "", *_described(tool)]
    return "\n".join(lines) + "\n"


def _described(tool: Tool) -> Iterator[str]:
    yield tool.description
    yield ""
    scope = "any key" if tool.scope is None else f"scope `{tool.scope.value}`"
    gives = ", ".join(f"`{name}`" for name in tool.output_schema["properties"] if name != "next")
    yield f"{scope[0].upper()}{scope[1:]}; {_effect(tool)}. Gives {gives}."
    needed = tool.input_schema.get("required", [])
    rows = [
        (f"`{name}`", _type(argument), "yes" if name in needed else "", argument["description"])
        for name, argument in tool.input_schema.get("properties", {}).items()
    ]
    if rows:
        yield ""
        yield from table(("argument", "type", "needed", "meaning"), rows)


def _effect(tool: Tool) -> str:
    if tool.reads:
        return "changes nothing"
    again = "a repeat does no more" if tool.repeats else "a repeat does it again"
    return f"ends something that goes on, and {again}" if tool.destroys else f"changes something, and {again}"


def _type(argument: dict[str, Any]) -> str:
    kinds = [part for part in argument.get("anyOf", [argument]) if part.get("type") != "null"]
    found = [
        ", ".join(f"`{value}`" for value in kind["enum"])
        if "enum" in kind
        else str(kind.get("type", "any JSON"))
        for kind in kinds
    ]
    return " or ".join(found)
