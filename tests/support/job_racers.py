"""Processes that race for the due jobs of one database: a dispatcher each, which ticks until nothing is due."""

import asyncio
import json
import sys

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.services.job_dispatcher import JobDispatcher
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores import jobs, triggers
from gnomon.stores.database import Tx
from gnomon.stores.postgres.address import parse
from support.board_workers import open_database
from support.job_rows import JOB
from support.rows import add_many

MINUTE = 60_000_000


def table(url: str, name: str) -> str:
    """How a statement that the product does not have names a table of this database."""
    return f"{parse(url).schema}.{name}" if url.startswith("postgresql") else name


async def fill(url: str, count: int, room: int) -> None:
    """Jobs that are all due for one slot, and two instances that have room for so many each."""
    database, now = open_database(url), SystemClock().micros()
    due = now // MINUTE * MINUTE
    common = {"anchor_at": due, "next_fire_at": due, "created_at": due - MINUTE, "updated_at": due - MINUTE}
    grace = {"grace_seconds": 3_600, "dedup_key": "{{job}}-{{now}}"}
    await add_many(
        database,
        table(url, "jobs"),
        [{**JOB, **common, **grace, "id": f"job_{n:020d}", "slug": f"job-{n}"} for n in range(count)],
    )
    instance = {
        "role": JOB["role"],
        "status": "online",
        "epoch": 1,
        "server": "prc_1",
        "max_in_flight": room,
        "connected_at": now,
        "last_heartbeat_at": now,
        "created_at": now,
    }
    await add_many(
        database, table(url, "instances"), [{**instance, "id": f"ins_{n}", "name": n} for n in "ab"]
    )
    await database.close()


async def contend(url: str) -> None:
    """In a process of its own: tick, once let go, until nothing is due or can be given; print what it made."""
    clock = SystemClock()
    database = open_database(url)
    dispatcher = JobDispatcher(database=database, mint=Mint(clock, SystemEntropy()), wakeup=Signal(), batch=7)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()

    async def is_left(tx: Tx) -> bool:
        wait = await jobs.next_due(tx)
        return (wait is not None and wait <= 0) or await triggers.givable(tx)

    while await database.read(is_left):
        await dispatcher.tick()
        await asyncio.sleep(0.001)
    sys.stdout.write(json.dumps(dict(dispatcher.made)))
    await database.close()
