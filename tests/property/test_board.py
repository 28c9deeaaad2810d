"""The board against a model that shares no code with it: random tasks, needs, claims, reports, silences (BRD).

A model of a page holds what everybody may do at each step; the board must do exactly that, on a real file.
"""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.breach import Breach
from gnomon.domain.caller import system
from gnomon.domain.errors import Conflict, FenceStale, Invalid
from gnomon.domain.filters import TaskFilter
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.task_writing import MadeTask
from gnomon.services.tasks import Tasks
from gnomon.services.verify import Verify
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.databases import START, open_database

ANA = system("ana")
ROLES = ("pm", "dev")
WINDOW = 120
REPORTS = ("done", "done", "done", "backlog", "blocked", "in_review", "cancelled")


@dataclass
class Held:
    instance: str
    ends: float


@dataclass
class Model:
    """A task as it should be."""

    role: str
    priority: int
    needs: set[str]
    status: str = "backlog"
    fence: int = 0
    half: bool = False
    held: Held | None = None


@dataclass
class Story:
    """One random life of a board, step by step beside its model."""

    rng: Random
    tasks: Tasks
    sweep: TaskSweep
    clock: FrozenClock
    now: float = 0.0
    models: dict[str, Model] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)
    past: list[tuple[str, int, str]] = field(default_factory=list)

    def claimable(self, role: str) -> list[str]:
        found = [
            name
            for name, each in self.models.items()
            if each.role == role
            and each.status == "backlog"
            and all(self.models[need].status == "done" for need in each.needs)
        ]
        return sorted(found, key=lambda name: (-self.models[name].priority, name))

    def any_task(self) -> str | None:
        return self.rng.choice(sorted(self.models)) if self.models else None

    def graph(self, instead: tuple[str, set[str]] | None = None) -> "nx.DiGraph[str]":
        needs = {name: each.needs for name, each in self.models.items()} | dict([instead] if instead else [])
        return nx.DiGraph([(name, need) for name, found in needs.items() for need in found])

    async def create(self) -> None:
        self.pass_by(0.01)
        needs = set(
            self.rng.sample(sorted(self.models), min(len(self.models), self.rng.choice((0, 0, 1, 2))))
        )
        role, priority = self.rng.choice(ROLES), self.rng.randrange(3)
        given_ = {"role": role, "title": "t", "priority": priority, "prerequisites": sorted(needs)}
        made = await self.tasks.create(ANA, given_)
        assert isinstance(made, MadeTask)
        self.models[made.task.id] = Model(role, priority, needs)

    async def claim(self) -> None:
        role, instance = self.rng.choice(ROLES), self.rng.choice("ab")
        limit = self.rng.choice((1, 1, 3))
        wanted = self.claimable(role)[:limit]
        granted = await self.tasks.claim(ANA, {"role": role, "instance": instance, "limit": limit})
        self.heard[role + instance] = self.now
        assert [each.task.id for each in granted] == wanted
        for each in granted:
            model = self.models[each.task.id]
            model.fence += 1
            assert (each.fence, each.verify_first) == (model.fence, model.half)
            model.status, model.held = "in_progress", Held(role + instance, self.now + WINDOW)
            self.past.append((each.task.id, each.fence, instance))

    async def write(self, report: bool) -> None:
        """A renewal or a report of some claim, by a holder or by a zombie."""
        if not self.past:
            return
        name, fence, instance = self.rng.choice(self.past[-6:])
        model = self.models.get(name)
        if model is None:
            return
        mine = model.held is not None and model.fence == fence
        status = self.rng.choice(REPORTS)
        body: dict[str, Any] = {"fence": fence, "instance": instance, "note": str(self.rng.random())}
        try:
            if report:
                await self.tasks.report(ANA, name, body | {"status": status})
            else:
                await self.tasks.renew(ANA, name, body)
        except FenceStale:
            assert not mine
            return
        assert mine
        assert model.held is not None
        self.heard[model.held.instance] = self.now
        if report:
            model.status, model.held = status, None
            model.half = model.half and status == "backlog"
        else:
            model.held.ends = self.now + WINDOW

    async def release(self) -> None:
        name = self.any_task()
        if name is None:
            return
        model = self.models[name]
        try:
            await self.tasks.release(ANA, name, {})
        except Conflict:
            assert model.held is None
            return
        assert model.held is not None
        model.status, model.held, model.half = "backlog", None, True

    async def edit(self) -> None:
        name = self.any_task()
        if name is None:
            return
        model = self.models[name]
        status = self.rng.choice(("backlog", "done", "cancelled", "blocked"))
        lawful = status == model.status or status in {
            "backlog": {"blocked", "done", "cancelled"},
            "in_review": {"backlog", "blocked", "done", "cancelled"},
            "blocked": {"backlog", "done", "cancelled"},
            "done": {"backlog"},
            "cancelled": {"backlog"},
        }.get(model.status, set())
        try:
            await self.tasks.edit(ANA, name, {"status": status})
        except Conflict:
            assert model.held is not None
            return
        except Invalid:
            assert not lawful
            return
        assert lawful
        assert model.held is None
        if status not in {model.status, "backlog"}:
            model.half = False
        model.status = status

    async def rewire(self) -> None:
        name = self.any_task()
        if name is None:
            return
        model = self.models[name]
        needs = set(self.rng.sample(sorted(self.models), min(len(self.models), 2)))
        lawful = nx.is_directed_acyclic_graph(self.graph((name, needs)))
        try:
            await self.tasks.edit(ANA, name, {"prerequisites": sorted(needs)})
        except Conflict:
            assert model.held is not None
            return
        except Invalid as error:
            assert not lawful
            cycle = error.data["cycle"]
            assert isinstance(cycle, list)
            assert cycle[0] == cycle[-1] == name
            return
        assert lawful
        model.needs = needs

    async def delete(self) -> None:
        name = self.any_task()
        if name is None:
            return
        model = self.models[name]
        needed = any(name in each.needs for each in self.models.values())
        try:
            await self.tasks.delete(ANA, name)
        except Conflict:
            assert model.held is not None or needed
            return
        assert model.held is None
        assert not needed
        del self.models[name]

    async def wait(self) -> None:
        self.pass_by(self.rng.choice((1, 30, 61, 121)))

    async def take_back(self) -> None:
        over = {
            name: each
            for name, each in self.models.items()
            if each.held
            and (each.held.ends <= self.now or self.heard[each.held.instance] + WINDOW <= self.now)
        }
        assert await self.sweep.sweep() == len(over)
        for each in over.values():
            each.status, each.held, each.half = "backlog", None, True

    def pass_by(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 3)
        self.clock.advance(seconds)

    async def check(self) -> None:
        """Everything as the model has it."""
        found = await self.tasks.page(ANA, TaskFilter(), "", 1_000)
        assert {task.id for task in found} == set(self.models)
        for task in found:
            model = self.models[task.id]
            shown = (task.status.value, task.fence, task.possibly_half_done, task.held_by is not None)
            assert shown == (model.status, model.fence, model.half, model.held is not None)
            assert {need.task_id for need in task.needs} == model.needs


