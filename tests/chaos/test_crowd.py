"""Many processes, very many schedules due at one instant, some of the processes killed meanwhile: nothing twice, no gap.

Without ``--long`` it is a small crowd.
"""

from collections import Counter

import pytest

from support.chaos_target import lines
from support.chaos_world import World
from support.processes import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
ROOM = {"GNOMON_CONCURRENCY": "50"}
MORE = """INSERT INTO schedules ({columns}) SELECT {values} FROM schedules AS s, (
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many}) SELECT i FROM n) AS numbers
    WHERE s.id = '{first}'"""


def multiply(world: World, many: int) -> None:
    """So many more schedules like the one that is there, due at the same instant."""
    first = world.schedules[-1]
    [row] = world.store.query(f"SELECT * FROM schedules WHERE id = '{first}'")
    own = {"id": "'sch_00000000000000' || (100000 + i)", "name": "'crowd ' || i"}
    columns, values = ", ".join(row), ", ".join(own.get(name, f"s.{name}") for name in row)
    world.store.query(MORE.format(columns=columns, values=values, many=many, first=first))
    world.schedules += [f"sch_00000000000000{100_000 + number}" for number in range(1, many + 1)]


def heard(world: World) -> list[dict[str, object]]:
    return [line for line in lines(world.folder) if line["begins"]]


def test_a_crowd_of_processes_doubles_and_loses_nothing_however_many_are_killed(
    world: World, request: pytest.FixtureRequest
) -> None:
    """A1-A3, A7-A11, H1: one record, one run, one call for each slot, whoever dies."""
    long = request.config.getoption("--long")
    processes, schedules, kills = (8, 10_000, 4) if long else (3, 600, 1)
    world.heartbeat_timeout = 15.0  # so many processes on two cores: a beat may come late
    [door] = world.start("", **ROOM)
    world.furnish(count=1, slots=1, ahead=3.0, query="0.3", overlap="skip", on_lost="fail")
    multiply(world, schedules - 1)
    for _ in range(
        processes - 1
    ):  # one by one: on two cores, eight at once would take long to say that they are there
        world.start("", **ROOM)
    dead: set[int] = set()
    for number in range(1, kills + 1):
        until(lambda n=number: len(heard(world)) >= n * schedules // (kills + 2), "calls", 120.0)  # type: ignore[misc]
        victim = world.rng.choice([each for each in world.living if each is not door])
        dead.add(victim.process.pid)
        world.kill(victim)
        world.start("", **ROOM)
    world.settle(180.0)
    [[slots]] = [list(row.values()) for row in world.store.query("SELECT count(*) FROM occurrences")]
    ends = Counter(row["status"] for row in world.store.query("SELECT status FROM runs"))
    assert (slots, ends.total()) == (schedules, schedules)
    assert set(ends) <= {"succeeded", "lost"}
    calls = Counter(line["key"] for line in heard(world))
    assert set(calls.values()) == {1}, "no key was called twice"
    lost = {row["id"] for row in world.store.query("SELECT id FROM runs WHERE status = 'lost'")}
    silent = schedules - len(calls)
    assert silent <= len(lost), "whoever was not called is lost in the ledger, not missing"
    by_the_living = {line["key"] for line in heard(world) if line["pid"] not in dead}
    assert not lost & by_the_living, "only what was in flight in a killed process is lost"
