"""One trial of the product over a SQLite file, in a process of its own; prints a JSON line.

python -m bench.trial fill FILE SCHEDULES DUE     a migrated file with that many schedules, of which DUE are due
python -m bench.trial work FILE START_AT          work until nothing is due or running; runs a second
python -m bench.trial idle FILE SECONDS           nothing is due: statements and CPU
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from gnomon import wiring
from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.adapters.interpreter import tune_interpreter
from gnomon.domain.ids import Kind, make_id
from gnomon.runtimes.table import runtime_table
from gnomon.services.engine import Engine, Pace
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.settings import Settings
from gnomon.stores.database import Tx
from gnomon.stores.sqlite.connection import Connection
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare

AGENT = make_id(Kind.AGENT, 1, 1)
CONCURRENCY = 1_000  # the most that the setting takes
MINUTE = 60_000_000
SCHEDULE = """INSERT INTO schedules (
    id, name, target_kind, target_id, cadence, unit, every, anchor_at, query, session_mode, overlap, catch_up,
    timeout_seconds, max_attempts, backoff_seconds, backoff_max_seconds, failure_limit, on_lost, jitter_seconds,
    misfire_grace_seconds, status, status_by, status_at, revision, next_fire_at, created_at, created_by, updated_at,
    updated_by
) VALUES (
    ?, ?, 'agent', ?, '{"unit":"day","every":1,"at":["09:00"],"zone":"Europe/Berlin"}', 'day', 1, ?,
    'write the morning report', 'fresh', 'skip', 'latest', 300, 1, 10, 600, 5, 'fail', 0, 86400,
    'active', 'bench', ?, 1, ?, ?, 'bench', ?, 'bench'
)"""


class Counted:
    """The product's own database, with its longest write."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.longest = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, work: Any) -> Any:
        began = time.perf_counter()
        try:
            return await self._database.write(work)
        finally:
            self.longest = max(self.longest, time.perf_counter() - began)


def newest_slot(now: int) -> int:
    """The newest 09:00 in Berlin before now (its offset is the winter's: the bench runs any day)."""
    from gnomon.cadence import Cadence

    rule = Cadence.parse({"unit": "day", "at": "09:00", "zone": "Europe/Berlin"}).compile(
        now - 3 * 1440 * MINUTE
    )
    slot = rule.latest_at(now)
    assert slot is not None
    return slot


def fill(path: Path, schedules: int, due: int) -> None:
    clock = SystemClock()
    prepare(path, clock)
    now = clock.micros()
    slot, anchor = newest_slot(now), now // MINUTE * MINUTE - 10 * 1440 * MINUTE
    every = max(1, schedules // due) if due else 0
    rows = [
        (
            make_id(Kind.SCHEDULE, index, index),
            f"schedule {index}",
            AGENT,
            anchor,
            now,
            slot if every and index % every == 0 else slot + 1440 * MINUTE * 30,
            now,
            now,
        )
        for index in range(schedules)
    ]
    database = SqliteDatabase(path, clock)

    async def work(tx: Tx) -> None:
        raw = tx._raw  # type: ignore[attr-defined]
        raw.execute(
            "INSERT INTO agents (id, slug, name, runtime, timeout_seconds, enabled, version, created_at, created_by, "
            "updated_at) VALUES (?, 'noop', 'noop', ?, 300, 1, 1, 0, 'bench', 0)",
            (AGENT, json.dumps({"kind": "python", "path": "bench.noop:noop"})),
        )
        raw.executemany(SCHEDULE, rows)

    async def fill_it() -> None:
        await database.write(work)
        await database.close()

    asyncio.run(fill_it())


def engine_over(database: Any, concurrency: int) -> Engine:
    clock = SystemClock()
    mint = Mint(clock, SystemEntropy())
    return Engine(
        database=database,
        clock=clock,
        mint=mint,
        signal=Signal(),
        runtimes=runtime_table(clock, allow_private=True, grace_seconds=1.0),
        process_id=mint.process(),
        version="bench",
        kill_group=lambda _: None,
        pace=Pace(concurrency=concurrency),
    )


async def work(path: Path, start_at: float) -> dict[str, float]:
    counted = Counted(SqliteDatabase(path, SystemClock()))
    engine = engine_over(counted, CONCURRENCY)
    await asyncio.sleep(max(0.0, start_at - time.time()))  # noqa: TID251 - all processes start at one instant
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    await engine.start()
    last = began
    quiet = 0
    while quiet < 10:  # 0.1 s without a run
        await asyncio.sleep(0.01)
        busy = engine.runner.in_work > 0 or not await counted._database.read(nothing_left)
        quiet = 0 if busy else quiet + 1
        if busy:
            last = time.perf_counter()
    await engine.drain()
    await engine.stop()
    await counted.close()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": last - began, "cpu_seconds": cpu, "longest_wait_ms": counted.longest * 1e3}


async def nothing_left(tx: Tx) -> bool:
    raw = tx._raw  # type: ignore[attr-defined]
    due = raw.execute(
        "SELECT 1 FROM schedules WHERE status='active' AND next_fire_at <= now_us() LIMIT 1"
    ).get
    left = raw.execute(  # by its indexes: the look is not what is measured
        "SELECT 1 FROM runs WHERE lease_until IS NOT NULL UNION ALL "
        "SELECT 1 FROM runs WHERE priority IN (0, 10) AND claimable_at IS NOT NULL LIMIT 1"
    ).get
    return due is None and left is None


async def idle(path: Path, seconds: float) -> dict[str, float]:
    """The whole program but its sockets, with its stock settings: the transactions of all its connections."""
    made, transaction = 0, Connection.transaction

    def counted(*given: Any) -> Any:
        nonlocal made
        made += 1
        return transaction(*given)

    Connection.transaction = counted  # type: ignore[method-assign, assignment]
    center = await wiring.open_center(Settings(database_url=f"sqlite:///{path}"), dispatch=True, work=True)
    await center.start()
    await asyncio.sleep(3)
    made = 0
    before = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    transactions = made
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    await center.drain()
    await center.stop()
    return {"transactions_a_minute": transactions * 60 / seconds, "cpu_percent": cpu / seconds * 100}


if __name__ == "__main__":
    command, file, *rest = sys.argv[1:]
    if command == "fill":
        fill(Path(file), int(rest[0]), int(rest[1]))
        answer: dict[str, float] = {}
    else:
        tune_interpreter()  # as the program does
        answer = uvloop.run({"work": work, "idle": idle}[command](Path(file), float(rest[0])))
    print(json.dumps(answer))
