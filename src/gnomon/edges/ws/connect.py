"""The route of instances, ``/v1/connect``: a handshake, then a conversation (CONTRACT, "WebSocket")."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from gnomon.domain.errors import Invalid
from gnomon.edges.ws.conversation import Conversation
from gnomon.edges.ws.handshake import Problem, greet
from gnomon.edges.ws.socket import Socket
from gnomon.ports.clock import Clock, Entropy
from gnomon.services.api_keys import ApiKeys
from gnomon.services.connections import Connections
from gnomon.services.instances import Instances

PATH = "/v1/connect"


def routes(
    *,
    api_keys: ApiKeys,
    connections: Connections,
    instances: Instances,
    clock: Clock,
    entropy: Entropy,
    heartbeat_seconds: float,
    heartbeat_timeout_seconds: float,
    problem: Problem,
) -> tuple[BaseRoute, ...]:
    """The route, and what a plain request to it gets.

    The heartbeat's seconds are what instances are told, ``problem`` how a refusal looks over HTTP.
    """

    async def connect(websocket: WebSocket) -> None:
        websocket.state.request_id = f"req_{entropy.bits(80):020x}"
        caller = await greet(websocket, api_keys, problem)
        if caller is None:
            return
        await Conversation(
            websocket,
            Socket(websocket, clock),
            caller,
            connections=connections,
            instances=instances,
            heartbeat_seconds=heartbeat_seconds,
            heartbeat_timeout_seconds=heartbeat_timeout_seconds,
        ).run()

    return WebSocketRoute(PATH, connect), Route(PATH, _plain, methods=None)


async def _plain(_: Request) -> Response:
    """Not an upgrade: a person with a browser, a script with the wrong client, a proxy that drops the header."""
    raise Invalid(
        f"{PATH} is a WebSocket: connect with ws:// or wss:// and a WebSocket client, or let gnomon work do it; behind a "
        f"proxy, have it pass on Upgrade and Connection. {PATH}/schema has the frames.",
        code="upgrade_required",
    )
