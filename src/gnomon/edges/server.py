"""Our own HTTP server: uvicorn, with what surrounds it put in order.

The work behind it starts only after the sockets listen (DSP-1). A stop runs in this order (DSP-10): accept nobody new,
let the work behind it drain while WebSockets and open requests live on, close what is left, let go of the rest. A second
signal ends the process at once. What that work is, this module doesn't know.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import FrameType
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gnomon.domain.errors import Conflict
from gnomon.edges.sockets import SocketProtocol

_log = structlog.get_logger()
Step = Callable[[], Awaitable[None]]

# After the drain only event streams and slow readers are left: they get this long to go by themselves.
LINGER_SECONDS = 2
BACKLOG = 2_048
MESSAGE_BYTES = 1_048_576  # of a WebSocket's message; a larger one ends its connection with 1009


class PortInUse(Conflict):
    """Somebody else listens there, or the address is not this machine's."""

    code = "port_in_use"


def listen(host: str, port: int) -> list[socket.socket]:
    """Bind each address that ``host`` stands for; port 0 takes a free one, the same for all.

    The protocol is named (IPPROTO_TCP): for a socket without one asyncio leaves Nagle's algorithm on, and each
    request of a kept-alive connection waits 40 ms for the peer's delayed acknowledgement.

    Raises:
        PortInUse: with the address and the way out.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in found:
            with suppress(_NoSuchAddress):
                sockets.append(_bound(family, (address[0], port, *address[2:])))
                port = port or sockets[0].getsockname()[1]
        if not sockets:
            raise PortInUse(
                f"{host} is no address of this machine. Choose another with --host or GNOMON_HOST."
            )
    except OSError as error:
        for each in sockets:
            each.close()
        raise _in_words(error, host, port) from error
    return sockets


class Server(uvicorn.Server):
    """One app on sockets that are bound already.

    ``started`` is awaited once they listen, ``drain`` when a stop was asked for (it bounds itself), ``stopped`` when the
    last connection is gone. ``ping_seconds`` is how often a WebSocket's peer is asked for a sign of life, and how long it
    has for that.
    """

    def __init__(
        self, app: ASGIApp, *, started: Step, drain: Step, stopped: Step, ping_seconds: float = 20.0
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                loop="uvloop",
                ws=SocketProtocol,
                ws_per_message_deflate=False,
                ws_max_size=MESSAGE_BYTES,
                ws_ping_interval=ping_seconds,
                ws_ping_timeout=ping_seconds,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=LINGER_SECONDS,
                backlog=BACKLOG,
            )
        )
        self._started = started
        self._drain = drain
        self._stopped = stopped

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then start the work (DSP-1)."""
        await super().startup(sockets)
        try:
            await self._started()
        except BaseException:
            for server in self.servers:
                server.close()
            await self.lifespan.shutdown()
            await self._stopped()
            raise

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nobody new, drain, close what is left (DSP-10)."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            # A WebSocket stays until the drain is over: the answer of an instance at work comes through it.
            if isinstance(connection, HttpToolsProtocol):
                connection.shutdown()
        try:
            await self._drain()
        except Exception:
            _log.exception("drain_failed")
        try:
            await super().shutdown(sockets)
        finally:
            await self._stopped()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks for an orderly stop; the second is the machine's own, and ends the process."""
        del frame
        if self.should_exit:
            end_at_once(sig)
        self.should_exit = True


def end_at_once(sig: int) -> None:
    """Die of this signal, as if nobody had ever handled it: leases and journals carry what was in flight."""
    signal.signal(sig, signal.SIG_DFL)
    signal.raise_signal(sig)


async def to_its_end(main: Coroutine[Any, Any, None]) -> None:
    """Await the whole of a program, its stop included, then cancel what it left behind.

    The event loop would wait for ever for a target that ignores its cancellation. Everything that counts is written by
    then, so the process ends all the same, and such a target with it (DSP-10).
    """
    await main
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return
    _, stubborn = await asyncio.wait(left, timeout=LINGER_SECONDS)
    if stubborn:
        _log.error("ended_over_tasks", tasks=sorted(task.get_name() for task in stubborn))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


@asynccontextmanager
async def stop_signal() -> AsyncIterator[asyncio.Event]:
    """An event that the first SIGTERM or SIGINT sets, for a process without HTTP; a second one ends it at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handle(sig: int) -> None:
        if stop.is_set():
            end_at_once(sig)
        stop.set()

    signals = (signal.SIGTERM, signal.SIGINT)
    for each in signals:
        loop.add_signal_handler(each, handle, each)
    try:
        yield stop
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


class _NoSuchAddress(Exception):  # noqa: N818 - it is passed over, not told
    """A family or an address that the name stands for but the machine has not."""


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _NoSuchAddress from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        # Only a listening socket keeps another program off the port; whoever comes before the app is up waits in line.
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _NoSuchAddress from error
        raise
    sock.setblocking(False)
    return sock


def _in_words(error: OSError, host: str, port: int) -> PortInUse:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"Port {port} on {host} is in use. Choose another with --port or GNOMON_PORT.")
    if isinstance(error, socket.gaierror):
        return PortInUse(f"{host} is no address of this machine. Choose another with --host or GNOMON_HOST.")
    if error.errno == errno.EACCES:
        return PortInUse(f"This user may not listen on port {port}. Choose one above 1023 with --port.")
    return PortInUse(f"Can't listen on {host}, port {port}: {error.strerror}.")
