"""What is done to a simulated world: faults of processes and of the machine, and what people do meanwhile."""

from functools import partial
from typing import TYPE_CHECKING

from gnomon.domain.errors import Unavailable
from gnomon.domain.run import RunStatus
from support.simulation_process import SimProcess
from support.simulation_target import Promise

if TYPE_CHECKING:
    from support.simulation import World


async def complete(process: SimProcess, promise: Promise) -> None:
    """The target shows its fence and says that the work is done."""
    await process.person.runs.complete(promise.run_id, promise.fence, RunStatus.SUCCEEDED, "late", None)


def kill(world: "World", process: SimProcess) -> None:
    """SIGKILL after some steps, wherever it then is."""
    process.lane.fuse = (world.rng.choice((1, 2, 5, 11, 20, 40, 80)), process.kill)


def freeze(world: "World", process: SimProcess) -> None:
    """SIGSTOP after some steps, for a moment or far past its leases."""
    seconds = world.rng.choice((5.0, 50.0, 140.0, 300.0, 700.0))

    def thaw() -> None:
        process.lift("freeze")
        if world.rng.random() < 0.5:  # its threads need not come back all at once
            process.beat_lane.parked = True
            world.later(world.rng.choice((0.2, 2.0)), process.wake_beat)

    def burn() -> None:
        if process.alive:
            process.freeze()
            world.later(seconds, thaw)

    process.lane.fuse = (world.rng.choice((1, 3, 8, 20, 50)), burn)


def block(world: "World", process: SimProcess) -> None:
    """Something blocks its event loop."""
    process.block()
    world.later(world.rng.choice((3.0, 30.0, 200.0, 500.0)), lambda: process.lift("block"))


def outage(world: "World", process: SimProcess) -> None:
    """It can't reach the database for a while."""
    process.cut_off()
    world.later(world.rng.choice((0.5, 8.0, 60.0, 150.0, 400.0)), lambda: process.lift("outage"))


def lose_answer(world: "World", process: SimProcess) -> None:
    """The answer of a commit is lost once."""
    process.faults.lose_answer_in = world.rng.choice((0, 1, 2, 3))


def jump(world: "World", process: SimProcess) -> None:
    """The machine's wall clock is set, as a bad time server does."""
    seconds = world.rng.choice((-600.0, -90.0, -3.0, 3.0, 90.0, 600.0))
    world.history.fault("jump", "*", world.loop.time(), world.loop.time())
    world.clock.jump(seconds)


def sleep(world: "World", process: SimProcess) -> None:
    """The machine is suspended: everything stands still while both clocks go on."""
    for each in world.places:
        if each is not None and each.alive:
            each.freeze()
    world.history.seen["suspended"] += 1
    others = [each for each in world.places if each is not None]

    def wake() -> None:
        for each in others:
            each.lift("freeze")

    world.later(world.rng.choice((200.0, 700.0, 2_000.0)), wake)


def stop(world: "World", process: SimProcess) -> None:
    """SIGTERM: an orderly end."""

    async def end() -> None:
        world.history.fault("stop", process.name, world.loop.time(), world.loop.time())
        try:
            await process.engine.drain()
            await process.engine.stop()
        except Unavailable:
            world.history.seen["stopped without a word"] += 1
        process.kill()

    process.do(end())


def pause(world: "World", process: SimProcess) -> None:
    """A person pauses a schedule, and mostly resumes it later."""
    schedule = world.rng.choice(world.schedules)
    world.ask(process, partial(process.person.pausing.pause, schedule.id, "ana"))


def resume(world: "World", process: SimProcess) -> None:
    """A person resumes a schedule."""
    schedule = world.rng.choice(world.schedules)
    world.ask(process, partial(process.person.pausing.resume, schedule.id, "ana"))


def run_now(world: "World", process: SimProcess) -> None:
    """A person clicks, sometimes twice."""
    schedule = world.rng.choice(world.schedules)
    for _ in range(world.rng.choice((1, 2))):
        world.ask(process, partial(process.person.run_now.run, schedule.id, "bo"))


def cancel(world: "World", process: SimProcess) -> None:
    """A person cancels a run that is not over."""
    rows = world.office.connection.rows("SELECT id FROM runs WHERE finished_at IS NULL ORDER BY id")
    if rows:
        world.ask(process, partial(process.person.runs.cancel, world.rng.choice(rows)[0], "bo"))


def edit(world: "World", process: SimProcess) -> None:
    """A person edits a schedule, mostly with the newest revision in hand. Its slots stay what they were."""
    schedule = world.rng.choice(world.schedules)
    patch: dict[str, object] = {
        "query": world.rng.choice(("go", "come", "at {{now}}")),
        "timeout_seconds": world.rng.choice((20, 90, 240)),
        "catch_up": world.rng.choice(("latest", "none")),
    }
    known = world.rng.choice((None, None, frozenset({"1"})))
    world.ask(process, partial(process.person.schedules.edit, schedule.id, patch, "ana", match=known))


PEOPLE = (pause, resume, resume, resume, run_now, cancel, edit)
FAULTS = (kill, freeze, block, outage, lose_answer, jump, stop) * 3 + (kill, freeze, sleep)
