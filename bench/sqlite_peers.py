"""The raw limits and the peers on SQLite, each a trial in a process of its own; prints a JSON line.

python -m bench.sqlite_peers ledger FILE       claim 100, insert their slots, finish them: what SQLite can do
python -m bench.sqlite_peers same FILE         the raw loop with the very writes that the product makes
python -m bench.sqlite_peers huey N            huey on SQLite, no-op tasks
python -m bench.sqlite_peers apscheduler N     APScheduler with its SQLite job store, no-op jobs
"""

import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import apsw

from gnomon.domain.ids import Kind, make_id

BATCH = 100
SECONDS = 1.0


def open_full(path: str) -> apsw.Connection:
    raw = apsw.Connection(path)
    raw.set_busy_timeout(30_000)
    raw.execute("PRAGMA journal_mode=WAL")
    raw.execute("PRAGMA synchronous=FULL")
    return raw


def ledger(path: str) -> float:
    """Claim due rows and write their slots in one transaction, finish both in another."""
    raw = open_full(path)
    raw.execute(
        """CREATE TABLE IF NOT EXISTS schedule (id INTEGER PRIMARY KEY, status INT NOT NULL, next_run REAL NOT NULL,
        locked_until REAL, locked_by INT, timeout_s INT NOT NULL, runs INT NOT NULL DEFAULT 0, spec TEXT, query TEXT);
        CREATE TABLE IF NOT EXISTS occurrence (schedule_id INT NOT NULL, nominal REAL NOT NULL, state INT NOT NULL,
        started REAL, finished REAL, run_by INT, PRIMARY KEY (schedule_id, nominal)) WITHOUT ROWID;"""
    )
    now = time.monotonic()
    if raw.execute("SELECT count(*) FROM schedule").get == 0:
        raw.execute("BEGIN")
        raw.executemany(
            "INSERT INTO schedule VALUES (?, 1, ?, NULL, NULL, 300, 0, ?, ?)",
            (
                (
                    i,
                    now - 60 if i % 100 == 0 else now + 1e9,
                    '{"unit":"day","at":"09:00"}',
                    "write the report",
                )
                for i in range(100_000)
            ),
        )
        raw.execute("CREATE INDEX schedule_due ON schedule (status, next_run)")
        raw.execute("COMMIT")
    raw.execute(
        "UPDATE schedule SET locked_until = NULL, next_run = ? WHERE next_run < ?", (now - 60, now + 1e8)
    )
    raw.execute("DELETE FROM occurrence")
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        now = time.monotonic()
        raw.execute("BEGIN IMMEDIATE")
        got = raw.execute(
            """UPDATE schedule SET locked_until = ?1 + timeout_s + 30, locked_by = 1 WHERE id IN (
            SELECT id FROM schedule WHERE status = 1 AND next_run <= ?1 AND (locked_until IS NULL OR locked_until < ?1)
            ORDER BY next_run LIMIT 100) RETURNING id, next_run""",
            (now,),
        ).fetchall()
        raw.executemany(
            "INSERT INTO occurrence VALUES (?, ?, 1, ?, NULL, 1) ON CONFLICT DO NOTHING",
            [(row[0], row[1], now) for row in got],
        )
        raw.execute("COMMIT")
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(
            "UPDATE occurrence SET state = 2, finished = ? WHERE schedule_id = ? AND nominal = ?",
            [(now, row[0], row[1]) for row in got],
        )
        raw.execute(
            """UPDATE schedule SET next_run = ?, locked_until = NULL, locked_by = NULL, runs = runs + 1
            WHERE id IN (SELECT value FROM json_each(?)) AND locked_by = 1""",
            (now, json.dumps([row[0] for row in got])),
        )
        raw.execute("COMMIT")
        done += len(got)
    return done / (time.perf_counter() - began)


