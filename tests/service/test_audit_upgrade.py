"""A database whose audit has one row for each entry is brought to rows of many: what was told stays as it was (OPS-3, SEC-7)."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import uuid4

import apsw
import asyncpg
import pytest

from gnomon.domain.audit import Action, AuditEntry
from gnomon.stores import audit, migrations
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database
from gnomon.stores.migrations import Migration
from gnomon.stores.postgres.address import parse
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.postgres.opening import prepare as prepare_postgres
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare as prepare_sqlite
from gnomon.testing.clock import FrozenClock

pytestmark = pytest.mark.anyio
OLD = [
    """INSERT INTO audit (at, actor, action, subject_kind, subject_id, fence, detail)
    VALUES (1, 'prc_1', 'CLAIM', 'run', 'run_1', 7, '{"attempt":1}')""",
    "INSERT INTO audit (at, actor, action, subject_kind, subject_id) VALUES (2, 'ana', 'CREATE', 'agent', 'agt_1')",
]
THEN = [
    (1, 1, "prc_1", Action.CLAIM, "run", "run_1", 7, {"attempt": 1}),
    (2, 2, "ana", Action.CREATE, "agent", "agt_1", None, {}),
]


def before(known: Sequence[Migration]) -> Sequence[Migration]:
    """The migrations up to the one that brings rows of many entries."""
    return known[: next(n for n, one in enumerate(known) if one.name == "audit_entries")]


@pytest.fixture(params=["sqlite", "postgres"])
async def upgraded(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clock: FrozenClock,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Database]:
    """A database that was written before, and opened by this program."""
    now = migrations.load
    monkeypatch.setattr(migrations, "load", lambda engine: before(now(engine)))
    if request.param == "sqlite":
        path = tmp_path / "gnomon.db"
        prepare_sqlite(path, clock)
        raw = apsw.Connection(str(path))
        for text in OLD:
            raw.execute(text)
        raw.close()
        monkeypatch.setattr(migrations, "load", now)
        prepare_sqlite(path, clock)
        database: Database = SqliteDatabase(path, clock)
        yield database
        await database.close()
        return
    address = parse(f"{postgres_url}?schema=upgrade_{uuid4().hex[:12]}")
    await prepare_postgres(address)
    line = await asyncpg.connect(postgres_url)
    await line.execute(f"SET search_path TO {address.schema}; {'; '.join(OLD)}")
    monkeypatch.setattr(migrations, "load", now)
    await prepare_postgres(address)
    database = PostgresDatabase(address, clock)
    yield database
    await database.close()
    await line.execute(f"DROP SCHEMA {address.schema} CASCADE")
    await line.close()


def told(entry: AuditEntry) -> tuple[object, ...]:
    at = round(entry.at.timestamp() * 1_000_000)
    return (
        entry.seq,
        at,
        entry.actor,
        entry.action,
        entry.subject_kind,
        entry.subject_id,
        entry.fence,
        entry.detail,
    )


async def test_what_was_told_before_keeps_its_number_and_its_words(upgraded: Database) -> None:
    """CONTRACT, "Audit entry": no entry ever changes; whoever had read so far goes on behind it."""
    assert [told(one) for one in await upgraded.read(lambda tx: audit.after(tx, 0, 9))] == THEN
    many = [new_entry("prc_1", Action.RELEASE, "run", f"run_{n}", 7) for n in range(3)]
    await upgraded.write(lambda tx: audit.append_many(tx, many))
    assert [told(one) for one in await upgraded.read(lambda tx: audit.after(tx, 0, 2))] == THEN
    after = await upgraded.read(lambda tx: audit.after(tx, THEN[-1][0], 9))
    assert [one.subject_id for one in after] == ["run_0", "run_1", "run_2"]
    assert [told(one) for one in await upgraded.read(lambda tx: audit.after(tx, 1, 1))] == THEN[1:]


async def test_the_first_row_of_all_reaches_below_no_number(postgres_url: str, clock: FrozenClock) -> None:
    """SEC-7: whoever reads from 0 on reads every entry, on a database that is new."""
    address = parse(f"{postgres_url}?schema=upgrade_{uuid4().hex[:12]}")
    await prepare_postgres(address)
    database = PostgresDatabase(address, clock)
    many = [new_entry("prc_1", Action.RELEASE, "run", f"run_{n}", 7) for n in range(audit.MOST)]
    await database.write(lambda tx: audit.append_many(tx, many))
    assert len(await database.read(lambda tx: audit.after(tx, 0, 2_000))) == audit.MOST
    await database.close()
    line = await asyncpg.connect(postgres_url)
    await line.execute(f"DROP SCHEMA {address.schema} CASCADE")
    await line.close()
