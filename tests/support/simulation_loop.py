"""An event loop on virtual time, on which whole processes can be killed or frozen between any two steps (PRF-2).

Each simulated process has lanes (its event loop, its heartbeat's thread). A lane is found through a context variable:
asyncio copies the context of whoever schedules a callback, so that whatever a process starts stays in its lane. Within
one lane callbacks keep their order, as in any event loop; between lanes the seed draws. A killed lane's callbacks
never run again: no ``finally``, no ``CancelledError``. Knows nothing of the product.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from datetime import datetime
from typing import Any, TypeVar

from gnomon.domain.instants import from_micros, to_micros

T = TypeVar("T")
LEAST_WAIT = 1e-9
MOST_STEPS = 3_000_000  # a simulation that spins without time passing ends here


class Lane:
    """One thread of one simulated process: what it has to do next, and whether it may."""

    def __init__(self, name: str, main: "Lane | None" = None) -> None:
        self.name = name
        self.main = self if main is None else main  # where calls "from another thread" land
        self.ready: deque[asyncio.Handle] = deque()
        self.parked = False
        self.dead = False
        self.fuse: tuple[int, Callable[[], None]] | None = None  # steps left until something happens to it
        self.context = copy_context()
        self.context.run(LANE.set, self)


LANE: ContextVar[Lane] = ContextVar("lane")


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs callbacks one at a time; time stands still while any lane has work and then jumps to the next timer."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.Handle, Lane]] = []
        self._count = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 1_000
        self.world = Lane("world")
        self.lanes = [self.world]
        self.buried: list[
            Any
        ] = []  # what the dead would have run: kept, for a collected task runs its ``finally``
        self.errors: list[dict[str, Any]] = []
        self.closing = False
        self.steps = 0

    def lane(self, name: str, main: Lane | None = None) -> Lane:
        """A new lane."""
        lane = Lane(name, main)
        self.lanes.append(lane)
        return lane

    def kill(self, lane: Lane) -> None:
        """Nothing of the lane ever runs again."""
        lane.dead = True
        self.buried.extend(lane.ready)
        lane.ready.clear()
        if lane in self.lanes:
            self.lanes.remove(lane)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the world's coroutine to its end, and everything else as far as it comes by then."""
        asyncio._set_running_loop(self)
        try:
            task: asyncio.Task[T] = self.create_task(coroutine, context=self.world.context)
            while not task.done():
                self._step()
            return task.result()
        finally:
            self._bury()
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        self._wake()
        able = [lane for lane in self.lanes if lane.ready and not lane.parked]
        while not able:
            self._jump()
            able = [lane for lane in self.lanes if lane.ready and not lane.parked]
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise AssertionError("the simulation does not end")
        lane = able[0] if len(able) == 1 else self._rng.choice(able)
        handle = lane.ready.popleft()
        if not handle.cancelled():
            handle._run()
        if lane.fuse is not None:
            steps, burn = lane.fuse
            lane.fuse = (steps - 1, burn) if steps > 1 else None
            if steps <= 1:
                burn()

    def _wake(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            _, _, handle, lane = heapq.heappop(self._timers)
            if lane.dead:
                self.buried.append(handle)
            elif not handle.cancelled():
                lane.ready.append(handle)

    def _jump(self) -> None:
        if not self._timers:
            raise AssertionError("nothing is left to do, and the world is not over")
        self._now = max(self._now, self._timers[0][0])
        self._wake()

    def _bury(self) -> None:
        """Close every coroutine that is left, so that nothing of it runs when it is collected."""
        self.closing = True
        while self._tasks:  # a ``finally`` that runs here may begin more of them
            left, self._tasks = self._tasks, []
            for task in left:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(BaseException):
                        task.get_coro().close()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        lane = context.get(LANE, self.world)
        handle = asyncio.Handle(callback, args, self, context)
        (self.buried if lane.dead else lane.ready).append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        lane = copy_context().get(LANE, self.world) if context is None else context.get(LANE, self.world)
        return self.call_soon(callback, *args, context=lane.main.context.copy())

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if delay > 0.0:  # a wait that is too short for a float would never be over: no clock stands still
            delay = max(delay, LEAST_WAIT)
        return self.call_at(self._now + max(0.0, delay), callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle, context.get(LANE, self.world)))
        return handle

    def time(self) -> float:
        return self._now

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[Any]":
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = 2 * len(self._tasks) + 1_000
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.closing:
            self.errors.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer stays in the heap until its instant."""


class VirtualClock:
    """``ports.clock.Clock`` over the loop's time; ``jump`` sets the wall clock of the whole machine."""

    def __init__(self, loop: VirtualLoop, start: datetime) -> None:
        self._loop = loop
        self._offset = to_micros(start)
        self.latest = self._offset  # the latest wall time that anybody may have read

    def now(self) -> datetime:
        return from_micros(self.micros())

    def micros(self) -> int:
        micros = self._offset + round(self._loop.time() * 1_000_000)
        self.latest = max(self.latest, micros)
        return micros

    def boot(self) -> str | None:
        """One machine, that is never started again."""
        return "simulated"

    def monotonic(self) -> float:
        return self._loop.time()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, seconds: float) -> None:
        self.micros()
        self._offset += round(seconds * 1_000_000)
