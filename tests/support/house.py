"""A whole engine over a real SQLite file, driven tick by tick on a frozen clock, with a scripted target."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gnomon.cadence import Cadence
from gnomon.domain.instants import maybe_micros, to_micros
from gnomon.services.agenda import Chore
from gnomon.services.engine import Engine, Pace
from gnomon.services.mint import Mint
from gnomon.services.places import Places
from gnomon.services.signal import Signal
from gnomon.stores import queries
from gnomon.stores.database import Database, Row, Tx
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.testing.clock import FrozenClock, SeededEntropy
from gnomon.testing.runtime import ScriptedRuntime
from support import postgres
from support.databases import START

AGENT = "agt_" + "0" * 20
PACE = Pace(concurrency=10, kill_grace_seconds=5.0)
_ROUNDS = 400


@dataclass
class House:
    """One process of the product over ``database``. Several may share it."""

    database: Database
    clock: FrozenClock
    mint: Mint
    runtime: ScriptedRuntime = field(default_factory=ScriptedRuntime)
    pace: Pace = PACE
    work: bool = True
    killed: list[int] = field(default_factory=list)
    chores: tuple[Chore, ...] = ()
    places: Places | None = None
    others: "list[House]" = field(default_factory=list)  # its neighbours, closed together with it

    async def open(self) -> "House":
        """Build the engine and write the process's row; nothing ticks by itself."""
        self.signal = Signal()
        self.engine = Engine(
            database=self.database,
            clock=self.clock,
            mint=self.mint,
            signal=self.signal,
            runtimes=self.runtime,
            process_id=self.mint.process(),
            version="test",
            kill_group=self.killed.append,
            pace=self.pace,
            work=self.work,
            chores=self.chores,
            places=self.places,
        )
        await self.engine.register()
        self.direct = self.database.direct()
        return self

    async def neighbour(self, seed: int = 99, **changes: Any) -> "House":
        """Another process over the same database, with an identity of its own."""
        house = replace(
            self,
            mint=Mint(self.clock, SeededEntropy(seed)),
            runtime=ScriptedRuntime(),
            killed=[],
            others=[],
            **changes,
        )
        self.others.append(await house.open())
        return house

    def close(self) -> None:
        """Close its own line to the database, and its neighbours'."""
        for each in (self, *self.others):
            each.direct.close()

    async def dispatch(self) -> float | None:
        """One tick of the dispatcher, under a fresh heartbeat."""
        await self.beat()
        return await self.engine.dispatcher.tick()

    async def claim(self) -> float | None:
        """One tick of the runner, under a fresh heartbeat."""
        await self.beat()
        return await self.engine.runner.tick()

    async def elapse(self, seconds: float) -> None:
        """Let time pass with the heartbeat going on, as it does in a process that lives."""
        for _ in range(int(seconds // 5)):
            self.clock.advance(5)
            await self.beat()
        self.clock.advance(seconds % 5)

    async def idle(self) -> None:
        """Let the event loop work until no run is in work any more."""
        for _ in range(_ROUNDS):
            if not self.engine.runner.in_work:
                return
            await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.005)
        raise AssertionError(f"{self.engine.runner.in_work} runs are still in work")

    async def until(self, condition: Any) -> None:
        """Let the event loop work until ``condition()`` holds."""
        for _ in range(_ROUNDS):
            if condition():
                return
            await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.005)
        raise AssertionError("it never came true")

    async def beat(self) -> None:
        """One tick of the renewal, as its thread would make it: none any more once it was stopped."""
        if not self.engine.renewal._stop.is_set():
            await asyncio.to_thread(self.engine.renewal.tick, self.direct)

    async def rows(self, sql: str, **parameters: Any) -> list[Row]:
        """Rows of a statement that only a test has."""
        return await rows(self.database, sql, **parameters)

    async def run(self, index: int = 0) -> Row:
        """One run's row, by age."""
        return (await self.rows("SELECT * FROM runs ORDER BY id"))[index]

    async def schedule(self, schedule_id: str) -> Row:
        """One schedule's row; ``unfinished_run_id`` is the run that locks it."""
        query = queries.load("sqlite")["schedules.get"].text
        return (await self.rows(query, id=schedule_id))[0]

    async def occurrences(self) -> list[Row]:
        """The whole ledger, by slot."""
        return await self.rows("SELECT * FROM occurrences ORDER BY nominal_fire_at")

    async def audit(self, action: str) -> list[Row]:
        """The audit's entries of one action."""
        return await self.rows(
            "SELECT * FROM audit_entries WHERE action = :action ORDER BY seq", action=action
        )


