"""All tools, in the order in which an agent meets them."""

from collections.abc import Mapping

from gnomon.edges.mcp import runs, schedules
from gnomon.edges.mcp.tool import Tool

TOOLS: Mapping[str, Tool] = {tool.name: tool for noun in (schedules, runs) for tool in noun.TOOLS}
