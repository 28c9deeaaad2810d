"""A worker as an instance of a role: connected, pushed to, drained (JOB-4, JOB-5). Two faces over one ``line``.

Handlers of the async face run on the caller's event loop, those of the sync face on threads; neither can keep the
connection from being served. A handler that raises is a failure with its words; one that is stopped is cancelled.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

from gnomon.client import frames
from gnomon.client.errors import Unreachable
from gnomon.client.frames import Outcome, Trigger
from gnomon.client.line import Line
from gnomon.client.place import Place
from gnomon.client.pushed import Pushed, PushedRun, PushedTrigger
from gnomon.client.session import End, Session, Stop, Work

GRACE_SECONDS = 10.0
_JOIN_SECONDS = 15.0
_CANCEL_SECONDS = 30.0  # for handlers that were cancelled: ending a process can take its grace

OnTrigger = Callable[[PushedTrigger], Any]
OnRun = Callable[[PushedRun], Any]
AsyncOnTrigger = Callable[[PushedTrigger], Awaitable[Any]]
AsyncOnRun = Callable[[PushedRun], Awaitable[Any]]


class _Instance:
    """What both faces have."""

    def __init__(
        self,
        place: Place,
        role: str,
        instance: str,
        *,
        on_trigger: Callable[[PushedTrigger], Any] | None,
        on_run: Callable[[PushedRun], Any] | None,
        max_in_flight: int,
        grace_seconds: float,
        patience_seconds: float,
    ) -> None:
        self._place = place
        self._patience = patience_seconds
        self._on_trigger = on_trigger
        self._on_run = on_run
        self.grace_seconds = grace_seconds
        self._session = Session(role, instance, max_in_flight, f"gnomon {version('gnomon')}")
        self._line = Line(place, self._session, self._begin, self._halt)
        self._pushed: dict[Work, Pushed] = {}

    def drain(self) -> None:
        """Take nothing new; what is worked on goes on."""
        self._line.drain()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is worked on and nothing is left to say."""
        return self._line.is_done

    def _begin(self, work: Work) -> None:
        raise NotImplementedError

    def _halt(self, end: End) -> None:
        raise NotImplementedError

    def _given(self, work: Work) -> Pushed:
        """What the handler of a piece of work is given, noted before anything can be heard of it."""
        is_trigger = isinstance(work.subject, Trigger)
        pushed = PushedTrigger(work) if is_trigger else PushedRun(work, self._line.progress)
        self._pushed[work] = pushed
        return pushed

    def _call(self, pushed: Pushed) -> Any:
        """What the handler answers; where there is none, that."""
        handler = self._on_trigger if isinstance(pushed, PushedTrigger) else self._on_run
        if handler is None:
            kind = "triggers of jobs" if isinstance(pushed, PushedTrigger) else "runs"
            return Outcome("failed", f"This instance takes no {kind}.")
        return handler(pushed)  # type: ignore[arg-type]

    def _ended(self, work: Work, pushed: Pushed, outcome: Outcome) -> None:
        del self._pushed[work]
        if pushed.stopped is Stop.CANCELLED and outcome.status == "failed":
            outcome = Outcome("cancelled", outcome.text)
        self._line.ended(work, outcome)

    def _unreachable(self) -> Unreachable:
        return Unreachable(f"{self._place.url} can't be reached: {self._line.trouble.rstrip('.')}.")


