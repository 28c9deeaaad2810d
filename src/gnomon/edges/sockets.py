"""The server's side of a WebSocket: uvicorn's protocol, where an end is an end also for a peer that does not read.

A transport that is closed waits until what it holds is taken; a peer that stands still never takes it. So who answers no
ping, does not finish the closing handshake, or is cut off by the application (``extensions["gnomon.abort"]``) is aborted.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection, from its handshake on."""

    def handle_connect(self, event: Request) -> None:
        """Let the application cut the connection off."""
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["gnomon.abort"] = self.transport.abort

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
