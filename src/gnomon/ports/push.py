"""Frames to instances over the connections that this process holds (JOB-2, JOB-5).

The protocol of the socket is an edge's affair; who holds which connection, ``services.connections`` knows.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from gnomon.domain.invocation import Usage
from gnomon.domain.push import PushEnd, PushKey


class Speaker(NamedTuple):
    """Who speaks over a connection: one instance, under the epoch of that connection."""

    instance_id: str
    role: str
    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Parting:
    """Why the centre ends a connection: the close code, and a sentence for who reads logs."""

    code: int
    reason: str


class Partings(Enum):
    """Every reason for which the centre ends a connection; codes from 4000 on are ours (RFC 6455, 7.4.2)."""

    RESTART = Parting(1012, "this server is going down: connect again")
    NO_HELLO = Parting(1008, "no hello in time")
    OUT_OF_ORDER = Parting(1008, "too many frames that say nothing")
    KEY_ENDED = Parting(1008, "the key was revoked or has expired")
    REPLACED = Parting(4409, "a newer connection of this instance took its place")
    SILENT = Parting(4408, "no heartbeat in time: connect again")
    UNACKNOWLEDGED = Parting(4424, "what was pushed was not acknowledged in time: connect again")
    TOO_SLOW = Parting(4429, "frames are not read as fast as they come: connect again")


class Link(Protocol):
    """One open socket, as the registry sees it. Both calls return at once."""

    def put(self, text: str) -> bool:
        """Queue a frame; ``False`` where it is closing, or so much is queued already that it is closed for that."""
        ...

    def part(self, parting: Partings) -> None:
        """End the connection: what is queued goes out if the peer takes it soon."""
        ...

    def is_stuck(self) -> bool:
        """Whether the peer has taken nothing of what is queued for too long."""
        ...


class Hands(Protocol):
    """How a runtime has an attempt done by an instance, whichever server holds its connection."""

    async def do(
        self,
        key: PushKey,
        role: str,
        frame: Mapping[str, Any],
        patience_seconds: float,
        on_usage: Callable[[Usage], None],
    ) -> PushEnd:
        """Push an attempt to one instance of a role and wait for its end.

        Nobody has acknowledged it after ``patience_seconds``: it has failed as ``no_instance``. Cancelling the task
        withdraws it, and whoever works on it is told.
        """
        ...


class Push(Protocol):
    """How a service sends to an instance."""

    def __len__(self) -> int:
        """How many connections are held."""
        ...

    def holds(self, instance_id: str, epoch: int) -> bool:
        """Whether this process holds that very connection, and it is not closing."""
        ...

    async def send(self, instance_id: str, epoch: int, frame: Mapping[str, Any]) -> bool:
        """Queue a frame for an instance; ``False`` where its connection is not held, is closing, or is too slow.

        ``True`` is no receipt: the connection may end before the frame is out, which ``on_gone`` tells.
        """
        ...

    def part(self, instance_id: str, epoch: int, parting: Partings) -> None:
        """End that very connection, if it is held."""
        ...


Handler = Callable[[Speaker, dict[str, Any]], Awaitable[None]]
"""Takes a frame of the type that it is registered for, its shape checked; a domain error answers an ``error`` frame."""

OnGone = Callable[[str, int], Awaitable[None]]
"""Is told (instance id, epoch) when a connection that this process held is over, after the store knows."""

OnHello = Callable[[Speaker, dict[str, Any]], Awaitable[None]]
"""Is told of each new connection with its ``hello``, whose ``in_flight`` says what the instance still works on."""
