"""What is done to the instances of a simulated world and to their connections, and what people do at board and jobs."""

from functools import partial
from typing import TYPE_CHECKING, Any

from support.simulation_server import CALLER, SimServer
from support.simulation_worker import SimWorker

if TYPE_CHECKING:
    from support.simulation_board import BoardWorld


def kill(world: "BoardWorld", worker: SimWorker) -> None:
    """SIGKILL after some steps, wherever it then is."""
    world.history.injected["instance killed"] += 1
    worker.lane.fuse = (world.rng.choice((1, 2, 3, 5, 9)), worker.kill)


def freeze(world: "BoardWorld", worker: SimWorker) -> None:
    """SIGSTOP, for a moment or far past what it holds."""
    if not worker.alive:
        return
    world.history.injected["instance frozen"] += 1
    worker.lane.parked = True

    def thaw() -> None:
        worker.lane.parked = False

    world.later(world.rng.choice((5.0, 50.0, 140.0, 400.0)), thaw)


def cut(world: "BoardWorld", worker: SimWorker) -> None:
    """Its connection breaks, and one end or both may not notice."""
    if worker.alive and worker.wire is not None:
        knows = world.rng.choice(((True, True), (True, False), (False, True), (False, False)))
        worker.wire.break_off(server_knows=knows[0], instance_knows=knows[1])
        world.history.injected["connection cut"] += 1


def release(world: "BoardWorld", server: SimServer) -> None:
    """A person takes a task from whoever holds it."""
    rows = world.office.connection.rows("SELECT task_id FROM task_locks ORDER BY task_id")
    if rows:
        world.ask(server, partial(server.board.release, CALLER, world.rng.choice(rows)[0], {}))


def drain(world: "BoardWorld", server: SimServer) -> None:
    """A person drains an instance, and ends it later; another takes its place."""
    worker = world.rng.choice(world.crew)
    if worker.instance_id and world.rng.random() < 0.4:
        world.ask(server, partial(server.instances.drain, CALLER, worker.instance_id))
        world.later(60.0, partial(world.retire, worker.name))


def switch(world: "BoardWorld", server: SimServer) -> None:
    """A person switches the first job off or on."""
    patch = {"enabled": world.rng.random() < 0.6}
    world.ask(server, partial(server.jobs.edit, CALLER, world.jobs[0].id, patch))


def edit(world: "BoardWorld", server: SimServer) -> None:
    """A person edits a job. Its slots stay what they were."""
    patch: dict[str, Any] = {"payload": {"n": world.rng.randrange(9)}}
    world.ask(server, partial(server.jobs.edit, CALLER, world.rng.choice(world.jobs).id, patch))


def tasks(world: "BoardWorld", server: SimServer) -> None:
    """A person writes tasks: the same one twice at once, under one dedup key."""
    number = world.rng.randrange(20)
    given = {"role": ("pm", "qa")[number % 2], "title": "once", "dedup_key": f"once-{number}"}
    for each in (server, world.a_server() or server):
        world.ask(each, partial(each.board.create, CALLER, given))


PEOPLE = (release, drain, switch, edit, tasks, tasks)
TO_WORKERS = (kill, freeze, freeze, cut)
