"""A hint that something in the database may have changed: it only shortens a wait, and is never the truth (OPS-1)."""

from typing import Protocol


class Wakeup(Protocol):
    """One signal that every loop and every waiting reader of a process listens to."""

    @property
    def version(self) -> int:
        """Grows with each notification: read it before looking, hand it to ``wait`` after."""

    def notify(self) -> None:
        """Something changed. Call it on the event loop, after the commit."""

    async def wait(self, seen: int, seconds: float) -> int:
        """Return the version as soon as it is not ``seen`` any more, or after ``seconds``."""
