"""``/mcp``: who may come in, before anything is read; and the SDK behind it, which is imported when somebody does.

What it turns away is told by the application around it, in its one form of error.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gnomon.domain.api_key import seal_of
from gnomon.edges.bearer import bearer, refuse_key_in_query
from gnomon.edges.json_input import parse, read
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Seat
from gnomon.edges.origin import check_origin

PATH = "/mcp"


class Door:
    """The ASGI application at ``/mcp``. Each of its tools declares a scope, and judges its caller by it (SEC-1)."""

    def __init__(self, services: Services, *, version: str) -> None:
        self.services = services
        # There is nothing to GET or to DELETE: the server keeps no session.
        self.route = Route(PATH, self, methods=["POST"], name="mcp")
        self._version = version
        self._closing = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one message in: its sender, then its body, then the protocol.

        Raises:
            GnomonError: it is not let in; the application around it tells why.
        """
        scope["route"] = self.route  # as the other routes do it: the figures go by it
        request = Request(scope, receive)
        check_origin(request.headers.get("origin"), request.headers.get("host"))
        refuse_key_in_query(request.query_params)
        text = bearer(request.headers.getlist("authorization"))
        caller = await self.services.api_keys.authenticate(text)
        request.state.caller = caller
        if caller.target is not None:
            raise caller.bound()
        request.state.seat = Seat(caller, seal_of(text), is_gone=request.is_disconnected)
        body = await read(request)
        parse(body)
        protocol = await self._open()
        await protocol(scope, _again(body, receive), send)

    async def close(self) -> None:
        """End what the SDK has open. Requests have ended before."""
        self._closing.set()
        if self._keeper is not None:
            await self._keeper

    async def _open(self) -> ASGIApp:
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._opened), name="mcp")
        return await asyncio.shield(self._opened)

    async def _keep(self, opened: "asyncio.Future[ASGIApp]") -> None:
        """Hold the SDK's task group, which must be left by the task that has entered it."""
        try:
            serving = await asyncio.to_thread(_imported)
            async with serving(self.services, self._version) as protocol:
                opened.set_result(protocol)
                await self._closing.wait()
        except Exception as error:
            self._opened = None  # whoever comes next tries again
            if opened.done():
                raise
            opened.set_exception(error)


def _imported() -> Callable[..., AbstractAsyncContextManager[ASGIApp]]:
    from gnomon.edges.mcp.server import serving_http  # noqa: PLC0415 - a server to whom no agent speaks never pays

    return serving_http


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more for the SDK, then whatever else comes: that the client is gone."""
    told = False

    async def once_more() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more
