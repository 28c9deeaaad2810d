"""Pushing to a thousand connected instances, beside the bare ``websockets`` server in the same rounds (P22, P23).

Server and instances are processes of their own. Told are: how fast a broadcast reaches all, as a ratio; what a frame of
it costs the server in CPU time, which a busy machine changes less; how long a frame is under way at a thousand a second;
and what a connection costs in memory.
"""

import json
import subprocess
import sys
from statistics import median
from typing import Any

from bench.rounds import ROUNDS, ratio, tell

COUNT = 1_000
BROADCASTS = 50
PACED_SECONDS = 5
CONTENDERS = ("raw", "gnomon")


class Process:
    """A part of one trial."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def said(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a part of the bench ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, *words: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.said()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def trial(kind: str) -> dict[str, float]:
    """One server, a thousand instances."""
    server = Process("bench.instances_server", kind)
    try:
        port = server.said()["port"]
        before = server.ask("memory")["memory"]
        peers = Process(
            "bench.instances_peers", str(port), str(COUNT), str(BROADCASTS), str(PACED_SECONDS * 1_000)
        )
        try:
            peers.said()
            after = server.ask("memory")["memory"]
            cpu = server.ask("broadcast", BROADCASTS)["cpu"]
            seconds = peers.said()["seconds"]
            server.ask("pace", PACED_SECONDS)
            late = peers.said()
            if late["lost"]:
                raise RuntimeError(f"{late['lost']} connections were lost")
        finally:
            peers.process.kill()
            peers.process.wait()
    finally:
        server.end()
    return {
        "rate": COUNT * BROADCASTS / seconds,
        "cpu": cpu / COUNT / BROADCASTS * 1e6,
        "p50": late["p50"],
        "p99": late["p99"],
        "most": late["most"],
        "kib": (after - before) / COUNT / 1024,
    }


def main() -> None:
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in CONTENDERS}
    for number in range(ROUNDS):
        for kind in CONTENDERS:
            found[kind].append(trial(kind))
            print(f"  round {number + 1}: {kind}: {found[kind][-1]}", file=sys.stderr)

    def of(kind: str, name: str) -> list[float]:
        return [each[name] for each in found[kind]]

    middle, best = ratio(of("gnomon", "rate"), of("raw", "rate"))
    tell("P22", what="broadcast to 1,000, frames a second", raw=median(of("raw", "rate")),
         gnomon=median(of("gnomon", "rate")), ratio=middle, best=best, bar=0.6, holds=best >= 0.6)  # fmt: skip
    tell("P22", what="broadcast, the server's CPU microseconds a frame", raw=median(of("raw", "cpu")),
         gnomon=median(of("gnomon", "cpu")), ratio=ratio(of("raw", "cpu"), of("gnomon", "cpu"))[0])  # fmt: skip
    tell("P22", what="1,000 a second, sent to received, ms", raw_p99=median(of("raw", "p99")),
         p50=median(of("gnomon", "p50")), p99=median(of("gnomon", "p99")), best_p99=min(of("gnomon", "p99")),
         most=median(of("gnomon", "most")), bar=5, holds=min(of("gnomon", "p99")) <= 5)  # fmt: skip
    tell("P23", what="memory of a connected instance, KiB", raw=median(of("raw", "kib")),
         gnomon=median(of("gnomon", "kib")), bar=64, holds=min(of("gnomon", "kib")) <= 64)  # fmt: skip


if __name__ == "__main__":
    main()