async def rows(database: Database, sql: str, **parameters: Any) -> list[Row]:
    """Rows of a statement that only a test has."""

    async def work(tx: Tx) -> list[Row]:
        if isinstance(database, PostgresDatabase):
            return list(await postgres.execute(tx, sql, parameters))
        cursor = tx._raw.execute(sql, parameters)  # type: ignore[attr-defined]
        found = cursor.fetchall() if not sql.lstrip().upper().startswith("SELECT") else None
        if found is not None:
            return found  # type: ignore[no-any-return]
        names: list[str] = []
        given: list[Row] = []
        for row in cursor:
            names = names or [column[0] for column in cursor.get_description()]
            given.append(dict(zip(names, row, strict=True)))
        return given

    return await database.write(work)


async def an_agent(database: Database, agent_id: str = AGENT, **changes: Any) -> str:
    """An agent's row."""
    row: dict[str, Any] = {
        "id": agent_id,
        "slug": agent_id.replace("_", "-"),
        "name": "agent",
        "runtime": json.dumps({"kind": "python", "path": "tests:nothing"}),
        "timeout_seconds": 300,
        "limits": "{}",
        "enabled": 1,
        "version": 1,
        "created_at": 0,
        "created_by": "test",
        "updated_at": 0,
    } | changes
    await _insert(database, "agents", row)
    return agent_id


async def a_team(
    database: Database, team_id: str, nodes: list[dict[str, Any]], output: str, **changes: Any
) -> str:
    """A team's row."""
    row: dict[str, Any] = {
        "id": team_id,
        "slug": team_id.replace("_", "-"),
        "name": "team",
        "nodes": json.dumps(nodes),
        "output": output,
        "limits": "{}",
        "enabled": 1,
        "version": 1,
        "created_at": 0,
        "created_by": "test",
        "updated_at": 0,
    } | changes
    await _insert(database, "teams", row)
    return team_id


async def a_schedule(
    database: Database,
    rule_json: Mapping[str, Any],
    *,
    next_fire_at: datetime | None,
    anchor: datetime,
    schedule_id: str = "sch_" + "0" * 20,
    **changes: Any,
) -> str:
    """A schedule's row, active and due at ``next_fire_at``."""
    rule = Cadence.parse(rule_json)
    unit = rule.to_json().get("unit") or ("cron" if "cron" in rule_json else "rrule")
    row: dict[str, Any] = {
        "id": schedule_id,
        "name": "schedule",
        "target_kind": "agent",
        "target_id": AGENT,
        "cadence": json.dumps(rule.to_json()),
        "unit": unit,
        "every": rule.to_json().get("every") if unit not in ("once", "cron", "rrule") else None,
        "calendar": rule.calendar,
        "anchor_at": to_micros(anchor) // 60_000_000 * 60_000_000,
        "query": "do it",
        "session_mode": "fresh",
        "overlap": "skip",
        "catch_up": "latest",
        "timeout_seconds": 300,
        "max_attempts": 1,
        "backoff_seconds": 10,
        "backoff_max_seconds": 600,
        "failure_limit": 5,
        "on_lost": "fail",
        "jitter_seconds": 0,
        "status": "active",
        "status_by": "test",
        "status_at": to_micros(anchor),
        "revision": 1,
        "next_fire_at": maybe_micros(next_fire_at),
        "created_at": to_micros(anchor),
        "created_by": "test",
        "updated_at": to_micros(anchor),
        "updated_by": "test",
    } | changes
    await _insert(database, "schedules", row)
    return schedule_id


async def a_run_in_work(house: House, rule_json: Mapping[str, Any], **changes: Any) -> str:
    """A schedule whose first run hangs at its target; the schedule's id."""
    hold = house.runtime.hangs()
    await an_agent(house.database)
    sid = await a_schedule(
        house.database, rule_json, next_fire_at=START, anchor=START - timedelta(hours=5), **changes
    )
    await house.dispatch()
    await hold.started.wait()
    return sid


async def _insert(database: Database, table: str, row: Mapping[str, Any]) -> None:
    columns = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    await rows(database, f"INSERT INTO {table} ({columns}) VALUES ({values})", **row)
