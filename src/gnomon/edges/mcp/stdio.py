"""The protocol over standard input and output, for a client that starts this program itself.

Standard output carries the protocol and nothing else: the SDK takes the descriptor for itself, and whatever else is
printed goes to standard error.
"""

from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gnomon.edges.mcp.server import INSTRUCTIONS, Context, build_server
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Seat


async def serve(services: Services, version: str, seat: Seat) -> None:
    """Answer one client, who sits on ``seat``, until it hangs up."""
    await _answer(build_server(services, version, lambda _context: seat))


async def relay(client: Client, version: str) -> None:
    """Hand everything on to the server that ``client`` has reached, whose key decides."""

    async def list_tools(
        _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await client.list_tools(cursor=None if params is None else params.cursor)

    async def call_tool(_context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await client.call_tool(params.name, params.arguments)

    await _answer(
        Server(
            "gnomon",
            title="Gnomon",
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
    )


async def _answer(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
