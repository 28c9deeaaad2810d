"""Targets of the benches: one does nothing, one ends a little later, one notes when it was called."""

import asyncio
import random
import time

from gnomon.client import Invocation

FIRST: list[float] = []
NOTED: list[tuple[str, float, float]] = []


async def noop(invocation: Invocation) -> str:
    """Answer at once."""
    if not FIRST:
        FIRST.append(time.perf_counter())
    return ""


async def brief(invocation: Invocation) -> str:
    """End by itself within 20 ms."""
    if not FIRST:
        FIRST.append(time.perf_counter())
    await asyncio.sleep(random.random() * 0.02)
    return ""


async def note(invocation: Invocation) -> str:
    """Keep the run, the instant it was due and the present one, in seconds."""
    due = 0.0 if invocation.nominal_fire_at is None else invocation.nominal_fire_at.timestamp()
    NOTED.append((invocation.run_id, due, time.time()))  # noqa: TID251 - compared with instants of other processes
    return ""
