"""Agents that are importable callables, ``module:callable`` (TGT-1).

An async callable runs on the event loop and is stopped by cancelling it. A sync one runs in a thread, which nothing
can stop: its attempt ends on time, the thread goes on until the callable returns, and what it returns then is
dropped. Work that must be stoppable belongs into an async callable, a generator or a command.
"""

import asyncio
import contextvars
import functools
import importlib
import inspect
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from gnomon.domain.agent import PythonRuntime, RuntimeSpec
from gnomon.domain.invocation import Deferred, Failing, Invocation, Result, TargetFailure, Usage
from gnomon.ports.runtime import Reporter
from gnomon.runtimes.answers import OUTPUT_BYTES, excerpt, nonsense, read_mapping, storable

THREADS = 32
_FRAMES = 4
_MESSAGE = 500

Target = Callable[[Invocation], Any]
T = TypeVar("T")


class Threads:
    """At most ``limit`` daemon threads at once. One whose caller has gone keeps its place until it really ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places = asyncio.Semaphore(limit)
        self.abandoned = 0

    async def run(self, work: Callable[[], T]) -> T:
        """``work()`` in a thread, in this task's context variables."""
        if self.abandoned >= self._limit:
            message = f"all {self._limit} threads are held by callables that outlived their runs"
            raise TargetFailure(Failing.NOT_STARTED, message, retryable=True)
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._places.release()
            if future.cancelled():
                self.abandoned -= 1
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # set where there is no error

        def body() -> None:
            outcome = _outcome(functools.partial(context.run, work))
            with suppress(RuntimeError):  # the loop has gone, and whoever waited with it
                loop.call_soon_threadsafe(settle, *outcome)

        try:
            threading.Thread(target=body, name="python-target", daemon=True).start()
        except RuntimeError as error:
            self._places.release()
            raise TargetFailure(Failing.NOT_STARTED, f"no thread: {error}", retryable=True) from error
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                self.abandoned += 1
            raise


