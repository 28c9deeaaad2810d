"""All tools, in the order in which an agent meets them."""

from collections.abc import Mapping

from gnomon.edges.mcp import overview, questions, runs, schedules, tasks, work
from gnomon.edges.mcp.tool import Tool

TOOLS: Mapping[str, Tool] = {
    tool.name: tool for noun in (work, questions, overview, schedules, runs, tasks) for tool in noun.TOOLS
}
