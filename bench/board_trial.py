"""One trial of the board in a process of its own: claims and reports until no task is left.

python -m bench.board_trial fill URL TASKS
python -m bench.board_trial ours URL INSTANCES LIMIT
python -m bench.board_trial raw URL LIMIT       the same statements by hand, over one connection, nothing in between

A URL is a path, or an address of PostgreSQL.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.domain.caller import system
from gnomon.domain.ids import Kind
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.tasks import Tasks
from gnomon.stores.database import Database
from gnomon.stores.postgres import opening as postgres_opening
from gnomon.stores.postgres.address import parse
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.stores.sqlite import opening as sqlite_opening
from gnomon.stores.sqlite.database import SqliteDatabase

ANA = system("ana")
INSERT = """INSERT INTO tasks (id, role, title, body, priority, status, unmet, fence, created_at, created_by, updated_at)
VALUES ({values})"""
SEEN = """INSERT INTO instances (id, role, name, status, last_heartbeat_at, created_at)
VALUES ('ins_1', 'pm', 'raw', 'online', {now}, {now})
ON CONFLICT (role, name) DO UPDATE SET last_heartbeat_at = {now}, status = 'online' RETURNING *"""
CLAIM = """INSERT INTO task_locks (task_id, instance_id, fence, claim_id, claimed_by, claimed_at, renewed_at, expires_at)
SELECT id, 'ins_1', fence + 1, 'clm_1', 'ana', {now}, {now}, {now} + 120000000 FROM tasks
WHERE role = 'pm' AND status = 'backlog' AND unmet = 0
ORDER BY priority DESC, id LIMIT {limit} {skip}
ON CONFLICT (task_id) DO NOTHING RETURNING task_id, fence, expires_at"""
BEGIN = "UPDATE tasks SET status = 'in_progress', fence = fence + 1, updated_at = {now} WHERE id = {id}"
AUDIT = """INSERT INTO audit (at, actor, action, subject_kind, subject_id, fence, detail)
VALUES ({now}, 'ana', '{action}', 'task', {id}, 1, '{{"instance": "raw", "role": "pm"}}')"""
READ = """SELECT t.*, l.instance_id, i.name AS instance, l.fence AS held_fence, l.claimed_at, l.expires_at,
    (SELECT string_agg(p.prerequisite_id || ' ' || q.status, ',' ORDER BY p.prerequisite_id)
     FROM task_prerequisites AS p JOIN tasks AS q ON q.id = p.prerequisite_id WHERE p.task_id = t.id) AS needs
