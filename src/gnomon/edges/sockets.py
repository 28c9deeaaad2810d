"""The server's side of a WebSocket: uvicorn's protocol, where an end is an end also for a peer that does not read.

A transport that is closed waits until what it holds is taken; a peer that stands still never takes it. So who answers no
ping, does not finish the closing handshake, or is cut off by the application (``extensions["gnomon.abort"]``) is aborted.
Whoever says what no WebSocket may is told so before its end, and is no error of ours in the log. And ``extensions["gnomon.write"]`` writes a message at once where nothing has to wait.
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

    def send_receive_event_to_app(self) -> None:
        """As the library, but that a text which is no UTF-8 is its sender's fault, and no error of ours."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(self.frames):
            self.frames = []
            self.conn.fail(1007, "a text has to be UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Say why it ends, and wait for the peer to take that: a socket closed with unread bytes takes the word with it."""
        if self.close_sent:  # what still comes is read away
            return
        assert self.conn.close_sent is not None
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    async def send(self, message: Any) -> None:
        """As the library, but that a refusal is an answer, and the wait for the peer's half of a close has a real end."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True
        if self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)


@lru_cache(maxsize=1)
def _framed(text: str) -> bytes:
    """A server's frames are not masked, so what goes to many is framed once."""
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


def _is_text(frames: list[bytes]) -> bool:
    data = frames[0] if len(frames) == 1 else b"".join(frames)
    if data.isascii():  # as nearly all are, which is seen without decoding them twice
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
