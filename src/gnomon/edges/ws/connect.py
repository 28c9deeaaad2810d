"""The route of instances, ``/v1/connect``: a handshake, then a conversation (CONTRACT, "WebSocket")."""

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from gnomon.edges.ws.conversation import Conversation
from gnomon.edges.ws.handshake import Problem, greet
from gnomon.edges.ws.socket import Socket
from gnomon.ports.clock import Clock, Entropy
from gnomon.services.api_keys import ApiKeys
from gnomon.services.connections import Connections
from gnomon.services.instances import Instances

PATH = "/v1/connect"


def route(
    *,
    api_keys: ApiKeys,
    connections: Connections,
    instances: Instances,
    clock: Clock,
    entropy: Entropy,
    heartbeat_seconds: float,
    heartbeat_timeout_seconds: float,
    problem: Problem,
) -> WebSocketRoute:
    """The route; the heartbeat's seconds are what instances are told, ``problem`` how a refusal looks over HTTP."""

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

    return WebSocketRoute(PATH, connect)
