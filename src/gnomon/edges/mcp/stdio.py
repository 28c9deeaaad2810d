"""The protocol over standard input and output, for a client that starts this program itself.

Standard output carries the protocol and nothing else: the SDK takes the descriptor for itself, and whatever else is
printed goes to standard error.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import mcp_types as types
import structlog
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from gnomon.edges.mcp import answers
from gnomon.edges.mcp.server import INSTRUCTIONS, Context, build_server, said
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Seat

R = TypeVar("R", bound=types.Result)
Connect = Callable[[], AbstractAsyncContextManager[Client]]
_log = structlog.get_logger()


async def serve(services: Services, version: str, seat: Seat) -> None:
    """Answer one client, who sits on ``seat``, until it hangs up."""
    await _answer(build_server(services, version, lambda _context: seat))


async def relay(connect: Connect, place: str, version: str) -> None:
    """Hand everything on to the server at ``place``, whose key decides: one connection for each message.

    A server that is gone for a while is told to the model, and found again by its next call.
    """

    async def list_tools(
        _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        answer = await _asked(connect, types.ListToolsRequest(params=params), types.ListToolsResult)
        if answer is None:
            raise MCPError(code=types.INTERNAL_ERROR, message=f"Gnomon at {place} can't be reached.")
        return answer

    async def call_tool(_context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await _asked(connect, types.CallToolRequest(params=params), types.CallToolResult)
        return answer or said(answers.unreachable(place), {"code": "unreachable"})

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


async def _asked(connect: Connect, request: types.ClientRequest, kind: type[R]) -> R | None:
    """The server's answer, or ``None`` where it can't be reached.

    Raises:
        MCPError: what the server itself refused.
    """
    refused = None
    try:
        async with connect() as client:
            try:
                return await client.session.send_request(request, kind)
            except MCPError as error:  # leaving the client would wrap it
                refused = error
    except Exception as error:
        _log.warning("server_unreachable", error=str(error))
    if refused is not None:
        raise refused
    return None


async def _answer(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
