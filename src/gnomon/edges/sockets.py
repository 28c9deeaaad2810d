"""The server's side of a WebSocket: uvicorn's protocol, where an end is an end also for a peer that does not read.

A transport that is closed waits until what it holds is taken; a peer that stands still never takes it. So who answers no
ping, does not finish the closing handshake, or is cut off by the application (``extensions["gnomon.abort"]``) is aborted.
And ``extensions["gnomon.write"]`` writes a message at once where nothing has to wait.
"""

from functools import lru_cache
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection, from its handshake on."""

    def handle_connect(self, event: Request) -> None:
        """Let the application cut the connection off, and write to it without a task of its own."""
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["gnomon.abort"] = self.transport.abort
            extensions["gnomon.write"] = self.write

    def write(self, text: str) -> bool:
        """Hand a message to the transport, and say whether it was taken.

        It is not where the peer has to read first or the connection is not open: ``send`` waits, or says why not.
        """
        if not self.writable.is_set() or self.conn.state is not State.OPEN or self.transport.is_closing():
            return False
        self.transport.write(_framed(text))
        return True

    def keepalive_timeout(self) -> None:
        """A peer that answers no ping takes no word of goodbye either."""
        super().keepalive_timeout()
        self.transport.abort()

    async def send(self, message: Any) -> None:
        """As the library, but that the wait for the peer's half of a close has a real end."""
        await super().send(message)
        if self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)


@lru_cache(maxsize=1)
def _framed(text: str) -> bytes:
    """A server's frames are not masked, so what goes to many is framed once."""
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)
