"""Each planted bug must be found by chaos too, over real processes, and its scenario is clean without it (PRF-4).

With ``--long`` alone: these are checks of the checks, and take their time.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from support.chaos_history import breaches, gather
from support.chaos_stores import Store
from support.chaos_world import PAST_THE_TIMEOUT, World

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
SHOWS = {
    "unguarded claim": "claims_are_paired",
    "unguarded renew": "no_crash",
    "unfenced close": "claims_are_paired",
    "no self-fence": "executions_do_not_overlap",
    "advance outside the transaction": "records_agree",
    "host name as identity": "nothing_is_open",
}
NEVER_ENDS = "nothing_is_open: it never came to its end"


def unguarded_claim(world: World) -> None:
    """Two processes read the same queue, and a while passes before they claim."""
    busy = {"GNOMON_CONCURRENCY": "3"}
    world.start("take.sent=delay:0.2@1+", "take.sent=delay:0.2@1+", **busy)
    world.furnish(count=14, query="0.3", on_lost="fail")


def unguarded_renew(world: World) -> None:
    """Runs end between the look at what is due for renewal, a third of their lease after the claim, and its write."""
    world.start("renew.sent=delay:0.5@1+", GNOMON_CONCURRENCY="60")
    world.furnish(
        count=8, slots=4, query="16.2", timeout_seconds=17, overlap="allow", retry={"max_attempts": 1}
    )


def unfenced_close(world: World) -> None:
    """A process stands still with an answer in its hand; it comes back while the run is in other hands."""
    [victim] = world.start("close.sent=stop")
    world.furnish(count=6, slots=1, query="6.0", on_lost="resume", timeout_seconds=20)
    deed = world.stands_still(victim)
    world.start("")
    world.pause(PAST_THE_TIMEOUT)
    world.thaw(victim, deed)


def no_self_fence(world: World) -> None:
    """Heartbeats fail from some moment on, in the middle of long work."""
    world.start("renew.sent=fail@8+")
    world.furnish(count=5, slots=1, query="6.0", on_lost="resume", timeout_seconds=20)
    world.pause(2.5)  # it has claimed them
    world.start("")


def advance_apart(world: World) -> None:
    """Killed right after the commit of a claim."""
    [victim] = world.start("claim.committed=kill")
    world.furnish(count=6, slots=1)
    world.dies(victim)
    world.start("")


def host_as_identity(world: World) -> None:
    """One of two processes dies with work in its hands; the leases are long, the other one's heart beats on."""
    victim, _ = world.start("invoke.sent=kill@3", "")
    world.furnish(count=14, slots=2, timeout_seconds=600, query="0.3")
    world.dies(victim)


BUGS: dict[str, Callable[[World], None]] = {
    "unguarded claim": unguarded_claim,
    "unguarded renew": unguarded_renew,
    "unfenced close": unfenced_close,
    "no self-fence": no_self_fence,
    "advance outside the transaction": advance_apart,
    "host name as identity": host_as_identity,
}


@pytest.fixture
def only_long(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("a check of the checks: with --long")


@pytest.mark.usefixtures("only_long")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(store: Store, tmp_path: Path, bug: str) -> None:
    with World(
        store, tmp_path, random.Random(bug), ("-m", "support.chaos_planted", store.name, bug)
    ) as world:
        BUGS[bug](world)
        found = _judged(world)
        shown = {breach.partition(":")[0] for breach in found}
        assert SHOWS[bug] in shown, f"{bug}: {found}"


@pytest.mark.usefixtures("only_long")
@pytest.mark.parametrize("bug", BUGS)
def test_the_same_without_the_bug_is_clean(world: World, bug: str) -> None:
    """And it is the bug that is seen, not the scenario."""
    BUGS[bug](world)


def _judged(world: World) -> list[str]:
    found = []
    try:
        world.settle(22)
    except AssertionError:
        found.append(NEVER_ENDS)
    for process in list(world.living):
        world.kill(process)
    return found + breaches(world, gather(world))
