"""An agent's side of the Model Context Protocol: the official SDK's own client, over real HTTP, or without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")  # 2026-07-28, and 2025-11-25 with its handshake


@asynccontextmanager
async def agent(
    address: str,
    key: str,
    mode: Mode = "auto",
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[Client]:
    """A client of the server at ``address`` with this key."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, transport=transport, timeout=30) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def said(result: CallToolResult) -> str:
    """What a model reads of an answer."""
    return "\n".join(getattr(part, "text", "") for part in result.content)


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that was done."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, said(result)
    found: dict[str, Any] = result.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """The code and the words of a call that was not done."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, said(result)
    assert result.meta is not None
    code: str = result.meta["problem"]["code"]
    return code, said(result)
