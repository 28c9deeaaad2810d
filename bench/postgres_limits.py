"""What PostgreSQL can do at all: the bare claim with its ledger, each a trial in a process of its own; a JSON line.

python -m bench.postgres_limits ledger URL BATCH CONNECTIONS FUSED   claimed, recorded and closed per second
python -m bench.postgres_limits each URL / gathered URL              400 in flight that end one by one
python -m bench.postgres_limits due URL / now URL                    a loop that sleeps until the nearest due row

The smallest tables with the contract: a claim under a lease, one row for each slot, both closed. 100,000 schedules, one
in a hundred due; a closed one is due again at once, so that the share stays.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import asyncpg
import uvloop

SECONDS = 1.0
SCHEDULES = 100_000
FLIGHT = 400

# a table that was empty when a plan was made is otherwise read whole from then on, until it has been analysed
BY_INDEX = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}

TABLES = """
CREATE TABLE plan (
    id BIGINT PRIMARY KEY, status SMALLINT NOT NULL, due_at TIMESTAMPTZ NOT NULL, leased_until TIMESTAMPTZ,
    holder BIGINT, timeout INT NOT NULL, retries INT NOT NULL, backoff INT NOT NULL, runs BIGINT NOT NULL DEFAULT 0,
    rule TEXT NOT NULL, query TEXT NOT NULL
);
CREATE TABLE slot (
    plan_id BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL, state SMALLINT NOT NULL, began TIMESTAMPTZ NOT NULL,
    ended TIMESTAMPTZ, holder BIGINT, PRIMARY KEY (plan_id, at)
);
"""
FILL = """
INSERT INTO plan SELECT n, 1, CASE WHEN n % 100 = 0 THEN now() - interval '1 minute' ELSE now() + interval '30 days' END,
    NULL, NULL, 60, 2, 10, 0, '{"unit":"day","every":1,"at":"09:00"}', 'write the report'
FROM generate_series(1, $1::int) AS n
"""
TAKE = """
due AS (
    SELECT id FROM plan WHERE status = 1 AND due_at <= now() AND (leased_until IS NULL OR leased_until < now())
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE plan AS p SET leased_until = now() + make_interval(secs => p.timeout * (p.retries + 1) + p.backoff + 30),
        holder = $2
    FROM due WHERE p.id = due.id RETURNING p.id, p.due_at
),
kept AS (
    INSERT INTO slot (plan_id, at, state, began, holder) SELECT id, due_at, 1, now(), $2 FROM taken
    ON CONFLICT DO NOTHING RETURNING plan_id, at
)
SELECT plan_id, at FROM kept
"""
FREE = """
ended AS (
    UPDATE slot SET state = 2, ended = now() FROM unnest($3::bigint[], $4::timestamptz[]) AS e(id, at)
    WHERE slot.plan_id = e.id AND slot.at = e.at AND slot.state = 1
),
freed AS (
    UPDATE plan SET due_at = {again}, leased_until = NULL, holder = NULL, runs = runs + 1
    WHERE id = ANY($3::bigint[]) AND holder = $2
)
"""
AGAIN, NEVER = "clock_timestamp()", "'infinity'"
CLAIM = f"WITH {TAKE}"


def both(again: str) -> str:
    """Close the batch before and claim the next in one statement."""
    return f"WITH {FREE.format(again=again)}, {TAKE}"


def close(again: str) -> str:
    """Close a batch."""
    text = FREE.format(again=again).replace("$2", "$1").replace("$3", "$2").replace("$4", "$3")
    return f"WITH {text} SELECT 1"


async def tables(url: str, schedules: int = SCHEDULES) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(TABLES)
    if schedules:
        await connection.execute(FILL, schedules)
    await connection.execute("CREATE INDEX plan_due ON plan (status, due_at)")
    await connection.execute("VACUUM ANALYZE plan")
    await connection.close()


async def connect(url: str) -> Any:
    return await asyncpg.connect(url, server_settings=BY_INDEX)


async def loop_fused(connection: Any, who: int, batch: int, end: float) -> int:
    statement = await connection.prepare(both(AGAIN))
    done = 0
    held: list[asyncpg.Record] = []
    while time.perf_counter() < end:
        got = await statement.fetch(batch, who, [row[0] for row in held], [row[1] for row in held])
        done += len(held)
        held = got
        if not got:
            await asyncio.sleep(0)
    return done


async def loop_plain(connection: Any, who: int, batch: int, end: float) -> int:
    claim, closing = await connection.prepare(CLAIM), await connection.prepare(close(AGAIN))
    done = 0
    while time.perf_counter() < end:
        got = await claim.fetch(batch, who)
        if not got:
            await asyncio.sleep(0)
            continue
        await closing.fetch(who, [row[0] for row in got], [row[1] for row in got])
        done += len(got)
    return done


async def ledger(url: str, batch: str, connections: str, fused: str) -> dict[str, float]:
    await tables(url)
    opened = [await connect(url) for _ in range(int(connections))]
    loop = loop_fused if fused == "fused" else loop_plain
    began = time.perf_counter()
    counts = await asyncio.gather(
        *[loop(each, n, int(batch), began + SECONDS) for n, each in enumerate(opened, 1)]
    )
    took = time.perf_counter() - began
    for each in opened:
        await each.close()
    return {"per_second": sum(counts) / took}


async def flight(url: str, end_one: Callable[[int, Any], Awaitable[None]]) -> float:
    """Keep 400 runs in flight, each of which ends by itself within 20 ms; ended per second."""
    claiming = await connect(url)
    claim = await claiming.prepare(CLAIM)
    out, done = 0, 0

    async def one(row: asyncpg.Record) -> None:
        nonlocal out, done
        await asyncio.sleep(random.random() * 0.02)
        await end_one(row[0], row[1])
        out -= 1
        done += 1

    tasks: set[asyncio.Task[None]] = set()
    began = time.perf_counter()
    while time.perf_counter() - began < 1.5 * SECONDS:
        rows = await claim.fetch(min(100, FLIGHT - out), 1) if out < FLIGHT else []
        out += len(rows)
        for row in rows:
            task = asyncio.create_task(one(row))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if not rows:
            await asyncio.sleep(0.0005)
    rate = done / (time.perf_counter() - began)
    await asyncio.gather(*tasks)
    await claiming.close()
    return rate


async def each(url: str) -> dict[str, float]:
    """An UPDATE of its own for each ended run, over five connections."""
    await tables(url)
    async with asyncpg.create_pool(url, min_size=5, max_size=5, server_settings=BY_INDEX) as pool:
        text = close(AGAIN)

        async def end_one(number: int, at: Any) -> None:
            async with pool.acquire() as connection:
                await connection.fetch(text, 1, [number], [at])

        return {"per_second": await flight(url, end_one)}


async def gathered(url: str) -> dict[str, float]:
    """One flusher that sends what has gathered as soon as its connection is free."""
    await tables(url)
    connection = await connect(url)
    statement = await connection.prepare(close(AGAIN))
    waiting: list[tuple[int, Any, asyncio.Future[None]]] = []
    some = asyncio.Event()

    async def flush() -> None:
        while True:
            await some.wait()
            some.clear()
            batch, waiting[:] = waiting[:], []
            await statement.fetch(1, [entry[0] for entry in batch], [entry[1] for entry in batch])
            for entry in batch:
                entry[2].set_result(None)

    async def end_one(number: int, at: Any) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append((number, at, future))
        some.set()
        await future

    flusher = asyncio.create_task(flush())
    rate = await flight(url, end_one)
    flusher.cancel()
    await connection.close()
    return {"per_second": rate}


RATE, JOBS, LEAD = 100, 400, 6.0


def late(found: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Milliseconds from when each should have started to when it did: pairs of wanted and had, in seconds."""
    delays = sorted((had - wanted) * 1e3 for wanted, had in found)

    def at(share: float) -> float:
        return delays[min(len(delays) - 1, round(share * (len(delays) - 1)))]

    return {"n": len(delays), "p50": at(0.5), "p99": at(0.99), "most": delays[-1], "least": delays[0]}