def _outcome(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What ``work`` gives or raises, in a form that may be handed to the event loop.

    Raised there, a callable's own StopIteration, KeyboardInterrupt or CancelledError would mean another thing.
    """
    try:
        return work(), None
    except StopIteration as error:
        return None, RuntimeError(repr(error))
    except (Exception, SystemExit) as error:
        return None, error
    except BaseException as error:
        return None, RuntimeError(repr(error))


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported callable, whether it may be called on the loop, and whether what it gives is sure to be awaited."""

    target: Target
    is_async: bool
    is_coroutine: bool


class PythonTargets:
    """``ports.runtime.Runtime`` for ``PythonRuntime``.

    ``threads`` bounds the sync callables that run at once. ``search`` is a directory put in front of the import path
    at the first use (the one the server was started in), or ``None``.
    """

    def __init__(self, *, threads: int = THREADS, search: str | None = None) -> None:
        self._threads = Threads(threads)
        self._imports = Threads(4)
        self._search = search
        self._known: dict[str, Imported] = {}
        self._importing: dict[str, asyncio.Task[Imported]] = {}

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Call the callable with the invocation and read what it gives back. See ``ports.runtime.Runtime``.

        It may return text, ``None`` (no output), a mapping ``{"output", "usage"?}`` or a ``Result``, also as an
        awaitable; or be a generator, sync or async, of pieces of text and of ``Usage`` (the total so far).
        """
        assert isinstance(spec, PythonRuntime)
        del secret
        found = self._known.get(spec.path)
        if found is None:
            found = self._known[spec.path] = await self._imported(spec.path)
        pieces = _Pieces(invocation, reporter)
        try:
            answer = await self._call(found, invocation, pieces)
        except (TargetFailure, KeyboardInterrupt, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                pieces.stopped = True
                raise
            raise _raised(error, pieces.usage) from error
        except BaseException as error:
            raise _raised(error, pieces.usage) from error
        return _read(answer, spec.path)

    async def close(self) -> None:
        """Forget the callables; threads that still work are daemons."""
        self._known.clear()

    async def _imported(self, path: str) -> Imported:
        """Import once for all who ask at the same time; whoever is cancelled while waiting disturbs no other."""
        importing = self._importing.get(path)
        if importing is None:
            work = self._imports.run(functools.partial(self._import, path))
            importing = self._importing[path] = asyncio.ensure_future(work)
            importing.add_done_callback(lambda _: self._importing.pop(path, None))
        return await asyncio.shield(importing)

    def _import(self, path: str) -> Imported:
        if self._search is not None and self._search not in sys.path:
            sys.path.insert(0, self._search)
        module_name, _, name = path.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
            for part in name.split("."):
                found = getattr(found, part)
        except BaseException as error:
            message = f"{path} can't be imported: {type(error).__name__}: {excerpt(str(error), _MESSAGE)}"
            raise TargetFailure(Failing.NOT_STARTED, message) from error
        if not callable(found):
            raise TargetFailure(Failing.NOT_STARTED, f"{path} is no callable but a {type(found).__name__}")
        return Imported(found, _is_async(found), inspect.iscoroutinefunction(found))

    async def _call(self, found: Imported, invocation: Invocation, pieces: "_Pieces") -> object:
        if found.is_coroutine:
            return await found.target(invocation)
        if found.is_async:
            answer = found.target(invocation)
        else:
            answer = await self._threads.run(lambda: pieces.collect(found.target(invocation)))
        if inspect.isawaitable(answer):
            answer = await answer
        if inspect.isasyncgen(answer):
            return await pieces.collect_async(answer)
        return answer


class _Pieces:
    """What a generator has yielded: its text so far, reported piece by piece, and the usage it told."""

    __slots__ = ("_limit", "_reporter", "_size", "_text", "stopped", "usage")

    def __init__(self, invocation: Invocation, reporter: Reporter) -> None:
        self._limit = invocation.limits.output_bytes
        self._reporter = reporter
        self._text: list[str] = []
        self._size = 0
        self.usage: Usage | None = None
        self.stopped = False

    def collect(self, answer: object) -> object:
        """Drain a sync generator; anything else is passed through."""
        if not inspect.isgenerator(answer):
            return answer
        generator: Generator[Any, Any, Any] = answer
        with closing(generator):
            for piece in generator:
                self._take(piece)
        return self._result()

    async def collect_async(self, answer: AsyncGenerator[Any, Any]) -> Result:
        """Drain an async generator."""
        async with aclosing(answer):
            async for piece in answer:
                self._take(piece)
        return self._result()

    def _take(self, piece: object) -> None:
        if self.stopped:
            raise RuntimeError("the attempt is over")
        if isinstance(piece, Usage):
            self.usage = piece
            self._reporter.usage(piece)
            return
        if not isinstance(piece, str):
            raise nonsense(f"the callable yielded a {type(piece).__name__}, not text or Usage")
        self._text.append(storable(piece))
        self._size += len(piece.encode())
        most = OUTPUT_BYTES if self._limit is None else min(self._limit, OUTPUT_BYTES)
        if self._size > most:
            message = f"the output is longer than {most:,} bytes; the callable was stopped"
            raise TargetFailure(Failing.OUTPUT_TOO_LARGE, message, usage=self.usage)
        self._reporter.progress(piece)

    def _result(self) -> Result:
        return Result("".join(self._text), self.usage)


def _is_async(target: Target) -> bool:
    """Whether calling it only makes a coroutine or an async generator, which costs the loop nothing."""
    plain = target.func if isinstance(target, functools.partial) else target
    call = getattr(plain, "__call__", None)  # noqa: B004 - not a test: an instance's own method is wanted
    return any(
        inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found) for found in (plain, call)
    )


def _read(answer: object, path: str) -> Result:
    if answer is None:
        return Result("")
    if isinstance(answer, str):
        return Result(storable(answer))
    if isinstance(answer, Result):
        answer = {"output": answer.output, "usage": answer.usage}
    if isinstance(answer, dict) and answer.get("output", "") is None:
        answer = {**answer, "output": ""}
    return read_mapping(answer, f"the answer of {path}")


def _raised(error: BaseException, usage: Usage | None) -> TargetFailure:
    """What a callable raised: type, message and the innermost frames, for whoever has to find the line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__][
        -_FRAMES:
    ]
    where = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    message = f"{type(error).__name__}: {excerpt(str(error), _MESSAGE)}"
    return TargetFailure(Failing.EXCEPTION, f"{message} [{where}]", usage=usage)
