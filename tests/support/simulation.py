"""A simulated world: several processes of the real code over one SQLite file, and a seed that does things to them.

First a storm of faults and of what people do; then everything is healed and lives on until all that was in flight has
ended; then every schedule is paused, and the history goes to the checks (``history_checks``). A calm seed has no
faults at all: there nothing may be lost, skipped for want of time, or refused.
"""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from gnomon.domain.errors import GnomonError
from gnomon.domain.schedule import Schedule
from gnomon.services.mint import Mint
from gnomon.services.schedules import Schedules
from gnomon.services.signal import Signal
from gnomon.stores import queries
from gnomon.stores.queries import Query
from gnomon.testing.clock import SeededEntropy
from support import simulation_deeds as deeds
from support.databases import START, a_file
from support.history import History
from support.house import an_agent
from support.simulation_database import TRIGGERS, SimDatabase
from support.simulation_loop import VirtualClock, VirtualLoop
from support.simulation_process import Machine, SimProcess
from support.simulation_schedules import drawn
from support.simulation_target import CALM, STORMY, SimTarget

TABLES = ("schedules", "occurrences", "runs", "sessions", "attempts", "audit_entries", "status_changes")
BEGIN = START + timedelta(seconds=17)  # no slot's instant, and inside a minute


@dataclass(frozen=True, slots=True)
class Script:
    """What one simulation is made of."""

    storm_seconds: float = 3_600.0
    calm_share: float = 0.15
    jumps: bool = True
    tilt: str = ""  # a fault that is drawn more often
    plans: tuple[str, ...] = STORMY
    on_lost: tuple[str, ...] = ("fail", "resume")


def simulate(
    seed: int, folder: Path, script: Script | None = None, changed: Mapping[str, Query] | None = None
) -> History:
    """Run the world of one seed; ``changed`` queries replace the product's own."""
    return lived(
        lambda: World(seed, folder, script or Script(), dict(queries.load("sqlite")) | dict(changed or {}))
    )


def lived(birth: "Callable[[], World]") -> History:
    """Run a world to its end, and hand out its history with what the product logged."""
    before = structlog.get_config()
    log: list[dict[str, Any]] = []
    structlog.configure(processors=[partial(_capture, log)], cache_logger_on_first_use=False)
    world = birth()
    try:
        world.loop.run(world.live())
    finally:
        structlog.configure(**before)
        for process in world.born:
            process.database.shut()
        world.office.shut()
    history = world.history
    history.log = log
    history.crashes += [str(error.get("exception") or error["message"]) for error in world.loop.errors]
    return history


def _capture(log: list[dict[str, Any]], _: Any, level: str, entry: MutableMapping[str, Any]) -> str:
    if entry.get("exc_info"):
        entry["exception"] = sys.exc_info()[1]
    log.append({**entry, "level": level})
    raise structlog.DropEvent


