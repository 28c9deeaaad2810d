"""The proxy that lies: what a scenario opened through it is closed at its end, so that no test pays for another's."""

import gc
import socket
from contextlib import ExitStack

from support.chaos_proxy import FaultProxy

ROUNDS = 30


def test_connections_that_are_only_just_being_made_are_closed_with_the_rest() -> None:
    """A peer that was told to be quick hangs up while the proxy is still reaching for the server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(ROUNDS):
            with ExitStack() as peers, FaultProxy(*server.getsockname()) as proxy:
                for _ in range(4):
                    peers.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
        del proxy
        gc.collect()  # what is open is told here, and no later test is blamed for it
