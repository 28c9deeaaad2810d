"""What a doctor looks at, on every engine: pages of loops, processes, keys that end, the engine's settings (IDM-4)."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gnomon.stores import doctor
from gnomon.stores.database import Database, Row, Tx
from gnomon.stores.postgres.database import PostgresDatabase
from support.plans import plan, scanned
from support.rows import AT, PROCESS, add, add_many, add_process, add_schedule

DAY = 86_400_000_000
JOB = {
    "id": "job_" + "0" * 20,
    "slug": "digest",
    "name": "Digest",
    "role": "pm",
    "cadence": '{"unit":"hour","every":1}',
    "unit": "hour",
    "every": 1,
    "anchor_at": AT,
    "payload": "{}",
    "dedup_key": "digest-{{date}}",
    "enabled": 1,
    "version": 1,
    "next_fire_at": AT,
    "created_at": AT,
    "created_by": "test",
    "updated_at": AT,
    "updated_by": "test",
}
KEY: dict[str, Any] = {"name": "ci", "hint": "abcd", "created_at": AT, "created_by": "test"}


async def ids(database: Database, read: Callable[[Tx], AsyncIterator[Any]]) -> list[str]:
    """The ids of everything that is read, over all pages."""

    async def work(tx: Tx) -> list[Row]:
        found: list[Row] = []
        async for rows in read(tx):
            found += rows if isinstance(rows, list) else [rows]
        return found

    return [row["id"] for row in await database.read(work)]


async def test_loops_that_may_fire_again_are_read_and_no_others(database: Database) -> None:
    for status in ("active", "paused", "error", "completed", "disabled"):
        await add_schedule(database, id=f"sch_{status}", status=status)
    await add_schedule(database, id="sch_gone", deleted_at=AT)
    assert await ids(database, doctor.schedules) == ["sch_active", "sch_error", "sch_paused"]
    await add(database, "jobs", JOB, id="job_1")
    await add(database, "jobs", JOB, id="job_2", slug="off", enabled=0, next_fire_at=None)
    await add(database, "jobs", JOB, id="job_3", slug="aside", enabled=0, next_fire_at=None, error="no slot")
    await add(database, "jobs", JOB, id="job_4", slug="gone", next_fire_at=None, deleted_at=AT)
    assert await ids(database, doctor.jobs) == ["job_1", "job_3"]


async def test_pages_follow_one_another(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PAGE", 2)
    await add_many(database, "processes", [{**PROCESS, "id": f"prc_{n}"} for n in range(5)])
    assert await ids(database, doctor.processes) == [f"prc_{n}" for n in range(5)]


async def test_processes_that_nobody_stopped_are_read(database: Database) -> None:
    await add_process(database, id="prc_1")
    await add_process(database, id="prc_2", stopped_at=AT)
    assert await ids(database, doctor.processes) == ["prc_1"]


async def test_keys_that_end_within_a_while_are_read(database: Database) -> None:
    ends = {"key_1": AT + DAY, "key_2": AT + 3 * DAY, "key_3": AT, "key_4": None}
    for number, (key_id, at) in enumerate(ends.items()):
        await add(database, "api_keys", KEY, id=key_id, hash=b"%d" % number, expires_at=at)
    await add(database, "api_keys", KEY, id="key_5", hash=b"5", expires_at=AT + DAY, revoked_at=AT)
    assert await ids(database, lambda tx: doctor.keys_ending(tx, 2 * DAY)) == ["key_1"]


@pytest.mark.usefixtures("synced")
async def test_the_settings_that_promises_stand_on_are_told(database: Database) -> None:
    """OPS-1: those in force for this very connection."""
    found = await database.read(doctor.settings)
    if isinstance(database, PostgresDatabase):
        assert found.keys() == {"fsync", "full_page_writes", "synchronous_commit"}
    else:
        assert found == {"synchronous": "2", "journal_mode": "wal"}


@pytest.mark.parametrize("name", ["schedules", "jobs", "processes", "keys_ending"])
async def test_each_page_is_found_by_its_id(database: Database, name: str) -> None:
    """HOUSE rule 5: in the order of the key, so that a page costs what it holds."""
    lines = await plan(database, f"doctor.{name}", {"after": "", "limit": 9, "within_us": 1})
    assert scanned(lines) == set(), lines
