"""For those who write agents and instances: what a callable gets and gives, and a worker's side of a server.

    from gnomon.client import Client

    with Client() as client, client.claim("pm", "pm-1") as held:
        if held is not None:
            held.report("done", note=work(held.task))

Light to import: the records are plain dataclasses, and what needs a socket is imported at its first use, so an agent's
module costs nothing by naming them. ``AsyncClient`` is the same for an event loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gnomon.client.errors import (
    ClientError,
    Conflict,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    NotReported,
    RateLimited,
    Refused,
    Replaced,
    ServerFault,
    Unauthenticated,
    Unreachable,
)
from gnomon.domain.invocation import Invocation, Message, Result, Usage

if TYPE_CHECKING:
    from gnomon.client.client import AsyncClient, Client
    from gnomon.client.held import AsyncHeld, Held
    from gnomon.client.instance import AsyncInstance, Instance
    from gnomon.client.pushed import PushedRun, PushedTrigger, Stopped

_LATER = {
    "AsyncClient": "client",
    "AsyncHeld": "held",
    "AsyncInstance": "instance",
    "Client": "client",
    "Held": "held",
    "Instance": "instance",
    "PushedRun": "pushed",
    "PushedTrigger": "pushed",
    "Stopped": "pushed",
}

__all__ = [
    "AsyncClient",
    "AsyncHeld",
    "AsyncInstance",
    "Client",
    "ClientError",
    "Conflict",
    "Forbidden",
    "Held",
    "Instance",
    "Invalid",
    "Invocation",
    "LeaseLost",
    "Message",
    "NotFound",
    "NotReported",
    "PushedRun",
    "PushedTrigger",
    "RateLimited",
    "Refused",
    "Replaced",
    "Result",
    "ServerFault",
    "Stopped",
    "Unauthenticated",
    "Unreachable",
    "Usage",
]


def __getattr__(name: str) -> Any:
    """What needs more than a record, at its first use."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
