"""Step 7 on every engine: what stood in a table of its own stands with the runs, and sessions say what they said (OPS-3, RUN-9)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from gnomon.domain.instants import from_micros
from gnomon.domain.session import Session, Turn
from gnomon.stores import migrations, sessions
from gnomon.stores.database import Database, Tx
from gnomon.stores.postgres.address import parse
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.postgres.opening import prepare as prepare_postgres
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare as prepare_sqlite
from gnomon.testing.clock import FrozenClock
from support.postgres import FrozenPostgres
from support.rows import AT, RUN, SECOND, add_many, execute

pytestmark = pytest.mark.anyio
KNOWN = {engine: migrations.load(engine) for engine in ("sqlite", "postgres")}
DONE: dict[str, Any] = {"status": "succeeded", "claimable_at": None}
OLD_RUN = {name: value for name, value in RUN.items() if name not in {"created_at", "query"}} | {
    "started_at": None,
    "finished_at": None,
}
# id, session, whether it is over, answer; the session of the last one was erased
RUNS = [
    ("run_1", None, True, "one"),
    ("run_2", "ses_f", True, "two"),
    ("run_3", "ses_f", True, ""),
    ("run_4", "ses_f", True, None),
    ("run_5", "ses_1", True, "five"),
    ("run_6", "ses_f", False, None),
    ("run_7", "", True, None),
]


def _run(number: int, run_id: str, session_id: str | None, over: bool) -> dict[str, Any]:
    row = OLD_RUN | {"id": run_id, "session_id": session_id}
    if over:
        row |= DONE | {
            "started_at": AT + number if session_id != "" else None,
            "finished_at": AT + number * SECOND,
        }
    return row


def _turn(number: int, run_id: str, session_id: str | None, output: str | None) -> dict[str, Any]:
    return {
        "session_id": session_id or f"ses_{run_id[4:]}",
        "run_id": run_id,
        "query": f"q{number}",
        "output": output,
        "created_at": AT + number - number % 2,
        "answered_at": None if output is None else AT + number * SECOND,
    }


@pytest.fixture
async def before(
    engine: str, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, request: Any
) -> AsyncIterator[tuple[Database, Any]]:
    """A database as step 6 left it, and what brings it up to date."""
    monkeypatch.setattr(migrations, "load", lambda engine: KNOWN[engine][:6])
    if engine == "sqlite":
        path = tmp_path / "old.db"
        prepare_sqlite(path, clock)
        database: Database = SqliteDatabase(path, clock)

        async def up() -> None:
            prepare_sqlite(path, clock)

        yield database, up
        await database.close()
        return
    schema = f"turns_{uuid4().hex[:12]}"
    url = request.getfixturevalue("postgres_url")
    address = parse(f"{url}?schema={schema}")
    await prepare_postgres(address)
    opened: PostgresDatabase = FrozenPostgres(address, clock)

    async def up_to_date() -> None:
        await prepare_postgres(address)

    yield opened, up_to_date
    await opened.close()
    raw = await asyncpg.connect(address.dsn)
    await raw.execute(f"DROP SCHEMA {schema} CASCADE")
    await raw.close()


async def test_what_was_said_stands_with_its_run(
    before: tuple[Database, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, up = before
    await add_many(database, "runs", [_run(n, *run[:3]) for n, run in enumerate(RUNS, 1)])
    said = [_turn(n, run[0], run[1], run[3]) for n, run in enumerate(RUNS, 1) if run[1] != ""]
    await add_many(database, "turns", said)
    monkeypatch.undo()
    await up()

    async def read(tx: Tx, session_id: str) -> tuple[Session | None, list[Turn]]:
        return await sessions.find(tx, session_id), await sessions.turns(tx, session_id, "", 9)

    for session_id in ("ses_1", "ses_f", "ses_2", ""):
        session, turns = await database.read(lambda tx, of=session_id: read(tx, of))  # type: ignore[misc]
        kept = [row for row in said if row["session_id"] == session_id]
        names = ("run_id", "query", "output", "created_at", "answered_at")
        assert turns == [Turn(*[row[name] for name in names]) for row in kept]
        if kept:
            last = max(row["answered_at"] or row["created_at"] for row in kept)
            first = min(row["created_at"] for row in kept)
            assert session == Session(session_id, from_micros(first), len(kept), from_micros(last))
        else:
            assert session is None
    [erased] = await execute(database, "SELECT query, output, created_at FROM runs WHERE session_id = ''")
    assert erased == {"query": "", "output": None, "created_at": AT}
