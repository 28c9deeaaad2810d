"""Ten instances of one role over four servers, killed and frozen at random: every task is done, none is held by two.

Without ``--long`` it is a small crowd, from a fixed seed.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from support.board_chaos import BOARD, Crowd, done, faults, wait_for
from support.board_workers import fill
from support.chaos_stores import SqliteStore
from support.chaos_world import World

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
DEEP = 5


@pytest.fixture
def crowd(world: World) -> Iterator[Crowd]:
    [door] = world.start("", **BOARD)
    made = Crowd(world, door.started["key"])
    yield made
    made.end()


def test_every_task_is_done_once_whoever_dies(
    world: World, crowd: Crowd, request: pytest.FixtureRequest, tally: Counter[str]
) -> None:
    """BRD-1 to BRD-7, B1, B2, B4 to B7: dependencies five deep; each claim has one end in the audit."""
    long = request.config.getoption("--long")
    servers, instances, tasks, hurts = (4, 10, 5_000, 40) if long else (2, 4, 160, 4)
    url = str(world.store.path) if isinstance(world.store, SqliteStore) else world.store.url
    asyncio.run(fill(url, tasks, deep=DEEP))
    for _ in range(servers - 1):
        world.start("", **BOARD)
    crowd.tell()
    for _ in range(instances):
        crowd.start()
    for number in range(1, hurts + 1):
        wait_for(world, number * tasks // (hurts + 2), 240.0)
        crowd.hurt()
    wait_for(world, tasks, 240.0)
    crowd.end()
    assert done(world) == tasks
    assert list(faults(world, crowd)) == []
    tally.update({f"board {what}": count for what, count in crowd.done_to.items()})
    expired = world.store.query(
        "SELECT count(*) AS n FROM audit_entries WHERE action = 'EXPIRE' AND subject_kind = 'task'"
    )
    tally["board expired"] += expired[0]["n"]
