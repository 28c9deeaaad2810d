"""Jobs where a server stands still past its heartbeat's timeout, and goes on: SIGSTOP, SIGCONT, real sockets (JOB-3, JOB-4).

What it held is another's by then. It wakes with the trigger in its hands, its connection open, and has to push nothing.
"""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.job_processes import Instance, World
from support.processes import until
from support.product import Running

pytestmark = pytest.mark.process


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    where = {}
    if request.param == "postgres":
        where["url"] = f"{request.getfixturevalue('postgres_url')}?schema={tmp_path.name.lower()}"
    with ExitStack() as stack:
        made = World(tmp_path, stack, **where)
        made.role = (
            request.node.name.removeprefix("test_").partition("[")[0].replace("_", "-")[:60].strip("-")
        )
        yield made


@contextmanager
def frozen(server: Running) -> Iterator[None]:
    """It stands still, and goes on."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def is_offline(world: World, name: str) -> bool:
    """Whether no server holds a connection of this instance any more, as the others see it."""
    _, page = world.first.ask(f"/v1/instances?role={world.role}")
    return any(each["name"] == name and each["server"] is None for each in page["items"])


def pushes(world: World, trigger_id: str) -> list[str]:
    """The steps of a trigger, without the choice of an instance."""
    return [entry["action"] for entry in world.audit(trigger_id) if entry["action"] != "GIVE"]


def wakes_and_says_nothing(instance: Instance, triggers: int) -> None:
    """The woken server ends the connection that is not its own any more, and nothing comes over it before."""
    came = [frame for frame in instance.ends() if frame["type"] == "job_trigger"]
    assert len(came) == triggers


def test_what_a_frozen_server_had_pushed_goes_to_another_once(world: World) -> None:
    """JOB-4: under the same id and dedup key; woken, the server pushes nothing and ends the connection."""
    deaf = world.instance(world.second, "deaf", "deaf")
    world.job()
    before = deaf.frame("job_trigger")
    other = world.instance(world.first, "other", "works")
    with frozen(world.second):
        again = other.frame("job_trigger")
        assert again == {**before, "redelivered": True}
        ended = world.ends(world.first)
        assert (ended["status"], ended["pushes"]) == ("succeeded", 2)
    wakes_and_says_nothing(deaf, 1)
    assert len(other.triggers()) == 1
    assert world.trigger(world.first) == ended
    assert pushes(world, ended["id"]) == ["PUSH", "TAKE_BACK", "PUSH", "ACKNOWLEDGE", "FINISH"]


def test_what_a_frozen_server_was_to_push_goes_to_another_as_new(world: World) -> None:
    """JOB-3: its instance never got it, neither before nor after."""
    there = world.instance(world.second, "there", "works")
    with frozen(world.second):
        world.job()
        given = until(lambda: world.trigger(world.first), "the trigger")
        assert given["status"] == "pending"
        other = world.instance(world.first, "other", "works")
        assert other.frame("job_trigger")["redelivered"] is False
        ended = world.ends(world.first)
        assert (ended["status"], ended["pushes"]) == ("succeeded", 1)
    wakes_and_says_nothing(there, 0)
    assert len(other.triggers()) == 1
    assert world.trigger(world.first) == ended


def test_what_a_frozen_server_had_and_nobody_takes_is_missed_with_its_reason(world: World) -> None:
    """JOB-4: taken back from its instance, and missed when its job is switched off; woken, the server pushes nothing."""
    deaf = world.instance(world.second, "deaf", "deaf")
    world.job()
    deaf.frame("job_trigger")
    with frozen(world.second):
        until(lambda: is_offline(world, "deaf"), "the watchdog of the other server")
        status, _ = world.first.ask(f"/v1/jobs/{world.role}", method="PATCH", body={"enabled": False})
        assert status == 200
        ended = world.ends(world.first)
        assert (ended["status"], ended["reason"], ended["pushes"]) == ("missed", "job_disabled", 1)
    wakes_and_says_nothing(deaf, 1)
    assert world.trigger(world.first) == ended


def test_what_was_acknowledged_at_a_frozen_server_fails_once_and_is_not_repeated(world: World) -> None:
    """JOB-4: twice is worse; what its instance says of it after that changes nothing."""
    holds = world.instance(world.second, "holds", "holds")
    world.job()
    holds.frame("job_trigger")

    def acknowledged() -> bool:
        found = world.trigger(world.first)
        return found is not None and found["status"] == "acknowledged"

    until(acknowledged, "the acknowledgement")
    other = world.instance(world.first, "other", "works")
    with frozen(world.second):
        ended = world.ends(world.first)
        assert (ended["status"], ended["reason"], ended["pushes"]) == ("failed", "instance_lost", 1)
    wakes_and_says_nothing(holds, 1)
    assert other.triggers() == []
    assert world.trigger(world.first) == ended
