"""Jobs pushed by real servers over real sockets, which are killed at the worst moment (JOB-3, JOB-4)."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.job_processes import Instance, World
from support.processes import until
from support.product import Running

pytestmark = pytest.mark.process


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    where = {}
    if request.param == "postgres":
        where["url"] = f"{request.getfixturevalue('postgres_url')}?schema=pushed_jobs"
    with ExitStack() as stack:
        yield World(tmp_path_factory.mktemp("world"), stack, **where)


@pytest.fixture
def world(shared: World, request: pytest.FixtureRequest) -> World:
    """The servers that live on, and a role of this test's own."""
    shared.role = request.node.name.removeprefix("test_").partition("[")[0].replace("_", "-")[:60].strip("-")
    return shared


def of(instances: list[Instance]) -> list[dict[str, Any]]:
    return [trigger for instance in instances for trigger in instance.triggers()]


def test_two_servers_push_each_slot_to_one_instance(world: World) -> None:
    """JOB-3: four jobs, two servers, four instances; each job's slot comes once."""
    instances = [
        world.instance(server, f"{number}-{name}", "works")
        for number, server in enumerate((world.first, world.second))
        for name in "ab"
    ]
    slugs = [f"job-{number}" for number in range(4)]
    for slug in slugs:
        world.job(slug)
    ended = [world.ends(world.second, slug) for slug in slugs]
    assert {trigger["status"] for trigger in ended} == {"succeeded"}
    assert {trigger["pushes"] for trigger in ended} == {1}
    assert len({trigger["instance_id"] for trigger in ended}) == 4  # least recently used
    came = of(instances)
    assert sorted(frame["job"] for frame in came) == slugs
    assert [frame["redelivered"] for frame in came] == [False] * 4


def _kill(process: Running) -> None:
    process.stop(signal.SIGKILL)


def test_an_instance_killed_before_it_acknowledges_is_replaced_by_another(world: World) -> None:
    """JOB-4: one redelivery, the same id, the same dedup key."""
    deaf = world.instance(world.first, "deaf", "deaf")
    world.job()
    before = deaf.frame("job_trigger")
    other = world.instance(world.second, "other", "works")
    _kill(deaf.process)
    again = other.frame("job_trigger")
    assert again == {**before, "redelivered": True}
    ended = world.ends(world.first)
    assert (ended["status"], ended["pushes"], ended["note"]) == ("succeeded", 2, "done")
    assert len(other.triggers()) == 1


@pytest.mark.parametrize("engine_name", ["sqlite", "postgres"])
def test_a_server_killed_before_the_acknowledgement_leaves_the_trigger_to_another(
    tmp_path: Path, engine_name: str, request: pytest.FixtureRequest
) -> None:
    """JOB-4, JOB-3: its instance was connected to it alone."""
    where = {}
    if engine_name == "postgres":
        where["url"] = f"{request.getfixturevalue('postgres_url')}?schema=killed_server"
    with ExitStack() as stack:
        world = World(tmp_path, stack, **where)
        deaf = world.instance(world.second, "deaf", "deaf")
        world.job()
        before = deaf.frame("job_trigger")
        other = world.instance(world.first, "other", "works")
        _kill(world.second)
        again = other.frame("job_trigger")
        assert again == {**before, "redelivered": True}
        assert world.ends(world.first)["status"] == "succeeded"


def test_what_was_acknowledged_is_not_repeated_when_its_instance_is_killed(world: World) -> None:
    """JOB-4: twice is worse."""
    holds = world.instance(world.first, "holds", "holds")
    world.job()
    holds.frame("job_trigger")
    other = world.instance(world.second, "other", "works")

    def acknowledged() -> bool:
        found = world.trigger(world.first)
        return found is not None and found["status"] == "acknowledged"

    until(acknowledged, "the acknowledgement")
    _kill(holds.process)
    ended = world.ends(world.first)
    assert (ended["status"], ended["reason"], ended["pushes"]) == ("failed", "instance_lost", 1)
    assert other.triggers() == []


def test_a_slot_without_an_instance_waits_for_one(world: World) -> None:
    """JOB-4, casebook mis-25."""
    world.job()
    waits: Callable[[], Any] = lambda: world.trigger(world.first)  # noqa: E731 - asked again and again
    found = until(waits, "the trigger")
    assert (found["status"], found["instance_id"]) == ("pending", None)
    worker = world.instance(world.second, "late", "works")
    assert worker.frame("job_trigger")["redelivered"] is False
    assert world.ends(world.second)["status"] == "succeeded"
