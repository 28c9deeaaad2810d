"""The process's own wakeup: ``ports.wakeup`` for the tasks of one event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class Signal:
    """Counts notifications; waiters of any number see each change once, and none is lost between look and wait.

    ``announce`` tells other processes, where there is a way to; it must return at once.
    """

    def __init__(self, announce: Callable[[], None] = lambda: None) -> None:
        self.version = 0
        self._announce = announce
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Wake whoever waits, here and in other processes."""
        self.wake()
        self._announce()

    def wake(self) -> None:
        """Wake whoever waits in this process."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, seconds: float) -> int:
        """Return at once if something changed since ``seen``, else at the next notification or after ``seconds``."""
        if self.version == seen and seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return self.version
