"""Schedules of the product in a PostgreSQL database, many at once: by COPY, beside the product's own door.

Every schedule is active and due in thirty days; ``arm`` makes some of them due now, ``fly`` puts some into flight.
"""

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from bench.trial import AGENT, MINUTE, newest_slot
from gnomon.adapters.clock import SystemClock
from gnomon.domain.ids import Kind, make_id
from gnomon.stores.postgres.opening import prepare

DAY = 1440 * MINUTE
CADENCE = '{"unit":"day","every":1,"at":["09:00"],"zone":"Europe/Berlin"}'
COLUMNS = [
    "id",
    "name",
    "target_kind",
    "target_id",
    "cadence",
    "unit",
    "every",
    "anchor_at",
    "query",
    "session_mode",
    "overlap",
    "catch_up",
    "timeout_seconds",
    "max_attempts",
    "backoff_seconds",
    "backoff_max_seconds",
    "failure_limit",
    "on_lost",
    "jitter_seconds",
    "misfire_grace_seconds",
    "status",
    "status_by",
    "status_at",
    "revision",
    "next_fire_at",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
]
FLY = """
WITH flown AS (
    UPDATE gnomon.schedules SET in_flight_run_id = 'run_' || substr(id, 5), fence = 1 WHERE id = ANY($1::text[]) RETURNING id
)
INSERT INTO gnomon.runs (
    id, trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, nominal_fire_at, scheduled_for,
    lease_seconds, lease_until, owner, claim_id, fence, attempt, started_at
)
SELECT 'run_' || substr(id, 5), 'schedule', 'running', 10, 'agent', $2, id, 1, $3, $3, 330, $3 + 86400000000,
    'prc_0000000000', 'clm_00000000000000000000', 1, 1, $3
FROM flown
"""


async def connect(url: str, **settings: str) -> "asyncpg.Connection[asyncpg.Record]":
    """A connection that sees the product's schema."""
    return await asyncpg.connect(url, server_settings={"search_path": "gnomon", **settings})


def nth(number: int) -> str:
    """The id of the schedule of that number."""
    return make_id(Kind.SCHEDULE, number, number)


def _rows(schedules: int, now: int) -> Iterator[tuple[Any, ...]]:
    far, anchor = now + 30 * DAY, now // MINUTE * MINUTE - 10 * DAY
    for n in range(schedules):
        yield (nth(n), f"schedule {n}", "agent", AGENT, CADENCE, "day", 1, anchor, "write the morning report", "fresh",
               "skip", "latest", 300, 1, 10, 600, 5, "fail", 0, 86400, "active", "bench", now, 1, far, now, "bench",
               now, "bench")  # fmt: skip


def fill(url: str, schedules: int, target: str = "noop") -> None:
    """Migrate, and put one agent and the schedules in."""

    async def run() -> None:
        await prepare(url)
        connection = await connect(url)
        await connection.execute(
            "INSERT INTO agents (id, slug, name, runtime, timeout_seconds, enabled, version, created_at, created_by, "
            "updated_at) VALUES ($1, 'noop', 'noop', $2, 300, 1, 1, 0, 'bench', 0)",
            AGENT,
            f'{{"kind":"python","path":"bench.noop:{target}"}}',
        )
        rows = _rows(schedules, SystemClock().micros())
        await connection.copy_records_to_table("schedules", records=rows, columns=COLUMNS)
        await connection.execute("VACUUM ANALYZE schedules")
        await connection.close()

    asyncio.run(run())


def _chosen(schedules: int, number: int, turn: int) -> list[str]:
    """``number`` schedules spread over all, others in each turn."""
    stride = schedules // number
    return [nth(n) for n in range(turn % stride, schedules, stride)][:number]


def arm(url: str, schedules: int, number: int, turn: int) -> None:
    """Make ``number`` schedules due that no earlier turn has made due."""

    async def run() -> None:
        connection = await connect(url)
        slot = newest_slot(SystemClock().micros())
        await connection.execute(
            "UPDATE schedules SET next_fire_at = $2, recorded_until = NULL WHERE id = ANY($1::text[])",
            _chosen(schedules, number, turn),
            slot,
        )
        await connection.execute("VACUUM ANALYZE schedules")
        await connection.close()

    asyncio.run(run())


def fly(url: str, schedules: int, number: int) -> None:
    """Put ``number`` schedules into flight, each with its running run."""

    async def run() -> None:
        connection = await connect(url)
        await connection.execute(FLY, _chosen(schedules, number, 0), AGENT, SystemClock().micros())
        await connection.execute("VACUUM ANALYZE schedules, runs")
        await connection.close()

    asyncio.run(run())


def name_of(url: str) -> str:
    """The name of the database."""
    return urlsplit(url).path[1:]
