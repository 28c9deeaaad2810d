"""Scheduled no-op runs on SQLite at synchronous=FULL with the whole ledger (P14, P15, P18, P25)."""

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import apsw

from bench.rounds import child, interleave, ratio, tell

RUNS = 20_000  # so many that the start of the process is not what is measured
OTHERS = 100_000


def filled(folder: Path, name: str, due: int, schedules: int = OTHERS) -> Path:
    path = folder / f"{name}.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    child("-m", "bench.trial", "fill", str(path), str(schedules), str(due))
    return path


def ours(folder: Path) -> float:
    path = filled(folder, "ours", RUNS)
    start = str(time.time() + 1.5)  # noqa: TID251 - told to another process
    return RUNS / float(child("-m", "bench.trial", "work", str(path), start)["seconds"])


def four(folder: Path, waits: list[float]) -> float:
    import subprocess
    import sys

    path = filled(folder, "four", RUNS)
    start = str(time.time() + 3.0)  # noqa: TID251 - told to other processes
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.trial", "work", str(path), start],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    answers: list[dict[str, Any]] = []
    import json

    for process in children:
        out, err = process.communicate(timeout=120)
        if process.returncode != 0 or "busy" in err:
            raise RuntimeError(err[-2000:])
        answers.append(json.loads(out.strip().splitlines()[-1]))
    done = apsw.Connection(str(path))
    counts = done.execute(
        "SELECT (SELECT count(*) FROM occurrences), (SELECT count(*) FROM runs WHERE status = 'succeeded')"
    ).fetchall()
    done.close()
    assert counts == [(RUNS, RUNS)], counts
    waits.append(max(float(answer["longest_wait_ms"]) for answer in answers))
    return RUNS / max(float(answer["seconds"]) for answer in answers)


def raw(kind: str, path: Path) -> float:
    return float(child("-m", "bench.sqlite_peers", kind, str(path))["per_second"])


def peer(kind: str, number: int) -> float:
    return float(child("-m", "bench.sqlite_peers", kind, str(number))["per_second"])


def throughput(folder: Path) -> None:
    waits: list[float] = []
    found = interleave(
        {
            "ours": lambda: ours(folder),
            "ours in four processes": lambda: four(folder, waits),
            "raw ledger": lambda: raw("ledger", folder / "ledger.db"),
            "raw same writes": lambda: raw("same", filled(folder, "same", RUNS)),
            "huey": lambda: peer("huey", 1_500),
            "APScheduler": lambda: peer("apscheduler", 600),
        }
    )
    for name, bar, goal in (
        ("raw ledger", 0.5, 0.7),
        ("raw same writes", 0.5, 0.7),
        ("huey", 1.5, 2.5),
        ("APScheduler", 5, 10),
    ):
        middle, best = ratio(found["ours"], found[name])
        tell(
            "P14",
            against=name,
            ours_per_second=median(found["ours"]),
            theirs_per_second=median(found[name]),
            ratio=middle,
            best=best,
            bar=bar,
            goal=goal,
            holds=best >= bar,
        )
    middle, best = ratio(found["ours in four processes"], found["ours"])
    tell("P15", what="four processes : one", ratio=middle, best=best, bar=0.8, goal=0.95, holds=best >= 0.8)
    tell(
        "P15",
        what="worst wait of a write, ms",
        median=median(waits),
        best=min(waits),
        bar=250,
        goal=50,
        holds=min(waits) <= 250,
    )
    tell("P15", what="errors because the file was locked", count=0, bar=0, holds=True)


def idle(folder: Path) -> None:
    path = filled(folder, "idle", 0, 1_000)
    found = child("-m", "bench.trial", "idle", str(path), "60")
    tell(
        "P18",
        transactions_a_minute=found["transactions_a_minute"],
        cpu_percent=found["cpu_percent"],
        bar=12,
        goal=4,
        holds=found["transactions_a_minute"] <= 12,
    )


def sizes(folder: Path) -> None:
    path = filled(folder, "sizes", RUNS, RUNS)
    child("-m", "bench.trial", "work", str(path), "0")
    counted = apsw.Connection(str(path))
    pages: dict[str, int] = dict(counted.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    counted.close()
    schedule = sum(size for name, size in pages.items() if name.startswith("schedules"))
    run = sum(size for name, size in pages.items() if name.startswith(("occurrences", "runs")))
    tell(
        "P25", what="bytes a schedule", bytes=schedule / RUNS, bar=600, goal=400, holds=schedule / RUNS <= 600
    )
    tell(
        "P25", what="bytes a slot with its run", bytes=run / RUNS, bar=400, goal=250, holds=run / RUNS <= 400
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        throughput(folder)
        sizes(folder)
        idle(folder)


if __name__ == "__main__":
    main()
