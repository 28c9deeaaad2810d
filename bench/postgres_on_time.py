"""Due to start, asked to start, and what waking others costs those who write (P16, P17, P21)."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from bench.postgres_fill import fill
from bench.postgres_place import Place
from bench.rounds import ROUNDS, child, interleave, ratio, tell

Late = Mapping[str, float]


def rounds(contenders: Mapping[str, Callable[[], Late]]) -> dict[str, list[Late]]:
    """Each in turn, three rounds: they take twelve seconds apiece."""
    found: dict[str, list[Late]] = {name: [] for name in contenders}
    for number in range(min(ROUNDS, 3)):
        for name, contender in contenders.items():
            late = contender()
            found[name].append(late)
            print(f"  round {number + 1}: {name}: {late['p50']:.1f} {late['p99']:.1f} ms", file=sys.stderr)
    return found


def of(found: list[Late], part: str) -> float:
    return median(late[part] for late in found)


def ours(place: Place, mode: str) -> Late:
    url = place.fresh("ours")
    fill(url, 1_000, "note")
    found: Late = child("-m", "bench.postgres_trial", mode, url)
    assert found["n"] == 400, found
    return found


def raw(place: Place, mode: str) -> Late:
    found: Late = child("-m", "bench.postgres_limits", mode, place.fresh("limit"))
    return found


def due(place: Place) -> None:
    found = rounds(
        {
            "ours": lambda: ours(place, "due"),
            "raw durable loop": lambda: raw(place, "due"),
            "PgQueuer": lambda: child("-m", "bench.postgres_peers", "pgqueuer", place.fresh("peer"), "0"),
        }
    )
    best = min(late["p99"] for late in found["ours"])
    least = min(late["least"] for late in found["ours"])
    tell("P16", what="due to start at 100 a second, ms", p50=of(found["ours"], "p50"), p99=of(found["ours"], "p99"),
         best=best, bar=25, goal=8, holds=best <= 25)  # fmt: skip
    tell("P16", what="the earliest, ms after it was due", least=least, bar=0, holds=least >= 0)
    for name, bar, goal in (("PgQueuer", 0.25, None), ("raw durable loop", None, 1.5)):
        ratios = [mine["p99"] / other["p99"] for mine, other in zip(found["ours"], found[name], strict=True)]
        told: dict[str, Any] = {} if bar is None else {"bar": bar, "holds": min(ratios) <= bar}
        tell("P16", what="due to start, p99", against=name, theirs_p50=of(found[name], "p50"),
             theirs_p99=of(found[name], "p99"), ratio=median(ratios), best=min(ratios), goal=goal, **told)  # fmt: skip


def now(place: Place) -> None:
    found = rounds({"ours": lambda: ours(place, "now"), "raw durable loop": lambda: raw(place, "now")})
    best = min(late["p99"] for late in found["ours"])
    tell("P17", what="asked by another process to start, ms", p50=of(found["ours"], "p50"),
         p99=of(found["ours"], "p99"), best=best, raw_p50=of(found["raw durable loop"], "p50"),
         raw_p99=of(found["raw durable loop"], "p99"), bar=15, goal=5, holds=best <= 15)  # fmt: skip


def woken(place: Place) -> None:
    """Eight clients make schedules beside an idle process: with what wakes it, and without."""

    def create(way: str) -> float:
        url = place.fresh("made")
        fill(url, 1_000)
        beside = subprocess.Popen(
            [sys.executable, "-m", "bench.postgres_trial", "idle", url, "30"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert beside.stdout is not None
            assert beside.stdout.readline() == "ready\n"
            return float(child("-m", "bench.postgres_trial", "create", url, "2", way)["per_second"])
        finally:
            beside.terminate()
            beside.wait(30)

    found = interleave({"with a wakeup": lambda: create("loud"), "without": lambda: create("quiet")})
    middle, best = ratio(found["with a wakeup"], found["without"])
    tell("P21", what="schedules made by 8 clients, with a wakeup to without", per_second=median(found["with a wakeup"]),
         without=median(found["without"]), ratio=middle, best=best, bar=0.7, goal=0.9, holds=best >= 0.7)  # fmt: skip


def main(place: Place) -> None:
    due(place)
    now(place)
    woken(place)
