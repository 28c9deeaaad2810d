"""A hint that something in the database may have changed: it only shortens a wait, and is never the truth (OPS-1)."""

from collections.abc import Awaitable, Callable
from enum import Flag, auto
from typing import Protocol


class News(Flag):
    """What may have changed: so that only those look who have something to do with it."""

    RUN = auto()  # a run may be claimed, or is to be stopped
    SLOT = auto()  # a slot comes due sooner than everybody looks anyway
    OTHER = auto()
    ANYTHING = RUN | SLOT | OTHER

    @property
    def text(self) -> str:
        """As processes tell it each other."""
        return _TEXTS[self]

    @classmethod
    def read(cls, text: str) -> "News":
        """What another process told; one of another version may tell what is not known here."""
        return _READ.get(text, cls.ANYTHING)


_TEXTS = {
    news: ",".join(str(kind.name).lower() for kind in news)
    for news in map(News, range(1, News.ANYTHING.value + 1))
}
_READ = {text: news for news, text in _TEXTS.items()}


class Ear(Protocol):
    """What a loop or a waiting reader listens to."""

    @property
    def version(self) -> int:
        """Grows with each wakeup: read it before looking, hand it to ``wait`` after."""

    def wake(self) -> None:
        """Something changed that concerns this process alone."""

    async def wait(self, seen: int, seconds: float) -> int:
        """Return the version as soon as it is not ``seen`` any more, or after ``seconds``."""


class Wakeup(Ear, Protocol):
    """The one signal of a process."""

    def notify(self, news: News = News.ANYTHING) -> None:
        """Something changed in the database. Call it on the event loop, after the commit."""

    def wake(self, news: News = News.ANYTHING) -> None:
        """Something changed that concerns this process alone, or that another process has told."""


class Line(Protocol):
    """One connection over which processes of one database tell each other that something changed.

    Any of its calls may raise ``Unavailable``; the line is of no use after that, and is closed.
    """

    async def ring(self, text: str) -> None:
        """Tell the others ``text``, a few letters; they are not heard here by their own ring."""

    async def carries(self) -> bool:
        """Whether a ring that was tried when it was opened has come back, for which it waits a moment."""

    async def check(self) -> None:
        """Return if the line still answers."""

    async def close(self) -> None:
        """Close it; never raises."""


OpenLine = Callable[[Callable[[str], None], Callable[[], None]], Awaitable[Line]]
"""Opens a line with what to call, on the event loop, when another process rings and when the line is lost.

Raises ``Unavailable``.
"""
