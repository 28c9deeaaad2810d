"""Real processes over one SQLite file: what they contend for, what their targets heard, what the file says afterwards."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.domain.agent import RuntimeSpec
from gnomon.domain.instants import from_micros
from gnomon.domain.invocation import Invocation, Result
from gnomon.ports.runtime import Reporter
from gnomon.services.engine import Engine, Pace
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare
from support.house import a_schedule, an_agent, rows

PATIENCE_SECONDS = 40.0
MINUTE = 60_000_000
# A target that appends one line for each call: O_APPEND writes of a short line are whole, whoever dies meanwhile.
RECORDER = """
import asyncio, json, os
from pathlib import Path

HEARD = os.open(Path(__file__).with_name("heard.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


async def hear(invocation):
    line = {"pid": os.getpid(), "run": invocation.run_id, "key": invocation.idempotency_key, "fence": invocation.fence}
    os.write(HEARD, (json.dumps(line) + "\\n").encode())
    await asyncio.sleep(float(invocation.query))
    return "heard"
"""


def heard(folder: Path) -> list[dict[str, Any]]:
    """What the targets of ``RECORDER`` heard, in order."""
    file = folder / "heard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def look(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a statement that only a test has, over a connection of its own."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(10_000)
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """Look again and again until there is something; what it was."""
    pause, clock = threading.Event(), SystemClock()
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        found = condition()
        if found:
            return found
        pause.wait(0.02)
    raise AssertionError(f"within {seconds} s never: {what}")


def a_field(folder: Path, count: int, *, query: str = "0", changes: Mapping[str, Any] | None = None) -> Path:
    """A database with ``count`` schedules that are due now for one and the same slot, and an agent that records."""
    (folder / "recorder.py").write_text(RECORDER)
    path, clock = folder / "gnomon.db", SystemClock()
    prepare(path, clock)
    due = clock.micros() // MINUTE * MINUTE

    async def make() -> None:
        database = SqliteDatabase(path, clock)
        await an_agent(database, runtime=json.dumps({"kind": "python", "path": "recorder:hear"}))
        await a_schedule(
            database,
            {"unit": "hour", "every": 24},
            next_fire_at=from_micros(due),
            anchor=from_micros(due),
            query=query,
            misfire_grace_seconds=3_600,
            **(changes or {}),
        )
        names = [row[1] for row in look(path, "PRAGMA table_info(schedules)") if row[1] != "id"]
        columns = ", ".join(names)
        await rows(
            database,
            f"""INSERT INTO schedules (id, {columns})
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count} - 1)
            SELECT printf('sch_%020d', i), {columns} FROM schedules, n WHERE {count} > 1""",
        )
        await database.close()

    asyncio.run(make())
    return path


class _Heard:
    """A target that only counts."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result:
        self.runs.append(invocation.run_id)
        return Result("heard")


async def contend(path: Path, what: str) -> None:
    """In a process of its own: an engine that, once let go, claims ``slots`` or ``runs`` until none is left."""
    clock, target = SystemClock(), _Heard()
    database, mint = SqliteDatabase(path, clock), Mint(clock, SystemEntropy())
    engine = Engine(
        database=database,
        clock=clock,
        mint=mint,
        signal=Signal(),
        runtimes=target,
        process_id=mint.process(),
        version="test",
        kill_group=lambda _: None,
        pace=Pace(concurrency=10),
        work=what == "runs",
    )
    await engine.register()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    if what == "slots":
        await engine.dispatcher.tick()
    else:
        while look(path, "SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1") or engine.runner.in_work:
            await engine.runner.tick()
            await asyncio.sleep(0.001)
    sys.stdout.write(json.dumps({"id": engine.process_id, "runs": target.runs}))
    await database.close()
