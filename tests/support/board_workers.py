"""Workers of the board as real processes: what they contend for, and what each says that it held, and when."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.domain.caller import system
from gnomon.domain.task import TaskGrant
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from gnomon.stores.database import Database
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.sqlite.database import SqliteDatabase

ANA = system("ana")
WIDE = 10  # tasks on each level


def open_database(url: str) -> Database:
    """A migrated database: a path, or an address of PostgreSQL."""
    if url.startswith("postgresql"):
        return PostgresDatabase(url, SystemClock())
    return SqliteDatabase(Path(url), SystemClock())


def board(database: Database) -> Tasks:
    """The board over a database, with the defaults of the settings."""
    clock = SystemClock()
    return Tasks(
        database,
        clock,
        Mint(clock, SystemEntropy()),
        Signal(),
        lock_seconds=120,
        heartbeat_timeout_seconds=120,
    )


async def fill(url: str, count: int, *, deep: int = 3) -> None:
    """``count`` tasks for a pm, each of which needs two of the level above it."""
    database = open_database(url)
    tasks = board(database)
    above: list[str] = []
    level: list[str] = []
    for number in range(count):
        if len(level) == WIDE:
            above, level = ([], []) if number // WIDE % deep == 0 else (level, [])
        needs = [above[number % len(above)], above[(number + 1) % len(above)]] if above else []
        made = await tasks.create(ANA, {"role": "pm", "title": f"task {number}", "prerequisites": needs})
        assert isinstance(made, MadeTask)
        level.append(made.task.id)
    await database.close()


async def contend(url: str, name: str) -> None:
    """In a process of its own: an instance that, once let go, claims and reports until nothing is left to do.

    It prints each claim that it held: task, fence, and the instants (monotonic) of its answer and of its report.
    """
    database, clock = open_database(url), SystemClock()
    tasks = board(database)
    held: list[dict[str, Any]] = []
    await tasks.claim(ANA, {"role": "nobody", "instance": name})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()

    async def work(granted: TaskGrant) -> None:
        begun = clock.monotonic()
        await asyncio.sleep(0.002)
        ended = clock.monotonic()
        await tasks.report(ANA, granted.task.id, {"fence": granted.fence, "status": "done", "instance": name})
        held.append({"task": granted.task.id, "fence": granted.fence, "begun": begun, "ended": ended})

    idle = 0
    while idle < 50:
        granted = await tasks.claim(ANA, {"role": "pm", "instance": name, "limit": 3})
        await asyncio.gather(*(work(each) for each in granted))
        idle = 0 if granted else idle + 1
        if not granted:
            await asyncio.sleep(0.02)
    sys.stdout.write(json.dumps(held))
    await database.close()
