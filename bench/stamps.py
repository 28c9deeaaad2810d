"""A target that notes when it was called: one line for each call, appended to the file that the query names."""

import os
import time

from gnomon.client import Invocation


async def stamp(invocation: Invocation) -> str:
    """Append the slot and the present instant, in microseconds."""
    now = time.time_ns() // 1000
    assert invocation.nominal_fire_at is not None
    slot = int(invocation.nominal_fire_at.timestamp()) * 1_000_000
    line = f"{slot} {now} {invocation.idempotency_key}\n".encode()
    file = os.open(invocation.query, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
    return ""