class Instance(_Instance):
    """The sync face: a context that is connected while it is open. Each push is worked on by a thread of its own."""

    def __enter__(self) -> Self:
        self._line.start()
        try:
            self._line.welcome.result(self._patience)
        except TimeoutError:
            self._line.close()
            raise self._unreachable() from None
        return self

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the connection is over, which only a refusal makes it: raised here. Whether it is."""
        try:
            self._line.over.result(seconds)
        except TimeoutError:
            return False
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._line.drain()
        if error is None:
            self._idle(self.grace_seconds)
        for pushed in list(self._pushed.values()):
            pushed.stop(Stop.CLOSED)
        if self._pushed:
            self._idle(min(self.grace_seconds, 1.0))
        self._line.close()
        self._line.join(_JOIN_SECONDS)

    def _idle(self, seconds: float) -> None:
        with self._line.idle:
            self._line.idle.wait_for(lambda: self._line.is_done or self._line.over.done(), seconds)

    def _begin(self, work: Work) -> None:
        pushed = self._given(work)
        threading.Thread(target=self._work, args=(work, pushed), name=f"work-{work.key}", daemon=True).start()

    def _work(self, work: Work, pushed: Pushed) -> None:
        try:
            outcome = frames.outcome(self._call(pushed))
        except BaseException as error:
            outcome = frames.failure(error)
        self._ended(work, pushed, outcome)

    def _halt(self, end: End) -> None:
        pushed = self._pushed.get(end.work)
        if pushed is not None:
            pushed.stop(end.why)


class AsyncInstance(_Instance):
    """The async face: a context that is connected while it is open. Each push is a task of the caller's loop."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tasks: dict[Work, asyncio.Task[Outcome]] = {}

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._line.start()
        try:
            await asyncio.wait_for(_shared(self._line.welcome), self._patience)
        except TimeoutError:
            self._line.close()
            raise self._unreachable() from None
        except BaseException:
            self._line.close()
            raise
        return self

    async def wait(self) -> None:
        """Wait until the connection is over, which only a refusal makes it: raised here."""
        await _shared(self._line.over)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._line.drain()
        try:
            if error is None and self._tasks:
                await asyncio.wait(list(self._tasks.values()), timeout=self.grace_seconds)
        finally:
            for work in list(self._tasks):
                self._stop(End(work, Stop.CLOSED))
            if self._tasks:
                await asyncio.wait(list(self._tasks.values()), timeout=_CANCEL_SECONDS)
            await asyncio.to_thread(self._said)
            self._line.close()
            await asyncio.to_thread(self._line.join, _JOIN_SECONDS)

    def _said(self) -> None:
        """Give the last results a moment to get out."""
        with self._line.idle:
            self._line.idle.wait_for(lambda: self._line.is_done or self._line.over.done(), 1.0)

    def _begin(self, work: Work) -> None:
        pushed = self._given(work)
        with suppress(RuntimeError):  # the caller's loop is closed
            self._loop.call_soon_threadsafe(self._spawn, work, pushed)

    def _spawn(self, work: Work, pushed: Pushed) -> None:
        task = self._loop.create_task(self._work(pushed))
        self._tasks[work] = task
        task.add_done_callback(lambda _: self._finished(work, pushed, task))

    async def _work(self, pushed: Pushed) -> Outcome:
        answer = self._call(pushed)
        return frames.outcome(answer if isinstance(answer, Outcome) else await answer)

    def _finished(self, work: Work, pushed: Pushed, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[work]
        if task.cancelled():
            outcome = Outcome("failed", "The work was stopped.")
        elif (error := task.exception()) is not None:
            outcome = frames.failure(error)
        else:
            outcome = task.result()
        self._ended(work, pushed, outcome)

    def _halt(self, end: End) -> None:
        with suppress(RuntimeError):  # likewise
            self._loop.call_soon_threadsafe(self._stop, end)

    def _stop(self, end: End) -> None:
        pushed, task = self._pushed.get(end.work), self._tasks.get(end.work)
        if pushed is not None:
            pushed.stop(end.why)
        if task is not None:
            task.cancel(end.why.value)


async def _shared(future: Future[Any]) -> Any:
    """A future of the line's thread, awaited without being cancelled with the one who waits."""
    waited = asyncio.wrap_future(future)
    # who gave up waiting is told why by another error; the late one of the line is no news to anybody
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({waited})
    return waited.result()
