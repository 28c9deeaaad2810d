"""Whatever stands in the arguments of a tool, the answer is a tool's own, or says what is wrong (OPS-8, UI-5)."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.caller import system
from gnomon.edges.mcp.catalogue import TOOLS
from gnomon.edges.mcp.server import answer
from gnomon.edges.mcp.tool import Seat, Tool
from gnomon.testing.clock import FrozenClock
from support.agents import said
from support.api import api_over
from support.databases import START, open_database

PLAUSIBLE = st.sampled_from(
    [
        "writer",
        "human",
        "done",
        "active",
        "2026-12-01T09:00:00Z",
        "tsk_x",
        "sch_x",
        "run_x",
        "9 run_x",
        "a",
        "~",
    ]
)
HOSTILE = st.sampled_from(
    [
        float("nan"),
        float("inf"),
        -0.0,
        2**63,
        -(2**64),
        10**400,
        "\ud800",
        "a\0b",
        "",
        "x" * 300_000,
        True,
        [],
        {},
    ]
)
LEAVES = st.one_of(PLAUSIBLE, HOSTILE, st.none(), st.integers(), st.floats(), st.text(), st.booleans())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Tool, dict[str, Any]]:
    tool = draw(st.sampled_from(list(TOOLS.values())))
    # nobody moves the clock on while it waits
    names = sorted(set(tool.input_schema.get("properties", {})) - {"wait_seconds"})
    known = st.sampled_from(names) if names else st.nothing()
    return tool, draw(st.dictionaries(known | st.text(max_size=5), VALUES, max_size=8))


def test_no_argument_is_unexpected(tmp_path: Path) -> None:
    """OPS-8: bad input is told as bad input."""
    seat = Seat(system("test"), b"seal", "writer", "ada")
    with asyncio.Runner() as runner:
        clock = FrozenClock(START)
        api = api_over(runner.run(open_database(tmp_path, clock)), clock)

        @given(calls())
        @settings(max_examples=400)
        def no_call_breaks(call: tuple[Tool, dict[str, Any]]) -> None:
            tool, arguments = call
            found = runner.run(answer(api.door.services, tool, seat, arguments, None))
            code = None if found.meta is None else found.meta["problem"]["code"]
            assert code != "internal", said(found)
            assert len(said(found)) < 50_000
            said(found).encode()  # what can't be sent would break the connection

        try:
            no_call_breaks()
        finally:
            runner.run(api.database.close())
