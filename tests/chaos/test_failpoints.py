"""Real processes killed, stopped, failed and held up at every named step (PRF-1): the fault matrix's K, Z and PG3 rows.

A victim works alone until it meets its failpoint, so that the point is surely met; then others come and go on. The
``world`` fixture judges what is left. Without ``--long`` a few points stand for all.
"""

from collections.abc import Sequence

import pytest

from gnomon.domain.failpoint import ELSEWHERE, POINTS
from support.chaos_stores import SqliteStore
from support.chaos_world import PAST_THE_TIMEOUT, World
from support.product import Running

pytestmark = [pytest.mark.process, pytest.mark.timeout(150)]
KILLS = ("invoke.answered", "close.written")
STOPS = ("close.sent",)
# the first heartbeats come before the first slot
LATER = {"renew.sent": 8, "renew.written": 8, "renew.committed": 8, "invoke.sent": 3, "invoke.answered": 2}
LATER |= dict.fromkeys(
    ("sweep.sent", "sweep.written", "sweep.committed"), 2
)  # the first is made before it says that it is up
AHEAD = 4.0  # what is written through a victim has been written when it meets its failpoint in a slot
SOON = 1.6  # a heartbeat's failpoint would be met before the slot otherwise
DOOMED = "invoke.sent=kill@3"  # dies with runs in work, so that there is something to sweep
UNANSWERED = "take.committed=fail"  # so that there is something to give back


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    long = metafunc.config.getoption("--long")

    def over(few: Sequence[str]) -> list[str]:
        return sorted(POINTS) if long else list(few)

    if "killed_at" in metafunc.fixturenames:
        metafunc.parametrize("killed_at", over(KILLS))
    if "stopped_at" in metafunc.fixturenames:
        metafunc.parametrize("stopped_at", over(STOPS))
    if "storm" in metafunc.fixturenames:
        metafunc.parametrize("storm", range(6 if long else 1))


def victim_at(world: World, point: str, effect: str) -> Running:
    """A process that will meet its failpoint, with what it takes to get there."""
    trap = f"{point}={effect}@{LATER.get(point, 1)}"
    if point.startswith("sweep."):
        [doomed] = world.start(DOOMED)
        world.furnish(slots=2, ahead=AHEAD)
        world.dies(doomed)
        return world.start(trap)[0]
    [victim] = world.start(f"{UNANSWERED},{trap}" if point.startswith("giveback.") else trap)
    world.furnish(slots=2, ahead=SOON if point.startswith("renew.") else AHEAD)
    return victim


def test_a_process_killed_at_any_step_doubles_and_loses_nothing(world: World, killed_at: str) -> None:
    """K1-K13; A1-A11, A20, D3."""
    world.dies(victim_at(world, killed_at, "kill"))
    world.pause(world.rng.choice((0.0, 1.0, 3.0)))
    world.start("", "")


def test_a_process_that_stands_still_at_any_step_comes_back_harmless(world: World, stopped_at: str) -> None:
    """Z1, Z2; A4, A5, A6: stopped past its heartbeat's timeout, its work taken, then continued."""
    victim = victim_at(world, stopped_at, "stop")
    deed = world.stands_still(victim)
    stuck = isinstance(world.store, SqliteStore) and world.store.is_locked()
    if (
        not stuck
    ):  # else it stands still in the middle of a write, and nobody can take anything, nor even start
        world.start("", "")
    world.pause(PAST_THE_TIMEOUT)
    world.thaw(victim, deed)
    if stuck:
        world.start("", "")


def test_failures_and_delays_at_random_steps_change_nothing(world: World, storm: int) -> None:
    """PG3, PG9, CLK5; A2, A7, D4: writes that fail, whose answers are lost, that take long; two processes at once."""
    world.start(_weather(world), _weather(world))
    world.furnish()


def _weather(world: World) -> str:
    """Eight traps at steps drawn by the seed, each sprung once or a few times."""
    steps = sorted(POINTS - ELSEWHERE)
    drawn = []
    for _ in range(8):
        if world.rng.random() < 0.65:
            drawn.append(f"{world.rng.choice(steps)}=fail@{world.rng.randint(1, 3)}")
        else:
            seconds = world.rng.choice((0.05, 0.3, 0.9, 1.5, 2.6))
            drawn.append(f"{world.rng.choice(sorted(POINTS))}=delay:{seconds}@{world.rng.randint(1, 3)}")
    return ",".join(drawn)