def same(path: str) -> float:
    """The writes of the product over its own schema, with nothing computed and nothing invoked in between."""
    raw = open_full(path)
    raw.create_scalar_function("now_us", lambda *_: time.time_ns() // 1000, 0, deterministic=True)
    done, began = 0, time.perf_counter()
    while True:
        raw.execute("BEGIN IMMEDIATE")
        got = raw.execute(
            "SELECT id, next_fire_at FROM schedules WHERE status = 'active' AND next_fire_at <= now_us() "
            "ORDER BY next_fire_at LIMIT 100"
        ).fetchall()
        if not got:
            raw.execute("COMMIT")
            return done / (time.perf_counter() - began)
        ids = [make_id(Kind.RUN, done + n, n) for n in range(len(got))]
        both = [(s, slot, run, "ses_" + run[4:]) for (s, slot), run in zip(got, ids, strict=True)]
        raw.executemany(
            "INSERT INTO occurrences VALUES (?, ?, 1, 'fired', NULL, NULL, NULL, NULL, ?, ?, NULL, now_us())",
            both,
        )
        raw.executemany(
            "INSERT INTO runs (id, trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, "
            "nominal_fire_at, session_id, scheduled_for, lease_seconds, lease_until, owner, claim_id, fence, attempt, "
            "started_at, query) VALUES (?3, 'schedule', 'running', 10, 'agent', 'agt_00000000000000000000', ?1, 1, ?2, NULL, "
            "?2, 330, now_us() + 330000000, 'prc_00000000000000000000', 'clm_00000000000000000000', 1, 1, now_us(), "
            "'write the morning report')",
            [row[:3] for row in both],
        )
        raw.executemany(
            "UPDATE schedules SET next_fire_at = next_fire_at + 86400000000, recorded_until = ?2, last_fire_at = ?2, "
            "run_count = run_count + 1, in_flight_run_id = ?3, fence = fence + 1 WHERE id = ?1 AND ?4 IS NOT NULL",
            both,
        )
        audit(raw, "CLAIM", both)
        raw.execute("COMMIT")
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(
            "UPDATE runs SET status = 'succeeded', finished_at = now_us(), duration_us = 100, lease_until = NULL, "
            "claim_id = NULL, output = '' WHERE id = ? AND status = 'running'",
            [(run,) for run in ids],
        )
        audit(raw, "RELEASE", both)
        raw.execute("COMMIT")
        done += len(got)


def audit(raw: apsw.Connection, action: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """One row for what happened to many at once, whose number is that of its last entry."""
    entries = [(row[2], 1, {"nominal_fire_at": 1764403200000000, "schedule_id": row[0]}) for row in rows]
    told = json.dumps(entries, separators=(",", ":"))
    raw.execute(
        "INSERT INTO audit (seq, at, actor, action, subject_kind, subject_id, how_many, entries) VALUES "
        "((SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit') + ?2, now_us(), "
        "'prc_00000000000000000000', ?1, 'run', '', ?2, ?3)",
        (action, len(rows), told if len(rows) > 1 else None),
    )


class Count:
    """Counts calls; the first and the last instant."""

    def __init__(self, most: int) -> None:
        self.most, self.calls = most, 0
        self.first = self.last = 0.0
        self.all = threading.Event()
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.calls += 1
            self.last = time.perf_counter()
            self.first = self.first or self.last
            if self.calls == self.most:
                self.all.set()


COUNT = Count(0)  # replaced by the one of the trial


def hit() -> None:
    COUNT()


def huey(number: int) -> float:
    import huey as peer

    logging.getLogger("huey").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        queue = peer.SqliteHuey("bench", filename=f"{folder}/huey.db")
        task = queue.task()(hit)
        for _ in range(number):
            task()
        consumer = queue.create_consumer(workers=1, worker_type="thread")
        consumer.start()
        COUNT.all.wait(60)
        consumer.stop()
    return COUNT.calls / (COUNT.last - COUNT.first)


def apscheduler(number: int) -> float:
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler

    with tempfile.TemporaryDirectory() as folder:
        scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{folder}/jobs.db")},
            executors={"default": ThreadPoolExecutor(10)},
            timezone=UTC,
            job_defaults={"misfire_grace_time": None},
        )
        scheduler.start(paused=True)
        due = datetime.now(UTC)  # noqa: TID251 - the peer's clock is the machine's
        for _ in range(number):
            scheduler.add_job(hit, "date", run_date=due)
        scheduler.resume()
        COUNT.all.wait(60)
        scheduler.shutdown()
    return COUNT.calls / (COUNT.last - COUNT.first)


if __name__ == "__main__":
    # APScheduler stores a reference to the callable, so that it must be importable by name
    import bench.sqlite_peers as importable  # noqa: PLW0406 - this file runs as __main__

    kind, argument = sys.argv[1:3]
    if kind in ("ledger", "same"):
        rate = {"ledger": ledger, "same": same}[kind](argument)
    else:
        importable.COUNT = Count(int(argument))
        rate = {"huey": importable.huey, "apscheduler": importable.apscheduler}[kind](int(argument))
    print(json.dumps({"per_second": rate}))
