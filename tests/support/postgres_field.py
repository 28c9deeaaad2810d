"""A schema of PostgreSQL with many schedules that are due for one and the same slot, and what became of them."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg

from gnomon.adapters.clock import SystemClock
from gnomon.domain.instants import rfc3339
from support.postgres_life import ask, product_on
from support.processes import RECORDER

_COLUMNS = """SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
WHERE attrelid = 'gnomon.schedules'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'id'"""
_COPIES = """INSERT INTO gnomon.schedules (id, {columns})
SELECT 'sch_' || lpad(n::text, 20, '0'), {columns} FROM gnomon.schedules, generate_series(1, {count}) AS n"""
# the first slot of the rule, a moment ago; the next one comes tomorrow, however long a test takes
_DUE = """UPDATE gnomon.schedules
SET next_fire_at = anchor_at, created_at = anchor_at - 60000000, updated_at = anchor_at - 60000000"""


def a_field(url: str, folder: Path, count: int, *, query: str = "0") -> str:
    """Make the schema, an agent that records its calls in ``folder``, and ``count`` schedules that are due now.

    Returns a key that may do everything.
    """
    (folder / "recorder.py").write_text(RECORDER)
    slot = SystemClock().now().replace(second=0, microsecond=0)
    with product_on(url, folder) as product:
        body: dict[str, Any] = {
            "slug": "recorder",
            "name": "recorder",
            "runtime": {"kind": "python", "path": "recorder:hear"},
        }
        assert product.ask("/v1/agents", method="POST", body=body)[0] == 201
        body = {
            "name": "of the field",
            "target": {"kind": "agent", "id": "recorder"},
            "cadence": {"unit": "hour", "every": 24, "anchor": rfc3339(slot)},
            "query": query,
            "misfire_grace_seconds": 3_600,
        }
        status, made = product.ask("/v1/schedules", method="POST", body=body)
        assert status == 201, made
        key: str = product.started["key"]
        assert product.stop() == 0

    async def grow() -> None:
        raw = await asyncpg.connect(url)
        columns = await raw.fetchval(_COLUMNS)
        await raw.execute(_COPIES.format(columns=columns, count=count - 1))
        await raw.execute(_DUE)
        await raw.close()

    asyncio.run(grow())
    return key


def all_ended(url: str, count: int) -> bool:
    """Whether each of ``count`` slots has its record and no run is left."""
    sql = "SELECT (SELECT count(*) FROM gnomon.occurrences), (SELECT count(*) FROM gnomon.runs WHERE finished_at IS NULL)"
    [(slots, left)] = ask(url, sql)
    return bool(slots >= count and left == 0)