class World:
    """The driver of one simulation."""

    tables: tuple[str, ...] = TABLES
    people: tuple[Callable[[Any, Any], None], ...] = deeds.PEOPLE

    def __init__(self, seed: int, folder: Path, script: Script, named: Mapping[str, Query]) -> None:
        self.rng = random.Random(seed)
        self.script = script
        self.loop = VirtualLoop(self.rng)  # type: ignore[abstract]  # sockets and signals: there are none
        self.clock = VirtualClock(self.loop, BEGIN)
        self.history = self.begun()
        self.history.calm = self.rng.random() < script.calm_share
        self.intensity = self.rng.choice((0.1, 0.25, 0.5, 0.9))
        self.target = SimTarget(self.loop, self.rng, self.history, script.plans)
        path = a_file(folder, f"sim-{seed}.db")
        self.machine = Machine(self.loop, self.clock, self.rng, path, self.history, self.target, named)
        # the office makes the schedules and looks at the end; nothing ever goes wrong there
        self.office = SimDatabase(path, self.clock, named, self.rng, "office", self.history.journal)
        self.born: list[SimProcess] = []
        self.places: list[SimProcess | None] = []
        self.schedules: list[Schedule] = []
        self.chores: set[asyncio.Task[Any]] = set()

    @staticmethod
    def begun() -> History:
        """An empty history."""
        return History()

    async def live(self) -> None:
        """The whole of it."""
        await self._furnish()
        if self.history.calm:
            self.target.plans = CALM
        for _ in range(self.rng.randrange(2, 5)):
            self.places.append(self._birth())
        await self._storm()
        await self._settle()
        await self._look()

    async def _furnish(self) -> None:
        await an_agent(self.office)
        self.office.connection.script(TRIGGERS)
        mint = Mint(self.clock, SeededEntropy(self.rng.getrandbits(40)))
        made = Schedules(database=self.office, mint=mint, signal=Signal())
        count = self.rng.choice((5, 8, 12, 20))
        for written in drawn(self.rng, count, BEGIN, on_lost=self.script.on_lost):
            schedule = await made.create(written, "ana")
            assert isinstance(schedule, Schedule)
            self.schedules.append(schedule)

    def _birth(self) -> SimProcess:
        process = SimProcess(self.machine)
        self.born.append(process)
        return process

    async def _storm(self) -> None:
        until = self.loop.time() + self.script.storm_seconds
        while self.loop.time() < until:
            await asyncio.sleep(self.rng.choice((0.0, 0.02, 1.0, 10.0, 25.0, 60.0, 90.0)))
            for index, process in enumerate(self.places):
                if (process is None or not process.alive) and self.rng.random() < 0.3:
                    self.places[index] = self._birth()
            if self.rng.random() < self.intensity:
                self._act()
            self._keep_promises()

    def _act(self) -> None:
        living = [process for process in self.places if process is not None and process.alive]
        if not living:
            return
        process = self.rng.choice(living)
        able = list(self.people) * 2
        if not self.history.calm:
            able += deeds.FAULTS
            if self.script.tilt:
                able += [deed for deed in deeds.FAULTS if deed.__name__ == self.script.tilt] * 6
        if not self.script.jumps:
            able = [deed for deed in able if deed is not deeds.jump]
        self.rng.choice(able)(self, process)

    def _keep_promises(self) -> None:
        """Targets that took work with a 202 complete it: some in time, some long after."""
        living = [p for p in self.places if p is not None and p.alive and "freeze" not in p.standing]
        for promise in [p for p in self.target.promises if p.at <= self.loop.time()]:
            if living:
                self.target.promises.remove(promise)
                process = self.rng.choice(living)
                self.ask(process, partial(deeds.complete, process, promise))

    def later(self, seconds: float, deed: Callable[[], None]) -> None:
        """Do something after a while."""

        async def wait() -> None:
            await asyncio.sleep(seconds)
            deed()

        task = self.loop.create_task(wait(), context=self.loop.world.context.copy())
        self.chores.add(task)
        task.add_done_callback(self.chores.discard)

    def ask(self, process: SimProcess, asking: Callable[[], Awaitable[Any]]) -> None:
        async def ask() -> None:
            try:
                await asking()
            except GnomonError as error:
                self.history.seen[f"person got {error.code}"] += 1
            else:
                self.history.seen["person got an answer"] += 1

        process.do(ask())

    async def _settle(self) -> None:
        """Heal, and let everything come to its end."""
        self.target.plans = ("quick",)
        for index, process in enumerate(self.places):
            if process is None or not process.alive:
                self.places[index] = self._birth()
            else:
                process.heal()
        self.history.fault("healed", "", self.loop.time(), self.loop.time())
        await self._calm(400.0)
        for schedule in self.schedules:
            door = self.places[0]
            assert door is not None
            self.ask(door, partial(door.person.pausing.pause, schedule.id, "ana"))
        await self._calm(4_500.0)  # the longest lease, the calm after a jump, two sweeps

    async def _calm(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        while self.loop.time() < until:
            await asyncio.sleep(20.0)
            self._keep_promises()
            for index, process in enumerate(self.places):
                if process is None or not process.alive:
                    self.places[index] = self._birth()
            if self.loop.time() > until - seconds + 100 and self._is_over():
                return

    def _is_over(self) -> bool:
        rows = self.office.connection.rows
        return not rows("SELECT 1 FROM runs WHERE finished_at IS NULL LIMIT 1") and not rows(
            "SELECT 1 FROM schedules WHERE status = 'active' LIMIT 1"
        )

    async def _look(self) -> None:
        self.history.latest_wall = self.clock.latest
        self.history.ended_wall = self.clock.micros()
        raw = self.office.connection._raw
        for table in self.tables:
            cursor = raw.execute(f"SELECT * FROM {table}")
            rows = cursor.fetchall()
            names = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
            self.history.tables[table] = [dict(zip(names, row, strict=True)) for row in rows]
