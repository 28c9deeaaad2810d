"""Real processes over one database, and a seed that breaks them: at failpoints, by signals, from outside.

A world starts processes, writes schedules through the HTTP of one of them, lets a scenario do its worst, heals, waits
until everything has ended, and stops what still lives. ``chaos_history`` then judges what is left behind.
"""

import os
import random
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from gnomon.adapters.clock import SystemClock
from support.chaos_stores import Store, read_journal
from support.chaos_target import PLANS, RECORDER
from support.processes import until
from support.product import Running
from support.programs import SOURCE, TESTS

HEARTBEAT_TIMEOUT, SWEEP = 2.0, 0.3
QUICK = {
    "GNOMON_TICK_SECONDS": "0.5",
    "GNOMON_SWEEP_SECONDS": str(SWEEP),
    "GNOMON_HEARTBEAT_SECONDS": "0.3",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": str(HEARTBEAT_TIMEOUT),
    "GNOMON_CONCURRENCY": "6",
    "GNOMON_SHUTDOWN_GRACE_SECONDS": "5",
    "GNOMON_LOG_FORMAT": "json",
}
PAST_THE_TIMEOUT = HEARTBEAT_TIMEOUT + SWEEP + 1.2
SETTLED_SECONDS = 60.0
LATER_SECONDS = 2.0
KOLKATA = timedelta(hours=5, minutes=30)  # its offset never changes


@dataclass
class Deed:
    """Something that was done to a process (``pid`` 0: to all of them), from when to when, in seconds of the world."""

    kind: str
    pid: int
    begin: float
    end: float | None = None


