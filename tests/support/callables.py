"""Callables of every shape, for the tests of the python runtime."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from types import SimpleNamespace
from typing import Any

from gnomon.client import Invocation, Result, Usage

where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")
cues: dict[str, Any] = {}

not_callable = 3


def text(invocation: Invocation) -> str:
    return f"{invocation.query} in {where.get()}"


async def text_async(invocation: Invocation) -> str:
    await asyncio.sleep(0)
    return f"{invocation.query} in {where.get()}"


def result(invocation: Invocation) -> Result:
    return Result("done", Usage(1, 2, 3, 0.4))


def mapping(invocation: Invocation) -> dict[str, object]:
    return {"output": "mapped", "usage": {"model_calls": 5}}


def mapping_without_output(invocation: Invocation) -> dict[str, object]:
    return {"output": None, "usage": {"model_calls": 5}}


def nothing(invocation: Invocation) -> None:
    return None


def number(invocation: Invocation) -> int:
    return 42


def bad_usage(invocation: Invocation) -> dict[str, object]:
    return {"output": "x", "usage": {"cost": "much"}}


def surrogate(invocation: Invocation) -> str:
    return "\ud800"


def coroutine_from_sync(invocation: Invocation) -> Awaitable[str]:
    return text_async(invocation)


def pieces(invocation: Invocation) -> Iterator[str | Usage]:
    yield "one "
    yield Usage(1)
    yield "two"
    yield Usage(2)


async def pieces_async(invocation: Invocation) -> AsyncIterator[str | Usage]:
    yield "one "
    yield Usage(1)
    await asyncio.sleep(0)
    yield "two"


async def pieces_then_raise(invocation: Invocation) -> AsyncIterator[str | Usage]:
    yield Usage(3)
    raise ValueError("half way")


async def endless(invocation: Invocation) -> AsyncIterator[str]:
    try:
        while True:
            yield "x" * 100
    finally:
        cues["endless closed"] = True


def odd_pieces(invocation: Invocation) -> Iterator[object]:
    yield b"bytes"


class Agent:
    def method(self, invocation: Invocation) -> str:
        return f"method {invocation.query}"

    async def __call__(self, invocation: Invocation) -> str:
        return f"called {invocation.query}"


agent = Agent()
nested = SimpleNamespace(deep=SimpleNamespace(run=text))
half = functools.partial(lambda prefix, invocation: f"{prefix} {invocation.query}", "half")


def raises(invocation: Invocation) -> str:
    raise LookupError("no such\nthing")


async def raises_async(invocation: Invocation) -> str:
    raise LookupError("no such thing")


def raises_stop(invocation: Invocation) -> str:
    raise StopIteration("odd")


def raises_exit(invocation: Invocation) -> str:
    raise SystemExit(3)


def raises_interrupt(invocation: Invocation) -> str:
    raise KeyboardInterrupt


async def raises_cancelled(invocation: Invocation) -> str:
    raise asyncio.CancelledError("by itself")


def wrong_arguments() -> str:
    return "never"


def thread_name(invocation: Invocation) -> str:
    return threading.current_thread().name


def waits(invocation: Invocation) -> str:
    cues["thread"] = threading.current_thread()
    cues["started"].set()
    cues["go on"].wait(10)
    cues["ended"].set()
    return "late"


def waits_between_pieces(invocation: Invocation) -> Iterator[str]:
    try:
        yield "first"
        cues["started"].set()
        cues["go on"].wait(10)
        yield "second"
    finally:
        cues["ended"].set()


async def waits_async(invocation: Invocation) -> str:
    cues["started"].set()
    try:
        await asyncio.Event().wait()
    finally:
        cues["cancelled"] = True
    return "never"
