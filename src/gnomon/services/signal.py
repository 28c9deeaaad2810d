"""The process's own wakeup: ``ports.wakeup`` for the tasks of one event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gnomon.ports.wakeup import News


class Ear:
    """Counts wakeups; waiters of any number see each change once, and none is lost between look and wait."""

    def __init__(self) -> None:
        self.version = 0
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Wake whoever waits here."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, seconds: float) -> int:
        """Return at once if something changed since ``seen``, else at the next wakeup or after ``seconds``."""
        if self.version == seen and seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return self.version


class Signal(Ear):
    """All news of a process: whoever waits for it itself is woken by any, an ear of it by those that it is for.

    ``announce`` tells other processes, where there is a way to; it must return at once.
    """

    def __init__(self, announce: Callable[[News], None] = lambda _: None) -> None:
        super().__init__()
        self._announce = announce
        self._ears: list[tuple[News, Ear]] = []

    def ear(self, kind: News) -> Ear:
        """What is woken by news of this kind alone."""
        ear = Ear()
        self._ears.append((kind, ear))
        return ear

    def notify(self, news: News = News.ANYTHING) -> None:
        """Wake whoever waits for it, here and in other processes."""
        self.wake(news)
        self._announce(news)

    def wake(self, news: News = News.ANYTHING) -> None:
        """Wake whoever waits for it in this process."""
        super().wake()
        for kind, ear in self._ears:
            if kind & news:
                ear.wake()
