"""One connection from its hello to its end: frames are read one by one, each handed to whoever takes its type (JOB-5).

A frame that says something wrong answers an ``error`` and changes nothing; the connection goes on, unless nothing else
comes over it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import structlog
from starlette.websockets import WebSocket

from gnomon.domain.caller import Caller
from gnomon.domain.errors import GnomonError, Invalid
from gnomon.edges import json_input
from gnomon.edges.ws import frames
from gnomon.edges.ws.socket import Socket
from gnomon.ports.push import Partings, Speaker
from gnomon.services.connections import Connections
from gnomon.services.instances import Instances

HELLO_SECONDS = 10.0
_HELLO_FIRST = 'The first frame is hello: {"type": "hello", "role": …, "instance": …}.'
MOST_ERRORS = 50  # one after the other
_GOODBYE = frozenset({1000, 1001})
_NO_CODE = 1005
_log = structlog.get_logger()
# ASCII, as answers over HTTP: what was wrong with a frame may be named by half of a surrogate pair, which has no UTF-8.
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Conversation:
    """What is said over one accepted socket."""

    def __init__(
        self,
        websocket: WebSocket,
        socket: Socket,
        caller: Caller,
        *,
        connections: Connections,
        instances: Instances,
        heartbeat_seconds: float,
        heartbeat_timeout_seconds: float,
    ) -> None:
        self._websocket = websocket
        self._socket = socket
        self._caller = caller
        self._connections = connections
        self._instances = instances
        self._heartbeats = {
            "heartbeat_seconds": heartbeat_seconds,
            "heartbeat_timeout_seconds": heartbeat_timeout_seconds,
        }
        self._goodbye = False
        self._errors = 0
        self._speaker: Speaker | None = None

    async def run(self) -> None:
        """Talk until either side ends it, then let go of what was held."""
        messages = self._messages()
        try:
            if await self._hello(messages):
                async for text in messages:
                    await self._hear(text)
        finally:
            await self._over()

    async def _messages(self) -> AsyncIterator[str]:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                code = message.get("code", _NO_CODE)
                # a connection that broke has no code either, but no word of the peer's at all
                self._goodbye = code in _GOODBYE or (code == _NO_CODE and "reason" in message)
                return
            text = message.get("text")
            if text is not None:
                yield text
            else:
                self._refuse(Invalid("Frames are text, not bytes.", code="not_text"), None)

    async def _hello(self, messages: AsyncIterator[str]) -> bool:
        """Wait for the hello, within its bound; whether it came."""
        try:
            async with asyncio.timeout(HELLO_SECONDS) as bound:
                async for text in messages:
                    frame = self._read(text)
                    if frame is None:
                        continue
                    if frame["type"] != "hello":
                        self._refuse(Invalid(_HELLO_FIRST, code="hello_first"), frame)
                        continue
                    bound.reschedule(None)  # how long the database takes is not the instance's fault
                    return await self._welcome(frame)
        except TimeoutError:
            self._socket.part(Partings.NO_HELLO)
        return False

    async def _welcome(self, hello: dict[str, Any]) -> bool:
        try:
            speaker, foreign = await self._instances.connect(self._caller, hello)
        except GnomonError as error:
            self._refuse(error, hello)
            self._socket.part(Partings.NO_HELLO)
            return False
        self._speaker = speaker
        self._socket.put(
            _encode(
                {
                    "type": "welcome",
                    "instance_id": speaker.instance_id,
                    "epoch": speaker.epoch,
                    **self._heartbeats,
                }
            )
        )
        for key in foreign:
            self._socket.put(_encode({"type": "revoke", "run_id": key.wire_id, "fence": key.fence}))
        if not self._connections.take(speaker, self._socket, self._caller.key_id):
            self._socket.part(Partings.REPLACED)
            return False
        self._instances.arrived()
        await self._connections.tell_hello(speaker, hello)
        return True

    async def _hear(self, text: str) -> None:
        assert self._speaker is not None
        self._connections.note(self._speaker)
        frame = self._read(text)
        if frame is None or frame["type"] == "heartbeat":
            return
        if frame["type"] == "hello":
            self._refuse(Invalid("This connection has said hello already.", code="hello_twice"), frame)
            return
        try:
            await self._connections.hear(self._speaker, frame)
        except GnomonError as error:
            self._refuse(error, frame)
        except Exception:
            _log.exception("frame_failed", instance_id=self._speaker.instance_id, frame=frame["type"])
            self._refuse(Invalid("Something went wrong here; the log has it.", code="internal"), frame)
        else:
            self._errors = 0

    def _read(self, text: str) -> dict[str, Any] | None:
        value: Any = None
        try:
            value = json_input.parse(text.encode("utf-8", "surrogatepass"), "frame")
            return frames.read(value)
        except Invalid as error:
            told = (
                error if value is not None or error.faults else Invalid(error.message, code="malformed_frame")
            )
            self._refuse(told, value if isinstance(value, dict) else None)
            return None

    def _refuse(self, error: GnomonError, frame: dict[str, Any] | None) -> None:
        """Say what was wrong with a frame; whoever says nothing else is told so and cut off."""
        given = frame or {}
        named: dict[str, Any] = {
            name: given[name] for name in ("run_id", "fence", "trigger_id") if name in given
        }
        faults = error.faults if isinstance(error, Invalid) else ()
        said: dict[str, Any] = {
            "type": "error",
            "code": error.code,
            "detail": error.message,
            "about": given.get("type"),
            **named,
            "errors": [{"field": fault.field, "message": fault.message} for fault in faults],
        }
        self._socket.put(_encode(said))
        self._errors += 1
        if self._errors >= MOST_ERRORS:
            self._socket.part(Partings.OUT_OF_ORDER)

    async def _over(self) -> None:
        """Let go of the socket and of what the instance held by it, whoever ended it."""
        speaker = self._speaker
        if speaker is not None:
            self._connections.drop(speaker)
            await self._gone(speaker)
        await self._socket.end()

    async def _gone(self, speaker: Speaker) -> None:
        try:
            await self._instances.gone(speaker, goodbye=self._goodbye)
        except GnomonError as error:  # the sweep finds what was held
            _log.warning("gone_not_written", instance_id=speaker.instance_id, error=error.message)
        await self._connections.tell_gone(speaker.instance_id, speaker.epoch)