async def paced(number: int, send: Callable[[int, float], Awaitable[object]]) -> None:
    """Call ``send`` 100 times a second, whatever the calls before it do."""
    began = time.time()  # noqa: TID251 - compared with what another process sees
    for n in range(number):
        wait = began + n / RATE - time.time()  # noqa: TID251 - likewise
        if wait > 0:
            await asyncio.sleep(wait)
        await send(n, time.time())  # noqa: TID251 - likewise


async def on_time(url: str, mode: str) -> dict[str, float]:
    """A durable loop: it sleeps until the nearest due row, or until it is notified."""
    await tables(url, 0)
    connection, listening, posting = [await connect(url) for _ in range(3)]
    wake = asyncio.Event()
    found: list[tuple[float, float]] = []
    sent: dict[int, float] = {}
    await listening.add_listener("due", lambda *_: wake.set())
    first = time.time() + LEAD  # noqa: TID251 - the rows carry the machine's time
    insert = "INSERT INTO plan VALUES ($1, 1, $2, NULL, NULL, 60, 2, 10, 0, '{}', 'q')"
    if mode == "due":
        await posting.executemany(insert, [(n, stamp(first + n / RATE)) for n in range(JOBS)])
    statement = await connection.prepare(both(NEVER))
    nearest = await connection.prepare(
        "SELECT min(due_at) FROM plan WHERE status = 1 AND leased_until IS NULL"
    )

    async def work() -> None:
        held: list[asyncpg.Record] = []
        while len(found) < JOBS:
            got = await statement.fetch(100, 1, [row[0] for row in held], [row[1] for row in held])
            now = time.time()  # noqa: TID251 - likewise
            found.extend((sent.get(row[0], row[1].timestamp()), now) for row in got)
            held = got
            if got:
                continue
            at = await nearest.fetchval()
            wait = 30.0 if at is None or at.year > 9000 else at.timestamp() - time.time()  # noqa: TID251 - likewise
            await wait_for(wake, wait)

    worker = asyncio.create_task(work())
    if mode == "now":
        await asyncio.sleep(1)

        async def send(n: int, at: float) -> None:
            sent[n] = at
            async with posting.transaction():
                await posting.execute(insert, n, stamp(at))
                await posting.execute("NOTIFY due")

        await paced(JOBS, send)
    await worker
    for each_one in (connection, listening, posting):
        await each_one.close()
    return late(found)


def stamp(at: float) -> Any:
    return datetime.fromtimestamp(at, UTC)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    event.clear()


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    trials: dict[str, Callable[..., Any]] = {"ledger": ledger, "each": each, "gathered": gathered,
                                             "due": lambda url: on_time(url, "due"),
                                             "now": lambda url: on_time(url, "now")}  # fmt: skip
    print(json.dumps(uvloop.run(trials[command](*arguments))))