@dataclass
class World:
    """One database, its processes, and what was done to them."""

    store: Store
    folder: Path
    rng: random.Random
    program: tuple[str, ...] = ("-m", "gnomon")
    living: list[Running] = field(default_factory=list)
    dead: list[Running] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    last_slot: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.base, self.base_wall = self.clock.monotonic(), self.clock.now().timestamp()
        (self.folder / "recorder.py").write_text(RECORDER)
        self.store.prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self.living:
            each.process.send_signal(signal.SIGCONT)  # unless it has ended
            each.end()
        self.store.close()

    def now(self) -> float:
        """Seconds since the world began, on the clock that nobody sets."""
        return self.clock.monotonic() - self.base

    def start(self, *failpoints: str, **env: str) -> list[Running]:
        """As many processes as there are texts, at once; each with the failpoints of its text."""
        url = env.pop("url", self.store.url)
        made = [
            Running(
                ("up", "--port", "0", "--json"),
                self.folder,
                {
                    **QUICK,
                    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": str(self.heartbeat_timeout),
                    "PYTHONPATH": f"{SOURCE}{os.pathsep}{TESTS}",
                    "GNOMON_DATABASE_URL": url,
                    "GNOMON_FAILPOINTS": text,
                    **env,
                },
                self.program,
            )
            for text in failpoints
        ]
        self.living += made
        for each in made:
            each.wait_for_start()
        return made

    def furnish(
        self, count: int = 10, slots: int = 3, every: float = 1.5, ahead: float = 1.6, **fixed: Any
    ) -> None:
        """An agent and ``count`` schedules, whose slots begin ``ahead`` from now; through a process that has a key.

        However slow the machine is, so many are there before their first slot. Others, that came too late for theirs,
        stay beside them.
        """
        door = next(each for each in self.living if each.started.get("key"))
        agent = {"slug": "ear", "runtime": {"kind": "python", "path": "recorder:hear"}}
        status, answer = door.ask("/v1/agents", method="POST", body=agent)
        assert status == 201, answer
        wanted = [self._definition(answer["id"]) | fixed for _ in range(count)]
        while True:
            first = (self.clock.now() + timedelta(seconds=ahead)).replace(microsecond=0)
            moments = [first + timedelta(seconds=every * number) for number in range(slots)]
            self.last_slot = moments[-1]
            if self._write(door, wanted, moments):
                return
            ahead += LATER_SECONDS

    def _write(self, door: Running, wanted: list[dict[str, Any]], moments: list[datetime]) -> bool:
        """Make the schedules in one transaction; whether all of them were there before the first of their moments."""
        cadence = {
            "unit": "day",
            "every": 1,
            "zone": "Asia/Kolkata",
            "at": sorted({f"{moment + KOLKATA:%H:%M:%S}" for moment in moments}),
        }
        named = [
            {"name": f"schedule {len(self.schedules) + number}", **each} for number, each in enumerate(wanted)
        ]
        document = {"schedules": [each | {"cadence": cadence} for each in named]}
        status, answer = door.ask("/v1/apply", method="POST", body=document)
        assert status == 200, answer
        made = {each["id"] for each in answer["items"]}
        self.schedules += sorted(made)
        first = round(moments[0].timestamp() * 1_000_000)
        journal = read_journal(self.store)
        return made <= {each["subject"] for each in journal if each["new"].get("next_fire_at") == first}

    def _definition(self, agent: str) -> dict[str, Any]:
        plan = self.rng.choice(PLANS)
        return {
            "target": {"kind": "agent", "id": agent},
            "query": plan,
            "overlap": self.rng.choice(("skip", "skip", "queue_one", "cancel_running", "allow")),
            "on_lost": self.rng.choice(("fail", "resume")),
            "timeout_seconds": 1 if plan == "hang" else 20,
            "retry": {"max_attempts": self.rng.choice((1, 2)), "backoff_seconds": 1},
            "failure_limit": 100,
            "misfire_grace_seconds": 300,
        }

    def put(self, kind: str, pid: int, seconds: float | None = 0.0) -> Deed:
        """Note a deed; ``None`` seconds: it goes on."""
        made = Deed(kind, pid, self.now(), None if seconds is None else self.now() + seconds)
        self.deeds.append(made)
        return made

    def kill(self, process: Running) -> None:
        """SIGKILL."""
        self.put("kill", process.process.pid, None)
        process.process.kill()
        self.bury(process)

    def bury(self, process: Running) -> None:
        """It is dead, by whatever hand."""
        process.end()
        self.living.remove(process)
        self.dead.append(process)

    def freeze(self, process: Running) -> Deed:
        """SIGSTOP; ``thaw`` ends it."""
        process.process.send_signal(signal.SIGSTOP)
        return self.put("freeze", process.process.pid, None)

    def thaw(self, process: Running, deed: Deed) -> None:
        """SIGCONT."""
        deed.end = self.now()
        process.process.send_signal(signal.SIGCONT)

    def dies(self, process: Running, seconds: float = 20.0) -> None:
        """Wait until a failpoint has killed it."""
        until(lambda: process.process.poll() is not None, "it died at its failpoint", seconds)
        assert process.process.returncode == -signal.SIGKILL, "".join(process.err)
        self.bury(process)

    def stands_still(self, process: Running, seconds: float = 20.0) -> Deed:
        """Wait until a failpoint has stopped it."""
        until(lambda: state(process) == "T", "it stood still at its failpoint", seconds)
        return self.put("freeze", process.process.pid, None)

    def pause(self, seconds: float) -> None:
        """Let real processes live for a while."""
        end = self.clock.monotonic() + seconds
        until(lambda: self.clock.monotonic() >= end, "time passes", seconds + 5)

    def settle(self, seconds: float = SETTLED_SECONDS) -> None:
        """Wait until every slot has its record and no run is left."""
        until(self._is_over, "everything ended", seconds)

    def _is_over(self) -> bool:
        if self.clock.now() <= self.last_slot + timedelta(seconds=0.5):
            return False
        micros = round(self.last_slot.timestamp() * 1_000_000)
        return not self.store.query(
            "SELECT id FROM runs WHERE finished_at IS NULL LIMIT 1"
        ) and not self.store.query(
            f"SELECT id FROM schedules WHERE status = 'active' AND next_fire_at <= {micros} LIMIT 1"
        )

    def stop(self) -> None:
        """SIGTERM to whoever lives: each must end in order."""
        for process in self.living:
            process.process.send_signal(signal.SIGTERM)
        for process in list(self.living):
            assert process.wait() == 0, "".join(process.err[-30:])
            self.bury(process)


def program_of(request: pytest.FixtureRequest, engine: str) -> tuple[str, ...]:
    """The program, with the bug that ``--plant`` names."""
    bug = request.config.getoption("--plant")
    return ("-m", "gnomon") if bug is None else ("-m", "support.chaos_planted", engine, bug)


def drawn_from(request: pytest.FixtureRequest) -> random.Random:
    """What a test draws from: its own name and the seed of the run, so that any of them repeats alone."""
    return random.Random(f"{request.config.getoption('--seed')} {request.node.name}")


def state(process: Running) -> str:
    """The kernel's letter for what a process does."""
    return Path(f"/proc/{process.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
