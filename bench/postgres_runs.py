"""Scheduled no-op runs on PostgreSQL with the whole ledger, beside raw limits and peers (P6, P7, P8, P11, P13)."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.postgres_fill import arm, fill
from bench.postgres_place import Place, redis
from bench.rounds import ROUNDS, Contender, child, interleave, ratio, tell

RUNS = 10_000
CONCURRENCY = (
    1_000  # the most that the setting takes: a full runner would send half of them through the queue
)
STOCK = 0
SCHEDULES = 100_000
BATCHES = ("100", "200", "500")  # PgQueuer's best is one of these
MANY, FEW = 1_000_000, 10_000


class Bar(NamedTuple):
    """What a ratio must be at least, and should be; ``None`` where nothing was agreed."""

    bar: float | None
    goal: float | None


def rate(*arguments: str) -> float:
    return float(child("-m", *arguments)["per_second"])


def ours(
    place: Place, runs: int = RUNS, batch: int = STOCK, concurrency: int = CONCURRENCY, target: str = "noop"
) -> float:
    """The product over 100,000 schedules, of which ``runs`` are due; its batch is its own affair, unless it is said."""
    url = place.fresh("ours")
    fill(url, SCHEDULES, target)
    arm(url, SCHEDULES, runs, 0)
    return rate("bench.postgres_trial", "work", url, str(runs), str(batch), str(concurrency))


def ledger(place: Place, batch: int, connections: int, way: str = "fused") -> float:
    return rate("bench.postgres_limits", "ledger", place.fresh("limit"), str(batch), str(connections), way)


def same(place: Place, way: str, runs: int = RUNS) -> float:
    url = place.fresh("same")
    fill(url, SCHEDULES)
    arm(url, SCHEDULES, runs, 0)
    return rate("bench.postgres_same", way, url)


def peer(place: Place, name: str, number: int, batch: str) -> float:
    return rate("bench.postgres_peers", name, place.fresh("peer"), str(number), batch)


def compare(figure: str, found: Mapping[str, list[float]], mine: str, bars: Mapping[str, Bar]) -> None:
    """Tell ours beside each of the others."""
    for name, (bar, goal) in bars.items():
        middle, best = ratio(found[mine], found[name])
        tell(
            figure,
            what=mine,
            against=name,
            ours_per_second=median(found[mine]),
            theirs_per_second=median(found[name]),
            ratio=middle,
            best=best,
            bar=bar,
            goal=goal,
            **({} if bar is None else {"holds": best >= bar}),
        )


def throughput(place: Place, folder: Path) -> None:
    with redis(folder) as port:
        contenders: dict[str, Contender] = {
            "ours": lambda: ours(place),
            "raw: bare ledger, fused, two connections": lambda: ledger(place, 100, 2),
            "raw: bare ledger, plain": lambda: ledger(place, 100, 1, "plain"),
            "raw: the same writes": lambda: same(place, "sets"),
            "raw: the same writes, one statement": lambda: same(place, "whole"),
            **{f"PgQueuer, batch {n}": lambda n=n: peer(place, "pgqueuer", 6_000, n) for n in BATCHES},  # type: ignore[misc]
            "PgQueuer": lambda: peer(place, "pgqueuer", 2_000, "10"),
            "Procrastinate, 10 at once": lambda: peer(place, "procrastinate", 600, "10"),
            "DBOS": lambda: peer(place, "dbos", 400, "0"),
            "APScheduler": lambda: peer(place, "apscheduler", 500, "10"),
        }
        if port is not None:
            contenders["Celery with Redis"] = lambda: rate(
                "bench.postgres_peers", "celery", str(port), "2000", "2"
            )
        found = interleave(contenders)
    best = max((f"PgQueuer, batch {n}" for n in BATCHES), key=lambda name: median(found[name]))
    limits = {name: Bar(0.5, 0.7) for name in found if name.startswith("raw: ") and "plain" not in name}
    compare("P6", found, "ours", {**limits, best: Bar(1.0, 1.5)})
    peers = {"PgQueuer": Bar(3, 4), "Procrastinate, 10 at once": Bar(20, 30)}
    peers |= {name: Bar(10, 15) for name in ("DBOS", "APScheduler", "Celery with Redis") if name in found}
    compare("P7", found, "ours", peers)
    if "Celery with Redis" not in found:
        tell("P7", what="Celery with Redis was left out: no redis-server on this machine")


def alone(place: Place) -> None:
    found = interleave(
        {
            "one at a time": lambda: ours(place, 500, 1, 1),
            "batches of one, a hundred at a time": lambda: ours(place, 500, 1, 100),
            "raw: bare ledger, fused, batch 1": lambda: ledger(place, 1, 1),
        }
    )
    for mine in list(found)[:2]:
        compare("P8", found, mine, {"raw: bare ledger, fused, batch 1": Bar(0.7, 0.9)})


def endings(place: Place) -> None:
    found = interleave(
        {
            "400 in flight": lambda: ours(place, RUNS, STOCK, 400, "brief"),
            "raw: an UPDATE each": lambda: rate("bench.postgres_limits", "each", place.fresh("limit")),
            "raw: gathered": lambda: rate("bench.postgres_limits", "gathered", place.fresh("limit")),
            "raw: our writes, a transaction each": lambda: same(place, "close", 3_000),
        }
    )
    bars = {
        "raw: an UPDATE each": Bar(4, None),
        "raw: gathered": Bar(None, 0.8),
        "raw: our writes, a transaction each": Bar(None, None),
    }
    compare("P11", found, "400 in flight", bars)


def sizes(place: Place) -> None:
    urls = {number: place.fresh(f"of{number}") for number in (MANY, FEW)}
    for number, url in urls.items():
        fill(url, number)
    turns = dict.fromkeys(urls, 0)

    def turn(number: int) -> float:
        arm(urls[number], number, 1_000, turns[number])
        turns[number] += 1
        return rate("bench.postgres_trial", "work", urls[number], "1000", "10", "200")

    found = interleave({"a million": lambda: turn(MANY), "ten thousand": lambda: turn(FEW)}, min(ROUNDS, 10))
    compare("P13", found, "a million", {"ten thousand": Bar(0.7, 0.85)})


def main(place: Place, folder: Path) -> None:
    throughput(place, folder)
    alone(place)
    endings(place)
    sizes(place)
