"""One simulated process: a whole engine of the real code in lanes of its own, born, frozen, killed by the world."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.domain.errors import Unavailable
from gnomon.services.engine import Engine, Pace
from gnomon.services.gates import Gates
from gnomon.services.mint import Mint
from gnomon.services.pausing import Pausing
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.signal import Signal
from gnomon.stores.queries import Query
from gnomon.testing.clock import SeededEntropy
from support.history import Fault, History
from support.simulation_database import Faults, SimDatabase
from support.simulation_loop import VirtualClock, VirtualLoop
from support.simulation_target import SimTarget

PACE = Pace(concurrency=6, kill_grace_seconds=5.0)
LOOK_SECONDS = 2.0


@dataclass
class Machine:
    """What every process of one simulation shares."""

    loop: VirtualLoop
    clock: VirtualClock
    rng: random.Random
    path: Path
    history: History
    target: SimTarget
    queries: Mapping[str, Query]
    births: int = 0
    lossy: float = 0.0  # the share of answers to calls from elsewhere that are lost


@dataclass
class Person:
    """The services that a person reaches through one process."""

    pausing: Pausing
    run_now: RunNow
    runs: Runs
    schedules: Schedules


class SimProcess:
    """An incarnation. ``name`` is the simulation's; the product's own id is drawn at its birth (RUN-5a)."""

    def __init__(self, machine: Machine) -> None:
        machine.births += 1
        self.machine = machine
        self.name = f"p{machine.births}"
        self.lane = machine.loop.lane(self.name)
        self.beat_lane = machine.loop.lane(self.name + "/beat", self.lane)
        self.faults = Faults(hit=self._note_hit)
        self.database = SimDatabase(
            machine.path,
            machine.clock,
            machine.queries,
            machine.rng,
            self.name,
            machine.history.journal,
            self.faults,
        )
        self.signal = Signal()
        self.mint = Mint(machine.clock, SeededEntropy(machine.rng.getrandbits(40)))
        runtime = machine.target.seen_by(self.name, machine.clock.micros)
        self.engine: Engine = self.lane.context.run(self._build, runtime)
        self.alive = True
        self.standing: dict[str, Fault] = {}
        machine.history.births[self.name] = machine.loop.time()
        self.tasks: list[asyncio.Task[Any]] = []
        self.do(self._live())

    def _build(self, runtime: Any) -> Engine:
        engine = Engine(
            database=self.database,
            clock=self.machine.clock,
            mint=self.mint,
            signal=self.signal,
            runtimes=runtime,
            process_id=self.mint.process(),
            version="sim",
            kill_group=lambda _: None,
            pace=PACE,
        )
        engine.renewal.start = self._start_beating  # type: ignore[method-assign]
        engine.renewal.stop = self._stop_beating  # type: ignore[method-assign]
        return engine

    @property
    def person(self) -> Person:
        """What a person can do through this process."""
        return Person(
            Pausing(database=self.database, signal=self.signal),
            RunNow(database=self.database, mint=self.mint, signal=self.signal, gates=Gates()),
            Runs(database=self.database, signal=self.signal, closing=self.engine.closing),
            Schedules(database=self.database, mint=self.mint, signal=self.signal),
        )

    def do(self, coroutine: Any) -> "asyncio.Task[Any]":
        """Run a coroutine in this process."""
        task = self.machine.loop.create_task(coroutine, context=self.lane.context.copy())
        self.tasks.append(task)
        return task

    async def _live(self) -> None:
        try:
            await self.engine.start()
        except Unavailable:  # a supervisor starts it again, under a new identity
            self.kill()

    def _start_beating(self) -> None:
        self.engine.renewal._beat_at = self.machine.loop.time()
        task = self.machine.loop.create_task(self._beat(), context=self.beat_lane.context.copy())
        self.tasks.append(task)

    async def _stop_beating(self) -> None:
        self.beat_lane.parked = True

    async def _beat(self) -> None:
        direct = self.database.direct()
        while True:
            try:
                self.engine.renewal.tick(direct)
                if direct.changed_elsewhere():
                    self.engine._changed_elsewhere()
            except Exception as error:
                self.machine.history.crashes.append(f"renewal: {type(error).__name__}: {error}")
            await asyncio.sleep(LOOK_SECONDS)

    def _note_hit(self, kind: str) -> None:
        history, now = self.machine.history, self.machine.loop.time()
        if kind == "lost_answer":
            history.fault("lost_answer", self.name, now, now)
        history.seen[kind] += 1

    def kill(self) -> None:
        """SIGKILL: nothing of it runs ever again."""
        if not self.alive:
            return
        self.alive = False
        for kind in list(self.standing):
            self.lift(kind)
        for lane in (self.lane, self.beat_lane):
            self.machine.loop.kill(lane)
        self.machine.target.stopped_with(self.name)
        self.machine.history.fault("kill", self.name, self.machine.loop.time())

    def freeze(self) -> None:
        """SIGSTOP."""
        self.put("freeze")
        self.lane.parked = self.beat_lane.parked = True

    def block(self) -> None:
        """A target blocks the event loop; the heartbeat's thread goes on."""
        self.put("block")
        self.lane.parked = True

    def cut_off(self) -> None:
        """The database can't be reached."""
        self.put("outage")
        self.faults.down = True

    def put(self, kind: str) -> None:
        """A fault begins."""
        if kind not in self.standing:
            self.standing[kind] = self.machine.history.fault(kind, self.name, self.machine.loop.time())

    def lift(self, kind: str) -> None:
        """A fault ends."""
        fault = self.standing.pop(kind, None)
        if fault is not None:
            fault.end = self.machine.loop.time()
        self.faults.down = "outage" in self.standing
        self.lane.parked = bool({"freeze", "block"} & self.standing.keys())
        self.wake_beat()

    def wake_beat(self) -> None:
        """The heartbeat's thread goes on, unless the whole process stands still."""
        self.beat_lane.parked = "freeze" in self.standing

    def heal(self) -> None:
        """Whatever is wrong with it is over."""
        for kind in list(self.standing):
            self.lift(kind)
        self.faults.lose_answer_in = None
