"""Bare rows, written by statements that the product does not have: the state a test starts from, and what it finds.

Instants are integers of microseconds. ``execute`` runs on the database's own writing connection.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.domain.instants import to_micros
from gnomon.stores.database import Database, Tx
from gnomon.stores.postgres.database import PostgresDatabase
from support import postgres
from support.databases import START

AT = to_micros(START)  # where the tests' clock stands
SECOND = 1_000_000

SCHEDULE: Mapping[str, Any] = {
    "id": "sch_" + "0" * 20,
    "name": "Nightly",
    "target_kind": "agent",
    "target_id": "agt_" + "0" * 20,
    "cadence": '{"unit":"hour","every":1}',
    "unit": "hour",
    "every": 1,
    "anchor_at": AT,
    "query": "go",
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
    "status_at": AT,
    "revision": 1,
    "next_fire_at": AT,
    "created_at": AT,
    "created_by": "test",
    "updated_at": AT,
    "updated_by": "test",
}
RUN: Mapping[str, Any] = {
    "id": "run_" + "0" * 20,
    "trigger_kind": "schedule",
    "status": "queued",
    "priority": 10,
    "target_kind": "agent",
    "target_id": "agt_" + "0" * 20,
    "session_id": "ses_" + "0" * 20,
    "scheduled_for": AT,
    "claimable_at": AT,
    "lease_seconds": 330,
    "created_at": AT,
    "query": "go",
}
RUNNING: Mapping[str, Any] = {
    "status": "running",
    "claimable_at": None,
    "owner": "prc_mine",
    "fence": 7,
    "attempt": 1,
    "started_at": AT,
    "attempt_at": AT,
    "lease_until": AT + 330 * SECOND,
}
OCCURRENCE: Mapping[str, Any] = {
    "schedule_id": "sch_" + "0" * 20,
    "nominal_fire_at": AT,
    "revision": 1,
    "disposition": "fired",
    "run_id": "run_" + "0" * 20,
    "session_id": "ses_" + "0" * 20,
    "created_at": AT,
}
PROCESS: Mapping[str, Any] = {
    "id": "prc_mine",
    "host": "here",
    "pid": 1,
    "version": "0",
    "started_at": AT,
    "heartbeat_at": AT,
}
AGENT: Mapping[str, Any] = {
    "id": "agt_" + "0" * 20,
    "slug": "agent",
    "name": "Agent",
    "runtime": "{}",
    "timeout_seconds": 300,
    "enabled": 1,
    "version": 1,
    "created_at": AT,
    "created_by": "test",
    "updated_at": AT,
}
TEAM: Mapping[str, Any] = {
    **{name: value for name, value in AGENT.items() if name not in {"runtime", "timeout_seconds"}},
    "id": "tea_" + "0" * 20,
    "nodes": "[]",
    "output": "a",
}


async def execute(database: Database, text: str, /, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of any statement, by column name; committed."""

    async def work(tx: Tx) -> list[dict[str, Any]]:
        if isinstance(database, PostgresDatabase):
            return await postgres.execute(tx, text, parameters)
        cursor = tx._raw.execute(text, parameters)  # type: ignore[attr-defined]
        found: list[dict[str, Any]] = []
        for row in cursor:
            names = [column[0] for column in cursor.get_description()]
            found.append(dict(zip(names, row, strict=True)))
        return found

    return await database.write(work)


async def one(database: Database, table: str, **key: Any) -> dict[str, Any]:
    """The one row of ``table`` with these values."""
    where = " AND ".join(f"{name} = :{name}" for name in key)
    (row,) = await execute(database, f"SELECT * FROM {table} WHERE {where}", **key)
    return row


async def add(database: Database, table: str, defaults: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Insert one row."""
    row = {**defaults, **changes}
    await add_many(database, table, [row])
    return row


async def add_many(database: Database, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that have the same columns, all in one transaction."""
    names, values = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])

    async def work(tx: Tx) -> None:
        if isinstance(database, PostgresDatabase):
            await postgres.insert(tx, table, list(rows))
            return
        tx._raw.executemany(f"INSERT INTO {table} ({names}) VALUES ({values})", rows)  # type: ignore[attr-defined]

    await database.write(work)


async def add_schedule(database: Database, **changes: Any) -> dict[str, Any]:
    """A schedule that is active and due at ``AT``."""
    if changes.get("status", "active") != "active" or changes.get("deleted_at") is not None:
        changes.setdefault("next_fire_at", None)
    return await add(database, "schedules", SCHEDULE, **changes)


async def add_run(database: Database, **changes: Any) -> dict[str, Any]:
    """A run that is queued and claimable at ``AT``."""
    return await add(database, "runs", RUN, **changes)


async def add_running(database: Database, **changes: Any) -> dict[str, Any]:
    """A run that ``prc_mine`` holds under fence 7 until ``AT`` + 330 s."""
    return await add(database, "runs", {**RUN, **RUNNING}, **changes)


async def add_process(database: Database, **changes: Any) -> dict[str, Any]:
    """A process that beat at ``AT``."""
    return await add(database, "processes", PROCESS, **changes)