async def live(seed: int, steps: int, folder: Path) -> None:
    rng, clock = Random(seed), FrozenClock(START)
    database = await open_database(folder, clock)
    signal = Signal()
    tasks = Tasks(
        database,
        clock,
        Mint(clock, SeededEntropy(seed)),
        signal,
        lock_seconds=WINDOW,
        heartbeat_timeout_seconds=WINDOW,
    )
    story = Story(rng, tasks, TaskSweep(database, signal, heartbeat_timeout_seconds=WINDOW), clock)
    deeds = [
        (story.create, 5),
        (story.claim, 6),
        (lambda: story.write(report=True), 5),
        (lambda: story.write(report=False), 2),
        (story.release, 1),
        (story.edit, 2),
        (story.rewire, 2),
        (story.delete, 1),
        (story.wait, 2),
        (story.take_back, 2),
    ]
    drawn = rng.choices([deed for deed, _ in deeds], [weight for _, weight in deeds], k=steps)
    for deed in drawn:
        await deed()
        await story.check()
    breaches: list[Breach] = []
    await Verify(database, gapless=True).run(breaches.append)
    assert [breach.sentence for breach in breaches] == []
    await database.close()


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(20, 80))
def test_the_board_does_what_its_model_does(seed: int, steps: int) -> None:
    """BRD-1 to BRD-4, BRD-6 to BRD-8: who gets what in which order, who is refused, what comes back and how marked."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(seed, steps, Path(folder)))
