"""A simulated world of the board and of pushed jobs: servers of the real code over one file, and instances of two roles.

As ``simulation``: first a storm, in which both kinds of process come, go, stand still and answer late or twice; then
everything is healed, the jobs are switched off, and it lives on until nothing is in flight.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.domain.instants import to_micros
from gnomon.domain.job import Job
from gnomon.services.jobs import Jobs
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from gnomon.stores import queries
from gnomon.stores.queries import Query
from gnomon.testing.clock import SeededEntropy
from support import simulation_board_deeds as deeds
from support import simulation_holder, simulation_worker
from support.history import History
from support.simulation import Script, World, lived
from support.simulation_board_history import BoardHistory
from support.simulation_board_rows import TRIGGERS
from support.simulation_server import CALLER, LOCK_SECONDS, SimServer
from support.simulation_worker import SimWorker

ROLES = ("pm", "qa")
MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class BoardScript(Script):
    """What one of these simulations is made of; ``plans`` are of triggers, ``board_plans`` of tasks."""

    storm_seconds: float = 1_800.0
    plans: tuple[str, ...] = simulation_worker.STORMY
    board_plans: tuple[str, ...] = simulation_holder.STORMY


def simulate(
    seed: int, folder: Path, script: BoardScript | None = None, changed: Mapping[str, Query] | None = None
) -> BoardHistory:
    """Run the world of one seed; ``changed`` queries replace the product's own."""
    named = dict(queries.load("sqlite")) | dict(changed or {})
    history = lived(lambda: BoardWorld(seed, folder, script or BoardScript(), named))
    assert isinstance(history, BoardHistory)
    return history


class BoardWorld(World):
    """The driver of one of these simulations."""

    tables = ("tasks", "task_locks", "task_prerequisites", "jobs", "triggers", "instances", "audit_entries")
    people = deeds.PEOPLE

    def __init__(self, seed: int, folder: Path, script: BoardScript, named: Mapping[str, Query]) -> None:
        super().__init__(seed, folder, script, named)
        self.plans, self.board_plans = script.plans, script.board_plans
        self.births = 0
        self.crew: list[SimWorker] = []
        self.tasks: list[str] = []
        self.jobs: list[Job] = []

    @staticmethod
    def begun() -> History:
        return BoardHistory()

    @property
    def board(self) -> BoardHistory:
        """The history, as what it is."""
        assert isinstance(self.history, BoardHistory)
        return self.history

    def a_server(self) -> SimServer | None:
        """Any server whose process is there, even where it stands still."""
        there = [each for each in self.places if isinstance(each, SimServer) and each.alive]
        return self.rng.choice(there) if there else None

    async def _furnish(self) -> None:
        self.office.connection.script(TRIGGERS)
        mint = Mint(self.clock, SeededEntropy(self.rng.getrandbits(40)))
        made = Jobs(self.office, mint, Signal())
        for number in range(self.rng.choice((2, 3, 5))):
            every = self.rng.choice((5, 5, 7, 10))
            job = await made.create(CALLER, self._job(number, every))
            assert isinstance(job, Job)
            self.jobs.append(job)
            if number:  # the first is switched off and on
                self.board.jobs[job.id] = (to_micros(job.anchor_at), every * MINUTE_US)
        self._board = Tasks(
            self.office,
            self.clock,
            mint,
            Signal(),
            lock_seconds=LOCK_SECONDS,
            heartbeat_timeout_seconds=120.0,
        )
        self._jobs = made
        for _ in range(self.rng.choice((5, 15, 30))):
            await self.add_task()
        if not self.history.calm:
            self.machine.lossy = self.rng.choice((0.0, 0.02, 0.1))
        else:
            self.plans, self.board_plans = simulation_worker.CALM, simulation_holder.CALM
        for number in range(self.rng.choice((1, 2, 4, 6))):
            self.crew.append(SimWorker(self, f"w{number}", ROLES[number % len(ROLES)]))

    def _job(self, number: int, every: int) -> dict[str, Any]:
        written: dict[str, Any] = {
            "slug": f"job-{number}",
            "role": self.rng.choice(ROLES),
            "cadence": {"unit": "minute", "every": every},
            "dedup_key": "{{job}}-{{now}}",
            "payload": {"n": number},
        }
        if self.rng.random() < 0.4:
            written["grace_seconds"] = self.rng.choice((30, 120, 900))
        return written

    async def add_task(self) -> None:
        """One more task, which may need others."""
        count = min(len(self.tasks), self.rng.choice((0, 0, 1, 2)))
        given = {
            "role": self.rng.choice(ROLES),
            "title": f"task {len(self.tasks)}",
            "priority": self.rng.choice((0, 0, 5)),
            "prerequisites": self.rng.sample(self.tasks, count),
        }
        made = await self._board.create(CALLER, given)
        assert isinstance(made, MadeTask)
        self.tasks.append(made.task.id)

    def _birth(self) -> SimServer:
        process = SimServer(self.machine)
        self.born.append(process)
        return process

    def retire(self, name: str) -> None:
        """An instance is ended for good, whichever incarnation it is, and another begins in its place."""
        for index, worker in enumerate(self.crew):
            if worker.name == name:
                worker.kill()
                self.crew[index] = SimWorker(self, f"r{self.births}", worker.role)

    def _act(self) -> None:
        super()._act()
        if not self.history.calm and self.rng.random() < 0.5:
            self.rng.choice(deeds.TO_WORKERS)(self, self.rng.choice(self.crew))

    def _keep_promises(self) -> None:
        """An instance that was killed comes back, sooner or later; the board gets new tasks."""
        for index, worker in enumerate(self.crew):
            if not worker.alive and self.rng.random() < 0.3:
                self.crew[index] = SimWorker(self, worker.name, worker.role)
        if self.rng.random() < 0.3 and len(self.tasks) < 60 and not self.is_settling:
            self.chores.add(self.loop.create_task(self.add_task(), context=self.loop.world.context.copy()))

    is_settling = False

    async def _settle(self) -> None:
        """Heal, switch the jobs off, and let everything come to its end."""
        self.is_settling = True
        self.plans, self.board_plans = ("works",), ("quick",)
        self.machine.lossy = 0.0
        for index, process in enumerate(self.places):
            if process is None or not process.alive:
                self.places[index] = self._birth()
            else:
                process.heal()
        for worker in self.crew:
            worker.lane.parked = False
            if worker.wire is not None:  # each says once more what it works on; what it forgot was lost
                worker.wire.break_off()
        for role in ROLES:  # somebody for each
            if role not in {worker.role for worker in self.crew}:
                self.crew.append(SimWorker(self, f"w{len(self.crew)}", role))
        self.history.fault("healed", "", self.loop.time(), self.loop.time())
        await self._calm(700.0)
        for job in self.jobs:
            await self._jobs.edit(CALLER, job.id, {"enabled": False})
        self.board.stopped_jobs_at = self.clock.micros()
        await self._calm(6_000.0)  # what was acknowledged and not spoken of, an hour; then the tasks

    def _is_over(self) -> bool:
        if not self.board.stopped_jobs_at:
            return False
        rows = self.office.connection.rows
        return not rows("SELECT 1 FROM triggers WHERE finished_at IS NULL LIMIT 1") and not rows(
            "SELECT 1 FROM tasks WHERE status IN ('backlog', 'in_progress') LIMIT 1"
        )
