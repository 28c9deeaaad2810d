"""Instances of the board that are killed and frozen, servers that are killed, and the judge of what is left behind."""

import json
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from support import board_instance
from support.chaos_world import World
from support.processes import until

LOCK_SECONDS = 3.0
TIMEOUT_SECONDS = 4.0
BOARD = {
    "GNOMON_TASK_LOCK_SECONDS": str(LOCK_SECONDS),
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
    "GNOMON_SWEEP_SECONDS": "0.5",
}


@dataclass
class Crowd:
    """The instances of one role over a world's servers."""

    world: World
    key: str
    living: list[subprocess.Popen[bytes]] = field(default_factory=list)
    made: int = 0
    done_to: Counter[str] = field(default_factory=Counter)

    @property
    def said(self) -> Path:
        """What all of them wrote down."""
        return self.world.folder / "said.jsonl"

    def tell(self) -> None:
        """Where the servers are now."""
        file = self.world.folder / "addresses.json"
        fresh = file.with_suffix(".fresh")
        fresh.write_text(json.dumps([each.started["address"] for each in self.world.living]))
        fresh.replace(file)

    def start(self) -> None:
        """One more instance."""
        self.made += 1
        words = [str(self.world.folder / "addresses.json"), self.key, f"pm-{self.made}", str(self.said)]
        self.living.append(subprocess.Popen([sys.executable, board_instance.__file__, *words]))

    def hurt(self) -> None:
        """Kill one and start another, freeze one past its window, or kill a server and start another."""
        what = self.world.rng.choice(("kill", "kill", "freeze", "freeze", "server"))
        self.done_to[what] += 1
        if what == "server":
            victim = self.world.rng.choice(self.world.living)
            self.world.kill(victim)
            self.world.start("", **BOARD)
            self.tell()
            return
        instance = self.world.rng.choice(self.living)
        if what == "kill":
            instance.kill()
            instance.wait()
            self.living.remove(instance)
            self.start()
            return
        instance.send_signal(signal.SIGSTOP)
        self.world.pause(LOCK_SECONDS + 1.5)
        instance.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """No instance is left."""
        for instance in self.living:
            instance.send_signal(signal.SIGCONT)
            instance.kill()
            instance.wait()
        self.living.clear()

    def lines(self) -> list[dict[str, Any]]:
        """What they said, in the order of the writing."""
        return [json.loads(line) for line in self.said.read_text().splitlines()]


def done(world: World) -> int:
    """How many tasks are done."""
    [row] = world.store.query("SELECT count(*) AS n FROM tasks WHERE status = 'done'")
    return int(row["n"])


def wait_for(world: World, count: int, seconds: float) -> None:
    """Until so many tasks are done."""
    until(lambda: done(world) >= count, f"{count} tasks are done", seconds)


def faults(world: World, crowd: Crowd) -> Iterator[str]:
    """Everything that is wrong with what is left behind, in sentences (B1, B2, B4 to B6 of the invariants)."""
    entries = world.store.query(
        "SELECT seq, action, subject_id, fence, detail FROM audit_entries WHERE subject_kind = 'task' ORDER BY seq"
    )
    claims: dict[tuple[str, int], int] = {}
    ends: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    done_at: dict[str, int] = {}
    for entry in entries:
        key = (entry["subject_id"], entry["fence"])
        if entry["action"] == "CLAIM":
            if key in claims:
                yield f"{key} was claimed twice"
            claims[key] = entry["seq"]
        elif entry["action"] in {"RELEASE", "EXPIRE"}:
            ends[key].append(entry["action"])
            if entry["action"] == "RELEASE" and json.loads(entry["detail"])["status"] == "done":
                done_at[entry["subject_id"]] = entry["seq"]
    yield from (f"{key} ended {ends[key]}" for key in claims if len(ends[key]) != 1)
    yield from (f"{key} ended and was never claimed" for key in ends if key not in claims)
    for need in world.store.query("SELECT task_id, prerequisite_id FROM task_prerequisites"):
        first = min(seq for (task, _), seq in claims.items() if task == need["task_id"])
        if first < done_at[need["prerequisite_id"]]:
            yield f"{need['task_id']} was claimed before {need['prerequisite_id']} was done"
    yield from _believed(crowd, claims, ends)
    yield from _overlaps(crowd)


def _believed(
    crowd: Crowd, claims: dict[tuple[str, int], int], ends: dict[tuple[str, int], list[str]]
) -> Iterator[str]:
    """What was answered is there: each claim, and each report that was taken is the end of its own claim."""
    for line in crowd.lines():
        key = (line["task"], line["fence"])
        if line["kind"] == "claimed" and key not in claims:
            yield f"{key} was granted, and is not in the audit"
        if line["kind"] == "reported" and line["status"] == 200 and ends[key] != ["RELEASE"]:
            yield f"the report of {key} was taken, and it ended {ends[key]}"
        if line["kind"] == "reported" and line["status"] not in {200, 409}:
            yield f"the report of {key} was answered with {line['status']}"


def _overlaps(crowd: Crowd) -> Iterator[str]:
    """From the answer of a claim to its report, or to its end if nothing was sent, no other instance has the task."""
    held: dict[tuple[str, int], list[Any]] = {}
    for line in crowd.lines():
        key = (line["task"], line["fence"])
        if line["kind"] == "claimed":
            ends = datetime.fromisoformat(line["ends"]).timestamp()
            held[key] = [line["at"], ends, line["name"]]
        elif line["kind"] == "reports":
            held[key][1] = min(held[key][1], line["at"])
    by_task: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for (task, _), span in held.items():
        by_task[task].append(span)
    for task, spans in by_task.items():
        spans.sort()
        for one, other in pairwise(spans):
            if other[0] < one[1]:
                yield f"{task} was held by {one[2]} until {one[1]} and by {other[2]} from {other[0]}"
