"""Before a socket is opened: who asks, by which key, from where. Refusals are ordinary HTTP answers (SEC-3).

A page in a browser can open a socket to any host with the person's own network behind it; so an Origin has to be this
host's. Programs send none.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from gnomon.domain.caller import Caller
from gnomon.domain.errors import GnomonError, Refused
from gnomon.domain.scopes import Scope
from gnomon.edges.bearer import bearer, refuse_key_in_query
from gnomon.services.api_keys import ApiKeys

Problem = Callable[[Request, Exception], Awaitable[Response]]
"""Makes an error the answer that it is over HTTP."""


async def greet(websocket: WebSocket, api_keys: ApiKeys, problem: Problem) -> Caller | None:
    """Accept the socket of a caller who may connect; any other gets a problem document, and ``None`` comes back."""
    try:
        caller = await _caller(websocket, api_keys)
    except GnomonError as error:
        request = Request({**websocket.scope, "type": "http", "method": "GET"})
        await websocket.send_denial_response(await problem(request, error))
        return None
    await websocket.accept()
    return caller


async def _caller(websocket: WebSocket, api_keys: ApiKeys) -> Caller:
    refuse_key_in_query(websocket.query_params)
    _check_origin(websocket)
    caller = await api_keys.authenticate(bearer(websocket.headers.getlist("authorization")))
    if caller.target is not None:
        raise caller.bound()
    caller.require(Scope.INSTANCES_CONNECT)
    return caller


def _check_origin(websocket: WebSocket) -> None:
    origins = websocket.headers.getlist("origin")
    host = websocket.headers.get("host", "")
    if any(_host(origin) != host.lower() for origin in origins):
        raise Refused(
            "A page of another origin can't connect here; instances are programs, and send no Origin.",
            code="bad_origin",
        )


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
