"""The loop on virtual time itself: what a simulation leaves behind reaches into no other."""

import asyncio
import inspect
import random
from collections.abc import Coroutine
from typing import Any

from support.simulation_loop import VirtualLoop

MANY = 800  # so that the loop forgets the tasks that are done while it closes these


def test_what_the_end_begins_is_closed_with_it() -> None:
    """A ``finally`` that runs when the loop is closed begins a task: it must not outlive the simulation."""
    begun: list[Coroutine[Any, Any, None]] = []
    left: list[asyncio.Task[None]] = []

    async def last_word() -> None:
        await asyncio.sleep(0)

    async def interrupted() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            begun.append(last_word())
            left.append(asyncio.get_running_loop().create_task(begun[-1]))

    async def live() -> None:
        loop = asyncio.get_running_loop()
        left.extend(loop.create_task(interrupted()) for _ in range(MANY))
        await asyncio.sleep(1)

    VirtualLoop(random.Random(0)).run(live())  # type: ignore[abstract]  # sockets and signals: there are none
    assert len(begun) == MANY
    assert {inspect.getcoroutinestate(each) for each in begun} == {inspect.CORO_CLOSED}
