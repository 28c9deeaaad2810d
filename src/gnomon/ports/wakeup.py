"""A hint that something in the database may have changed: it only shortens a wait, and is never the truth (OPS-1)."""

from collections.abc import Awaitable, Callable
from typing import Protocol


class Wakeup(Protocol):
    """One signal that every loop and every waiting reader of a process listens to."""

    @property
    def version(self) -> int:
        """Grows with each notification: read it before looking, hand it to ``wait`` after."""

    def notify(self) -> None:
        """Something changed in the database. Call it on the event loop, after the commit."""

    def wake(self) -> None:
        """Something changed that concerns this process alone, or that another process has told."""

    async def wait(self, seen: int, seconds: float) -> int:
        """Return the version as soon as it is not ``seen`` any more, or after ``seconds``."""


class Line(Protocol):
    """One connection over which processes of one database tell each other that something changed.

    Any of its calls may raise ``Unavailable``; the line is of no use after that, and is closed.
    """

    async def ring(self) -> None:
        """Tell the others; they are not heard here by their own ring."""

    async def check(self) -> None:
        """Return if the line still carries."""

    async def close(self) -> None:
        """Close it; never raises."""


OpenLine = Callable[[Callable[[], None], Callable[[], None]], Awaitable[Line]]
"""Opens a line with what to call, on the event loop, when another process rings and when the line is lost.

Raises ``Unavailable``.
"""
