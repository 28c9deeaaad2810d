"""One trial of the product over PostgreSQL, in a process of its own; prints a JSON line.

python -m bench.postgres_trial work URL N BATCH CONCURRENCY    work until N due have run and are closed; BATCH 0: its own
python -m bench.postgres_trial claims URL TIMES                the claim's queries alone, 10 schedules and 10 runs
python -m bench.postgres_trial due URL / now URL               400 starts at 100 a second: ms late
python -m bench.postgres_trial post URL N                      run schedules by hand, 100 a second: when each was asked
python -m bench.postgres_trial idle URL SECONDS                the whole program, with nothing to do
python -m bench.postgres_trial create URL SECONDS loud|quiet   eight clients make schedules, others woken or not
"""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import time
from datetime import date
from typing import Any

import uvloop

from bench import noop
from bench.postgres_fill import connect, nth
from bench.postgres_limits import JOBS, LEAD, RATE, late, paced
from bench.trial import AGENT, engine_over
from gnomon import wiring
from gnomon.adapters.clock import SystemClock, SystemEntropy
from gnomon.adapters.interpreter import tune_interpreter
from gnomon.cadence import Compiled
from gnomon.services import slot_plan
from gnomon.services.mint import Mint
from gnomon.services.schedules import Schedules
from gnomon.services.signal import Signal
from gnomon.settings import Settings
from gnomon.stores import slots
from gnomon.stores.database import Tx
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.wiring.databases import open_link

PATIENCE = 90.0


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def work(url: str, number: str, batch: str, concurrency: str) -> dict[str, float]:
    """From the first call to the last close, with all claims but the first one in between."""
    database = PostgresDatabase(url, SystemClock())
    engine = engine_over(database, int(concurrency))
    if int(batch):
        engine.dispatcher._batch = int(batch)
    used, end = cpu(), time.perf_counter() + PATIENCE
    await engine.start()
    while sum(engine.closing.ended.values()) < int(number):
        assert time.perf_counter() < end, f"{engine.closing.ended} after {PATIENCE} s"
        await asyncio.sleep(0.002)
    seconds = time.perf_counter() - noop.FIRST[0]
    used = cpu() - used
    assert engine.closing.ended == {"succeeded": int(number)}, engine.closing.ended
    await engine.drain()
    await engine.stop()
    await database.close()
    return {"per_second": int(number) / seconds, "cpu_seconds": used}


async def claims(url: str, times: str) -> dict[str, float]:
    """The looks of both claims, as the transaction of a claim makes them; microseconds."""
    database = PostgresDatabase(url, SystemClock())

    async def look(tx: Tx) -> None:
        await slots.claim_due(tx, 10)
        await tx.tuples("runs.claimable", limit=10)

    for _ in range(20):
        await database.write_guarded(look)
    began = time.perf_counter()
    for _ in range(int(times)):
        await database.write_guarded(look)
    took = time.perf_counter() - began
    await database.close()
    return {"microseconds": took / int(times) * 1e6}


class _At:
    """A rule with one slot, at any microsecond: the product's own rules have whole seconds."""

    def __init__(self, at: int) -> None:
        self._at = at

    def next_after(self, micros: int) -> int | None:
        return self._at if micros < self._at else None

    def latest_at(self, micros: int) -> int | None:
        return self._at if micros >= self._at else None

    def count_between(self, start: int, end: int) -> None:
        assert not start <= self._at < end


async def due(url: str) -> dict[str, float]:
    """Schedules that are due one after the other; everything of the product between their instant and their target."""
    rules: dict[int, _At] = {}
    real = slot_plan._walk

    def walk(cadence: str, anchor_at: int, holidays: frozenset[date]) -> Compiled:
        rule = rules.get(anchor_at)
        return real(cadence, anchor_at, holidays) if rule is None else rule  # type: ignore[return-value]

    slot_plan._walk = walk  # type: ignore[assignment]
    first = int((time.time() + LEAD) * 1e6)  # noqa: TID251 - the slots lie on the machine's time
    connection = await connect(url)
    for n in range(JOBS):
        anchor, at = (n + 1) * 60_000_000, first + round(n / RATE * 1e6)
        rules[anchor] = _At(at)
        await connection.execute(
            "UPDATE schedules SET next_fire_at = $2, anchor_at = $3 WHERE id = $1", nth(n), at, anchor
        )
    await connection.close()
    async with running(url):
        await noted()
    return late([(wanted, had) for _, wanted, had in noop.NOTED])


async def now(url: str) -> dict[str, float]:
    """Another process starts runs by hand, over a connection of its own."""
    async with running(url):
        posting = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.postgres_trial", "post", url, str(JOBS), stdout=subprocess.PIPE
        )
        out, _ = await posting.communicate()
        asked = json.loads(out.splitlines()[-1])
        await noted()
    return late([(asked[run_id], had) for run_id, _, had in noop.NOTED])


async def noted() -> None:
    end = time.monotonic() + PATIENCE
    while len(noop.NOTED) < JOBS:
        assert time.monotonic() < end, f"{len(noop.NOTED)} calls after {PATIENCE} s"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(url: str, *, work: bool = True) -> Any:
    """The whole program but its sockets, with its stock settings; without ``work`` it answers requests alone."""
    center = await wiring.open_center(Settings(database_url=url), dispatch=work, work=work)
    await center.start()
    try:
        yield center
    finally:
        await center.drain()
        await center.stop()


async def post(url: str, number: str) -> dict[str, float]:
    asked: dict[str, float] = {}
    async with running(url, work=False) as center:
        await asyncio.sleep(0.5)

        async def send(n: int, at: float) -> None:
            run: Any = await center.services.run_now.run(nth(n), "bench")
            asked[run.id] = at

        await paced(int(number), send)
    return asked


async def idle(url: str, seconds: str) -> dict[str, float]:
    async with running(url):
        await asyncio.sleep(3)
        print("ready", flush=True)
        marking = await connect(url)
        await marking.execute("SELECT 'bench mark'")
        used = cpu()
        await asyncio.sleep(float(seconds))
        used = cpu() - used
        await marking.execute("SELECT 'bench mark'")
        await marking.close()
        return {"cpu_percent": used / float(seconds) * 100}


async def create(url: str, seconds: str, way: str) -> dict[str, float]:
    """Eight clients of one process; beside it an idle one, which is woken or not."""
    link = open_link(Settings(database_url=url), SystemClock())
    signal = link.signal if way == "loud" else Signal()
    service = Schedules(database=link.database, mint=Mint(SystemClock(), SystemEntropy()), signal=signal)
    given = {
        "name": "one of many",
        "target": {"kind": "agent", "id": AGENT},
        "cadence": {"unit": "day", "at": "09:00", "zone": "Europe/Berlin"},
        "query": "write the morning report",
    }
    made = 0

    async def client(end: float) -> None:
        nonlocal made
        while time.perf_counter() < end:
            await service.create(given, "bench")
            made += 1

    await client(time.perf_counter() + 0.3)
    made, began = 0, time.perf_counter()
    await asyncio.gather(*[client(began + float(seconds)) for _ in range(8)])
    rate = made / (time.perf_counter() - began)
    await link.close()
    return {"per_second": rate}


TRIALS = {
    "work": work,
    "claims": claims,
    "due": due,
    "now": now,
    "post": post,
    "idle": idle,
    "create": create,
}


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    tune_interpreter()  # as the program does
    print(json.dumps(uvloop.run(TRIALS[command](*arguments))))  # type: ignore[operator]