FROM tasks AS t LEFT JOIN task_locks AS l ON l.task_id = t.id LEFT JOIN instances AS i ON i.id = l.instance_id
WHERE t.id = {id}"""
RELEASE = (
    "DELETE FROM task_locks WHERE task_id = {id} AND fence = 1 AND claimed_by = 'ana' RETURNING instance_id"
)
MOVE = """UPDATE tasks SET status = 'done', updated_at = {now}, last_report = '{{}}', reported_at = {now}
WHERE id = {id} AND fence = 1 AND status = 'in_progress' RETURNING id"""
GATES = """UPDATE tasks SET unmet = unmet - 1
WHERE id IN (SELECT task_id FROM task_prerequisites WHERE prerequisite_id = {id})"""


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql")


def opened(url: str) -> Database:
    if is_postgres(url):
        return PostgresDatabase(url, SystemClock())
    return SqliteDatabase(Path(url), SystemClock())


async def connected(url: str) -> Any:
    address = parse(url)
    return await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})


async def fill(url: str, count: int) -> None:
    mint = Mint(SystemClock(), SystemEntropy())
    rows = [
        (mint.make(Kind.TASK), "pm", "Look at the new issues", "", 0, "backlog", 0, 0, 0, "ana", 0)
        for _ in range(count)
    ]
    if is_postgres(url):
        await postgres_opening.prepare(url)
        raw = await connected(url)
        await raw.executemany(INSERT.format(values=", ".join(f"${n}" for n in range(1, 12))), rows)
        await raw.execute("ANALYZE tasks")
        await raw.close()
        return
    sqlite_opening.prepare(Path(url), SystemClock())
    file = apsw.Connection(url)
    with file:
        file.executemany(INSERT.format(values=", ".join("?" * 11)), rows)
    file.close()


async def ours(url: str, instances: int, limit: int) -> float:
    database, clock = opened(url), SystemClock()
    tasks = Tasks(
        database,
        clock,
        Mint(clock, SystemEntropy()),
        Signal(),
        lock_seconds=120,
        heartbeat_timeout_seconds=120,
    )
    done = 0

    async def instance(name: str) -> None:
        nonlocal done
        while granted := await tasks.claim(ANA, {"role": "pm", "instance": name, "limit": limit}):
            for each in granted:
                await tasks.report(ANA, each.task.id, {"fence": each.fence, "status": "done"})
                done += 1

    await tasks.claim(ANA, {"role": "nobody", "instance": "warm"})
    began = time.perf_counter()
    await asyncio.gather(*(instance(f"pm-{number}") for number in range(instances)))
    rate = done / (time.perf_counter() - began)
    await database.close()
    return rate


def raw_sqlite(url: str, limit: int) -> float:
    raw, clock = apsw.Connection(url), SystemClock()
    raw.execute("PRAGMA synchronous=FULL")
    raw.execute("PRAGMA cache_size=-32000")
    known = {"now": "?1", "id": "?2", "limit": limit, "skip": ""}

    def run(text: str, task_id: str | None = None, **more: str) -> list[Any]:
        given = (clock.micros(),) if task_id is None else (clock.micros(), task_id)
        return raw.execute(text.format(**{**known, **more}), given[: 2 if "{id}" in text else 1]).fetchall()

    done, began = 0, time.perf_counter()
    while True:
        raw.execute("BEGIN IMMEDIATE")
        run(SEEN)
        taken = run(CLAIM)
        for task_id, *_ in taken:
            run(BEGIN, task_id)
            run(AUDIT, task_id, action="CLAIM")
            run(READ, task_id)
        raw.execute("COMMIT")
        if not taken:
            return done / (time.perf_counter() - began)
        for task_id, *_ in taken:
            raw.execute("BEGIN IMMEDIATE")
            for text in (RELEASE, MOVE, GATES):
                run(text, task_id)
            run(SEEN)
            run(AUDIT, task_id, action="RELEASE")
            run(READ, task_id)
            raw.execute("COMMIT")
            done += 1


async def raw_postgres(url: str, limit: int) -> float:
    raw = await connected(url)
    known = {"now": "now_us()", "id": "$1", "limit": limit, "skip": "FOR UPDATE SKIP LOCKED"}
    texts = {
        name: await raw.prepare(text.format(**known, action="CLAIM"))
        for name, text in {
            "seen": SEEN,
            "claim": CLAIM,
            "begin": BEGIN,
            "claimed": AUDIT,
            "read": READ,
            "release": RELEASE,
            "move": MOVE,
            "gates": GATES,
            "released": AUDIT.replace("{action}", "RELEASE"),
        }.items()
    }
    done, began = 0, time.perf_counter()
    while True:
        await raw.execute("BEGIN")
        await texts["seen"].fetch()
        taken = await texts["claim"].fetch()
        for row in taken:
            for name in ("begin", "claimed", "read"):
                await texts[name].fetch(row[0])
        await raw.execute("COMMIT")
        if not taken:
            await raw.close()
            return done / (time.perf_counter() - began)
        for row in taken:
            await raw.execute("BEGIN")
            for name in ("release", "move", "gates"):
                await texts[name].fetch(row[0])
            await texts["seen"].fetch()
            for name in ("released", "read"):
                await texts[name].fetch(row[0])
            await raw.execute("COMMIT")
            done += 1


def main() -> None:
    what, url, *numbers = sys.argv[1:]
    counts = [int(number) for number in numbers]
    found: float = 0
    if what == "fill":
        asyncio.run(fill(url, counts[0]))
    elif what == "ours":
        found = asyncio.run(ours(url, counts[0], counts[1]))
    elif is_postgres(url):
        found = asyncio.run(raw_postgres(url, counts[0]))
    else:
        found = raw_sqlite(url, counts[0])
    print(json.dumps({"per_second": found}))


if __name__ == "__main__":
    main()
