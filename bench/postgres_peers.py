"""The peers over PostgreSQL (Celery over Redis), each a trial in a process of its own; prints a JSON line.

python -m bench.postgres_peers PEER WHERE N [BATCH]    N no-op jobs, all queued before the worker starts: per second
python -m bench.postgres_peers PEER WHERE 0            400 jobs, 100 a second, queued before their time: ms late

WHERE is the address of an empty database, for Celery the port of a Redis. A rate counts from the first job's start until
the peer's own store holds none that is unfinished.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.postgres_limits import JOBS, LEAD, RATE, late

PATIENCE = 90.0


class Calls:
    """The instants at which the jobs of this process were called, each with the instant it was due."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def __call__(self, due: float = 0.0) -> None:
        self.seen.append((due, time.time()))  # noqa: TID251 - the peers go by the machine's time


CALLS = Calls()


def hit(due: float = 0.0) -> None:
    """A job that its peer finds by name."""
    CALLS(due)


async def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"{len(CALLS.seen)} calls after {PATIENCE} s")
        await asyncio.sleep(0.005)


def dues() -> list[float]:
    first = time.time() + LEAD  # noqa: TID251 - the peers go by the machine's time
    return [first + n / RATE for n in range(JOBS)]


def rated() -> dict[str, float]:
    seconds = time.time() - min(had for _, had in CALLS.seen)  # noqa: TID251 - likewise
    return {"per_second": len(CALLS.seen) / seconds}


async def pgqueuer(url: str, number: int, batch: int) -> dict[str, float]:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    await queries.install()
    worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    async def noop(job: Any) -> None:
        CALLS(float(job.payload or 0))

    worker.entrypoint("noop")(noop)

    if number:
        for start in range(0, number, 1000):
            some = min(1000, number - start)
            await queries.enqueue(["noop"] * some, [None] * some, [0] * some)
        await worker.run(mode=QueueExecutionMode.drain, batch_size=batch)
        return rated()
    for due in dues():
        wait = timedelta(seconds=due - time.time())  # noqa: TID251 - the peer takes a distance
        await queries.enqueue("noop", str(due).encode(), execute_after=wait)
    task = asyncio.create_task(worker.run(batch_size=batch))
    await until(lambda: task.done() or len(CALLS.seen) >= JOBS)
    if task.done():
        task.result()
    task.cancel()
    return late(CALLS.seen)


async def procrastinate(url: str, number: int, batch: int) -> dict[str, float]:
    import procrastinate as peer

    app = peer.App(connector=peer.PsycopgConnector(conninfo=url))

    async def call() -> None:
        CALLS()

    noop = app.task(name="noop")(call)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await noop.batch_defer_async(*[{} for _ in range(number)])
        await app.run_worker_async(wait=False, concurrency=batch, install_signal_handlers=False)
        return rated()


async def dbos(url: str, number: int, _batch: int) -> dict[str, float]:
    import asyncpg
    from dbos import DBOS, DBOSClient

    DBOS(
        config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"}
    )

    def noop() -> None:
        CALLS()

    DBOS.workflow()(noop)

    DBOS.launch()
    client = DBOSClient(system_database_url=url)
    for _ in range(number):
        client.enqueue({"workflow_name": noop.__qualname__, "queue_name": "q"})
    connection = await asyncpg.connect(url)
    await DBOS.register_queue_async("q")  # its worker starts here
    left = "SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'"
    while await connection.fetchval(left):  # noqa: ASYNC110 - another library works off a queue
        await asyncio.sleep(0.02)
    return rated()


async def apscheduler(url: str, number: int, batch: int) -> dict[str, float]:
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler

    import bench.postgres_peers as importable  # noqa: PLW0406 - it stores the name of the job, and this is __main__

    importable.CALLS = CALLS
    store = SQLAlchemyJobStore(url=url.replace("postgresql:", "postgresql+psycopg:"))
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(batch)},
        timezone=UTC,
        job_defaults={"misfire_grace_time": None},
    )
    scheduler.start(paused=True)
    due = datetime.now(UTC) - timedelta(seconds=5)  # noqa: TID251 - the peer's clock is the machine's
    for _ in range(number):
        scheduler.add_job(importable.hit, "date", run_date=due)
    scheduler.resume()
    await until(lambda: len(CALLS.seen) >= number and not scheduler.get_jobs())
    answer = rated()
    scheduler.shutdown()
    return answer


def celery_app(port: str, file: str) -> Any:
    from celery import Celery

    app = Celery("bench", broker=f"redis://127.0.0.1:{port}/0")
    app.conf.update(
        task_ignore_result=True, broker_connection_retry_on_startup=True, worker_hijack_root_logger=False
    )

    def note() -> None:
        opened = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(opened, f"{time.time():.6f}\n".encode())  # noqa: TID251 - the worker's processes have no other clock in common
        os.close(opened)

    return app, app.task(name="noop")(note)


async def celery(port: str, number: int, batch: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls"
        app, noop = celery_app(port, str(file))
        app.control.purge()
        with app.connection_for_write() as connection:
            for _ in range(number):
                noop.apply_async(connection=connection)
        start = f"from bench.postgres_peers import celery_app; celery_app({port!r}, {str(file)!r})[0].worker_main("
        words = ["worker", "-l", "ERROR", "-P", "prefork", "--without-gossip", "--without-mingle", "-c"]
        program = f"{start}{[*words, str(batch)]!r})"
        quiet = subprocess.DEVNULL
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=quiet, stderr=quiet
        )
        try:
            await until(lambda: file.exists() and file.stat().st_size >= 18 * number)
        finally:
            worker.terminate()
            await worker.wait()
        return {"per_second": of_file(file)}


def of_file(file: Path) -> float:
    times = sorted(float(line) for line in file.read_text().split())
    return len(times) / (times[-1] - times[0])


PEERS: dict[str, Callable[[str, int, int], Awaitable[dict[str, float]]]] = {
    "pgqueuer": pgqueuer,
    "procrastinate": procrastinate,
    "dbos": dbos,
    "apscheduler": apscheduler,
    "celery": celery,
}


async def trial(peer: str, where: str, number: str, batch: str = "10") -> None:
    print(json.dumps(await PEERS[peer](where, int(number), int(batch))), flush=True)
    os._exit(0)  # some leave threads and tasks behind that never end


if __name__ == "__main__":
    try:
        asyncio.run(trial(*sys.argv[1:]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
