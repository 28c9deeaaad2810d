"""The protocol, as the official SDK speaks it, both revisions that are in the field. Importing this costs a third of a second.

A caller sees the tools that their scopes cover, and each call is judged again (SEC-1). What went wrong is an answer that
the model reads, not an error of the protocol; that is for a tool that does not exist.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp

from gnomon.domain.errors import GnomonError
from gnomon.edges.json_input import BODY_BYTES
from gnomon.edges.mcp import answers
from gnomon.edges.mcp.catalogue import TOOLS
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Seat, Tool

INSTRUCTIONS = (
    "Gnomon hands out tasks, each to one agent at a time, and fires schedules. To work: call whoami once, then next_task; "
    "keep its task_id and fence and give them with every further call for that task; call renew_claim before expires_at "
    "for as long as you work; end with report_task. Whenever an answer says that a claim is not yours any more, stop "
    "working on that task. Each answer ends with what to do next."
)
_log = structlog.get_logger()
Context = ServerRequestContext[Any, Any]


def build_server(services: Services, version: str, seat_of: Callable[[Context], Seat]) -> Server[Any]:
    """The server over these services; ``seat_of`` says who sends a message."""

    async def list_tools(context: Context, _params: object) -> types.ListToolsResult:
        caller = seat_of(context).caller
        return types.ListToolsResult(
            tools=[_described(tool) for tool in TOOLS.values() if tool.may_be_called_by(caller)],
            cache_scope="private",
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message="There is no tool of this name; tools/list shows those there are.",
            )
        return await answer(services, tool, seat_of(context), params.arguments or {}, _request_id(context))

    return Server(
        "gnomon",
        title="Gnomon",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
    )


@asynccontextmanager
async def serving_http(services: Services, version: str) -> AsyncIterator[ASGIApp]:
    """The ASGI application that answers single requests, while it is entered; the door has put the seat into each."""
    manager = StreamableHTTPSessionManager(
        build_server(services, version, lambda context: _request(context).state.seat),
        json_response=True,
        stateless=True,
        max_request_body_size=BODY_BYTES,
    )
    async with manager.run():
        yield manager.handle_request


async def answer(
    services: Services, tool: Tool, seat: Seat, arguments: Mapping[str, Any], request_id: str | None
) -> types.CallToolResult:
    """The answer of a call, whatever becomes of it: nothing is raised for what is in the arguments."""
    try:
        given = await tool.call(services, seat, arguments)
    except GnomonError as error:
        return said(answers.in_words(error), {"code": error.code, **error.data})
    except Exception:
        _log.exception("tool_failed", tool=tool.name, request_id=request_id)
        return said(answers.unexpected(request_id), {"code": "internal"})
    told = given.told()
    text = json.dumps(told, ensure_ascii=False)  # for clients that show a model the text alone
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=told)


def said(text: str, data: dict[str, Any]) -> types.CallToolResult:
    """A call that was not done. Programs find its code in ``_meta``: structured content is for what the schema tells."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=True, _meta={"problem": data}
    )


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.repeats,
            open_world_hint=False,
        ),
    )


def _request(context: Context) -> Any:
    """The HTTP request that a message came in."""
    return context.request


def _request_id(context: Context) -> str | None:
    request = context.request
    return None if request is None else getattr(request.state, "request_id", None)
