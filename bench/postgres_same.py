"""The raw loop with the very writes of the product, over its own schema, with nothing computed or invoked in between.

python -m bench.postgres_same sets URL      one statement for each table and batch, two transactions
python -m bench.postgres_same whole URL     one statement for a claim, one for a close: all that a round trip can save
python -m bench.postgres_same close URL     400 in flight end one by one, each in a transaction of its own; no claim

Batches of 100, one connection; until nothing is due. The statements are written by hand: they are a limit, not a copy.
"""

import asyncio
import json
import random
import sys
import time
from typing import Any

import uvloop

from bench.postgres_fill import connect
from bench.postgres_limits import BY_INDEX, FLIGHT
from gnomon.domain.ids import Kind, make_id

OWNER, CLAIM = "prc_0000000000", "clm_00000000000000000000"
DUE = """SELECT id, next_fire_at FROM schedules WHERE status = 'active' AND next_fire_at <= now_us()
ORDER BY next_fire_at LIMIT 100 FOR UPDATE SKIP LOCKED"""
# the names of the batch at hand: sch, at, run, ses
SLOTS = """INSERT INTO occurrences (schedule_id, nominal_fire_at, revision, disposition, run_id, session_id, created_at)
SELECT sch, at, 1, 'fired', run, ses, now_us() FROM {batch}"""
RUNS = f"""INSERT INTO runs (
    id, trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, nominal_fire_at, scheduled_for,
    lease_seconds, lease_until, owner, claim_id, fence, attempt, started_at, query
)
SELECT run, 'schedule', 'running', 10, 'agent', 'agt_00000000000000000000', sch, 1, at, at, 330, now_us() + 330000000,
    '{OWNER}', '{CLAIM}', 1, 1, now_us(), 'write the morning report'
FROM {{batch}}"""
ADVANCE = """UPDATE schedules SET next_fire_at = next_fire_at + 86400000000, recorded_until = at, last_fire_at = at,
    run_count = run_count + 1, in_flight_run_id = run, fence = fence + 1
FROM {batch} WHERE id = sch"""
_DETAIL = """'{{"nominal_fire_at":' || at::text || ',"schedule_id":"' || sch || '"}}'"""
_ONE = "CASE WHEN count(*) = 1 THEN {} END"
# what happened to many at once is one row
AUDIT = f"""INSERT INTO audit (at, actor, action, subject_kind, subject_id, fence, detail, how_many, entries)
SELECT now_us(), '{OWNER}', '{{action}}', 'run', coalesce({_ONE.format("min(run)")}, ''), {_ONE.format("1")},
    {_ONE.format(f"min({_DETAIL})")}, count(*),
    CASE WHEN count(*) > 1 THEN '[' || string_agg('["' || run || '",1,' || {_DETAIL} || ']', ',') || ']' END
FROM {{batch}} HAVING count(*) > 0"""
END = """UPDATE runs SET status = 'succeeded', finished_at = now_us(), duration_us = 100, lease_until = NULL, claim_id = NULL,
    output = ''
FROM {batch} WHERE id = run AND status = 'running'"""

GIVEN = "unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS batch(sch, at, run, ses)"
OPENING = [SLOTS, RUNS, ADVANCE, AUDIT.replace("{action}", "CLAIM")]
ENDING = [END, AUDIT.replace("{action}", "RELEASE")]


def each(texts: list[str]) -> list[str]:
    return [text.format(batch=GIVEN) for text in texts]


def steps(texts: list[str]) -> str:
    return ", ".join(f"step_{n} AS ({text.format(batch='batch')})" for n, text in enumerate(texts))


WHOLE_CLAIM = f"""WITH due AS MATERIALIZED ({DUE}),
numbered AS (SELECT id, next_fire_at, row_number() OVER () AS n FROM due),
batch AS MATERIALIZED (
    SELECT d.id AS sch, d.next_fire_at AS at, g.run, g.ses FROM numbered AS d
    JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS g(run, ses, n) ON g.n = d.n
), {steps(OPENING)}
SELECT sch, at, run, ses FROM batch"""
WHOLE_CLOSE = f"WITH batch AS MATERIALIZED (SELECT * FROM {GIVEN}), {steps(ENDING)} SELECT 1"


BASE = time.time_ns() // 1_000_000  # so that a second trial over the same database makes others


def names(start: int) -> tuple[list[str], list[str]]:
    made = [make_id(Kind.RUN, BASE + start + n, n) for n in range(100)]
    return made, ["ses_" + run[4:] for run in made]


async def sets(connection: Any) -> float:
    opening = [await connection.prepare(text) for text in each(OPENING)]
    ending = [await connection.prepare(text) for text in each(ENDING)]
    due = await connection.prepare(DUE)
    done, began = 0, time.perf_counter()
    while True:
        await connection.execute("BEGIN")
        got = await due.fetch()
        if not got:
            await connection.execute("COMMIT")
            return done / (time.perf_counter() - began)
        made, sessions = names(done)
        batch = [row[0] for row in got], [row[1] for row in got], made[: len(got)], sessions[: len(got)]
        for statement in opening:
            await statement.fetch(*batch)
        await connection.execute("COMMIT")
        await connection.execute("BEGIN")
        for statement in ending:
            await statement.fetch(*batch)
        await connection.execute("COMMIT")
        done += len(got)


async def whole(connection: Any) -> float:
    claim, close = await connection.prepare(WHOLE_CLAIM), await connection.prepare(WHOLE_CLOSE)
    done, began = 0, time.perf_counter()
    while True:
        got = await claim.fetch(*names(done))
        if not got:
            return done / (time.perf_counter() - began)
        await close.fetch(*[[row[n] for row in got] for n in range(4)])
        done += len(got)


async def close(connection: Any, url: str) -> float:
    """An own transaction for each end, over five connections; the claims are made before the clock starts."""
    claim = await connection.prepare(WHOLE_CLAIM)
    flying: list[Any] = []
    while got := await claim.fetch(*names(len(flying))):
        flying += got
    pool = asyncio.Queue[Any]()
    others = [await connect(url, **BY_INDEX) for _ in range(5)]
    for other in others:
        pool.put_nowait(await other.prepare(WHOLE_CLOSE))
    out = asyncio.Semaphore(FLIGHT)

    async def one(row: Any) -> None:
        async with out:
            await asyncio.sleep(random.random() * 0.02)
            statement = await pool.get()
            await statement.fetch(*[[value] for value in row])
            pool.put_nowait(statement)

    began = time.perf_counter()
    await asyncio.gather(*[one(row) for row in flying])
    rate = len(flying) / (time.perf_counter() - began)
    for other in others:
        await other.close()
    return rate


async def trial(way: str, url: str) -> dict[str, float]:
    connection = await connect(url, **BY_INDEX)
    rate = await (
        close(connection, url) if way == "close" else {"sets": sets, "whole": whole}[way](connection)
    )
    await connection.close()
    return {"per_second": rate}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(trial(*sys.argv[1:]))))
