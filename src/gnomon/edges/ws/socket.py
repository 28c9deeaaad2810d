"""One open socket: a bounded queue, one task that writes, and an end that never waits for a peer (ws-09).

Whoever sends puts a text and goes on: it is written at once where the peer keeps up, else it is queued. A peer that does
not read fills its own queue and is cut off; it keeps nobody else waiting.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket

from gnomon.ports.clock import Clock
from gnomon.ports.push import Partings

QUEUED_FRAMES = 1_000
QUEUED_CHARACTERS = 4_000_000
WRITE_SECONDS = 5.0
CLOSE_SECONDS = 2.0


class Socket:
    """``ports.push.Link`` over an accepted WebSocket."""

    def __init__(self, websocket: WebSocket, clock: Clock) -> None:
        self._websocket = websocket
        self._clock = clock
        extensions: dict[str, Any] = websocket.scope.get("extensions") or {}
        self._abort: Callable[[], None] | None = extensions.get("gnomon.abort")
        self._write_now: Callable[[str], bool] = extensions.get("gnomon.write", _never)
        self._queue: deque[str] = deque()
        self._characters = 0
        self._fresh = asyncio.Event()
        self._writing_since: float | None = None
        self._parting: Partings | None = None
        self._task = asyncio.create_task(self._write_queued(), name="gnomon-socket")

    @property
    def parting(self) -> Partings | None:
        """Why the centre ends it, where it does."""
        return self._parting

    def put(self, text: str) -> bool:
        """See ``Link.put``."""
        if self._parting is not None or self._task.done():
            return False
        # What is queued or under way goes first.
        if not self._queue and self._writing_since is None and self._write_now(text):
            return True
        full = len(self._queue) >= QUEUED_FRAMES or self._characters + len(text) > QUEUED_CHARACTERS
        if (full and self._queue) or self.is_stuck():
            self.part(Partings.TOO_SLOW)
            return False
        self._queue.append(text)
        self._characters += len(text)
        self._fresh.set()
        return True

    def part(self, parting: Partings) -> None:
        """See ``Link.part``. A peer that does not read is cut off at once: no word would reach it."""
        self._parting = self._parting or parting
        self._fresh.set()
        if parting is Partings.TOO_SLOW or self.is_stuck():
            self._cut()

    def is_stuck(self) -> bool:
        """See ``Link.is_stuck``."""
        since = self._writing_since
        return since is not None and self._clock.monotonic() - since > WRITE_SECONDS

    async def end(self) -> None:
        """The conversation is over: let what is queued out if the peer takes it soon, then let go of the socket."""
        self._parting = self._parting or Partings.RESTART
        self._fresh.set()
        await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not self._task.done():
            self._cut()
            self._task.cancel()

    async def _write_queued(self) -> None:
        with suppress(Exception):  # the peer is gone: whoever reads hears of it
            while True:
                await self._fresh.wait()
                self._fresh.clear()
                while self._queue:
                    text = self._queue.popleft()
                    self._characters -= len(text)
                    self._writing_since = self._clock.monotonic()
                    await self._websocket.send({"type": "websocket.send", "text": text})
                    self._writing_since = None
                if self._parting is not None:
                    self._writing_since = self._clock.monotonic()
                    await self._websocket.close(self._parting.value.code, self._parting.value.reason)
                    return

    def _cut(self) -> None:
        if self._abort is not None:
            self._abort()


def _never(_text: str) -> bool:
    return False
