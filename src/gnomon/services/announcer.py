"""Telling the other processes of a database that something changed, and hearing them: a wakeup, never the truth (OPS-1).

It stands over the bounded poll of the loops: while the line is down, or behind a pooler that swallows what is rung, work
waits for a tick and nothing else changes. Nothing here is called inside a transaction. It knows lines, not databases.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Line, News, OpenLine

_log = structlog.get_logger()
# Between two rings of one kind, and between two wakeups by one. The longer one is for processes that ring without a
# pause: whoever hears them is awake anyway, and each wakeup costs it a look. A run or a slot costs one loop a look, all
# else every loop.
SHORTEST_SECONDS, LONGEST_SECONDS = 0.001, 0.004
_OTHER_SHORTEST, _OTHER_LONGEST = 0.003, 0.012
# A line that died without a word (a lost peer, a silent firewall) is found out by this.
CHECK_SECONDS = 300.0
CALL_SECONDS = 5.0
FLUSH_SECONDS = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 15.0
_POOLED = (
    "LISTEN was taken, and nothing is heard: a pooler in transaction mode, or a replica? Work that another process makes "
    "waits for a tick."
)


class Spacing:
    """How close two of a kind may follow: at once after quiet, and ever further apart without one."""

    def __init__(self, shortest: float = SHORTEST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._shortest = shortest
        self._longest = longest
        self._gap = shortest
        self._last = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the next one, from ``now`` (monotonic)."""
        return max(0.0, self._last + self._gap - now)

    def passed(self, now: float) -> None:
        """One went through."""
        crowded = now - self._last < 1.25 * self._gap  # this one had been waiting
        self._gap = min(2 * self._gap, self._longest) if crowded else self._shortest
        self._last = now


class Pacing:
    """News that waits until it may go on, each kind spaced by itself."""

    def __init__(self) -> None:
        self._spacings = {kind: Spacing() for kind in News}
        self._spacings[News.OTHER] = Spacing(_OTHER_SHORTEST, _OTHER_LONGEST)
        self.waiting = News(0)

    def wait(self, now: float) -> float:
        """Seconds until the first of what waits may go on, from ``now`` (monotonic)."""
        return min((self._spacings[kind].wait(now) for kind in self.waiting), default=0.0)

    def take(self, now: float, *, everything: bool = False) -> News:
        """What may go on now."""
        taken = News(0)
        for kind in self.waiting:
            if everything or self._spacings[kind].wait(now) <= 0:
                self._spacings[kind].passed(now)
                taken |= kind
        self.waiting &= ~taken
        return taken


class Announcer:
    """One process's end of the line. ``announce`` works before ``start`` too, for a process that only tells."""

    def __init__(self, open_line: OpenLine, clock: Clock, on_heard: Callable[[News], None]) -> None:
        self._open_line = open_line
        self._clock = clock
        self._on_heard = on_heard
        self._lost = False
        self._stop = asyncio.Event()
        self._stir = asyncio.Event()  # an announcement, a lost line, the stop
        self._task: asyncio.Task[None] | None = None
        self._sending, self._hearing = Pacing(), Pacing()
        self._wake_at: asyncio.TimerHandle | None = None
        self._deaf = False
        self.connected = False

    def announce(self, news: News) -> None:
        """Ring soon, on the event loop; any number of calls until then are one ring."""
        self._sending.waiting |= news
        self._stir.set()
        self.start()

    def start(self) -> None:
        """Open the line and listen, from now on."""
        if self._task is None and not self._stop.is_set():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="gnomon-announce")

    async def stop(self) -> None:
        """Ring what is still to be rung, for a moment, and hang up."""
        self._stop.set()
        self._stir.set()
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, FLUSH_SECONDS)
        if self._wake_at is not None:
            self._wake_at.cancel()

    async def _run(self) -> None:
        pause, warned, heard_before = _FIRST_PAUSE, False, False
        while True:
            self._lost = False
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    line = await self._open_line(self._heard, self._hung_up)
            except Exception as error:
                if not warned:
                    _log.warning("wakeup_line_down", error=_words(error))
                warned = True
            else:
                if warned or heard_before:
                    self._on_heard(News.ANYTHING)  # whatever was rung in between was not heard
                if warned:
                    _log.info("wakeup_line_up")
                pause, warned, heard_before, self.connected = _FIRST_PAUSE, False, True, True
                await self._hold(line)
                self.connected = False
            if await _within(self._stop, pause * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads, guards nothing
                return
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _hold(self, line: Line) -> None:
        """Ring and listen until the line is lost or no longer needed."""
        trial = asyncio.create_task(self._try(line), name="gnomon-announce-trial")
        try:
            while not self._lost:
                self._stir.clear()
                if self._sending.waiting:
                    await self._ring(line)
                elif self._stop.is_set():
                    return
                elif not await _within(self._stir, CHECK_SECONDS):
                    async with asyncio.timeout(CALL_SECONDS):
                        await line.check()
        except Exception as error:
            _log.warning("wakeup_line_lost", error=_words(error))
        finally:
            trial.cancel()
            await line.close()

    async def _try(self, line: Line) -> None:
        """Find out whether anything is heard here; what is rung may reach others all the same."""
        if await line.carries():
            self._deaf = False
            return
        self.connected = False
        if not self._deaf:
            _log.warning("wakeup_line_deaf", hint=_POOLED)
        self._deaf = True

    async def _ring(self, line: Line) -> None:
        wait = self._sending.wait(self._clock.monotonic())
        if wait > 0 and not self._stop.is_set():
            await self._clock.wait(wait)
        news = self._sending.take(self._clock.monotonic(), everything=self._stop.is_set())
        if not news:  # the clock that was waited by is not the one that is read
            return
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await line.ring(news.text)
        except BaseException:
            self._sending.waiting |= news
            raise

    def _hung_up(self) -> None:
        self._lost = True
        self._stir.set()

    def _heard(self, text: str) -> None:
        """Another process rang: wake at once after quiet, else when the spacing allows it, and once for all of them."""
        self._hearing.waiting |= News.read(text)
        self._wake()

    def _wake(self) -> None:
        if self._wake_at is not None:
            self._wake_at.cancel()
            self._wake_at = None
        now = self._clock.monotonic()
        news = self._hearing.take(now)
        if self._hearing.waiting:
            wait = self._hearing.wait(now)
            self._wake_at = asyncio.get_running_loop().call_later(wait, self._wake)
        if news:
            self._on_heard(news)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event comes within ``seconds``."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CALL_SECONDS:g} s"
    return error.message if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"
