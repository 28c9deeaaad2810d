"""What can go wrong between real processes and a PostgreSQL server, and inside it (PRF-1: the PG and N rows)."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gnomon.adapters.postgres_server import PostgresServer
from support.chaos_proxy import FaultProxy, Mode
from support.chaos_stores import PostgresStore
from support.chaos_world import PAST_THE_TIMEOUT, World

pytestmark = [pytest.mark.process, pytest.mark.timeout(150)]
LOCKED_SECONDS = 5.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server of this test alone, which it may break."""
    with PostgresServer(tmp_path / "server") as started:
        yield started


@pytest.fixture
def store(server: PostgresServer) -> PostgresStore:
    """A schema on that server."""
    return PostgresStore(server.url, "chaos")


def only_with_long(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("part of the matrix: with --long")


long_only = pytest.fixture(only_with_long, name="long_only")


def test_backends_killed_in_the_middle_of_transactions(world: World) -> None:
    """PG2, A7, D4, RUN-5a: every connection of the product, again and again; a commit in doubt is read back."""
    world.start("", "")
    world.furnish(count=12)
    assert isinstance(world.store, PostgresStore)
    world.pause(1.2)
    deed = world.put("outage", 0, None)
    for _ in range(12):
        world.store.terminate_others()
        world.pause(world.rng.uniform(0.05, 0.5))
    deed.end = world.now()


@pytest.mark.usefixtures("long_only")
@pytest.mark.parametrize("how", ["fast", "killed"])
def test_a_server_that_goes_and_comes_back(world: World, server: PostgresServer, how: str) -> None:
    """PG1, A2, D3: shut down fast, or killed with SIGKILL; the processes carry on by themselves."""
    world.start("", "")
    world.furnish()
    world.pause(2.2)
    deed = world.put("outage", 0, None)
    if how == "killed":
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
    server.stop()
    world.pause(world.rng.choice((0.0, PAST_THE_TIMEOUT)))
    server.start()
    deed.end = world.now() + 1.0
    assert all(each.process.poll() is None for each in world.living), "no crash"


@pytest.mark.usefixtures("long_only")
@pytest.mark.parametrize("mode", [Mode.CUT, Mode.DEAF, Mode.HOLD])
def test_a_line_that_lies(world: World, server: PostgresServer, mode: Mode, tally: Counter[str]) -> None:
    """PG3, N1, A2, A4, D1, RUN-5: commits cut before their answer, replies dropped, a line held open in silence."""
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    with FaultProxy(parts.hostname, parts.port) as proxy:
        through = world.store.url.replace(f":{parts.port}/", f":{proxy.port}/")
        world.start("", url=through)
        world.start("")
        world.furnish(count=12)
        world.pause(1.3)
        deed = world.put("outage", 0, None)
        proxy.turn(mode)
        world.pause(PAST_THE_TIMEOUT)
        proxy.turn(Mode.PASS)
        deed.end = world.now() + 10.0  # until the deadline of whoever waits for an answer that never comes
        world.settle()
        world.stop()
        tally.update(proxy.done)
        assert proxy.done, "it did nothing"


@pytest.mark.usefixtures("long_only")
def test_a_locked_row_holds_up_nobody_else_and_shortens_no_lease(world: World) -> None:
    """PG8, DSP-3: a stranger's transaction holds a schedule past its slot; others are on time, its own lease is whole."""
    world.start("", "")
    world.furnish(count=8, slots=1, query="0.3")
    locked = world.schedules[-1]
    assert isinstance(world.store, PostgresStore)
    with world.store.locked("schedules", locked):
        world.pause(LOCKED_SECONDS)
    world.settle()
    rows = world.store.query(
        "SELECT o.schedule_id, o.created_at - o.nominal_fire_at AS late, r.lease_seconds FROM occurrences AS o "
        "JOIN runs AS r ON r.id = o.run_id"
    )
    late = {row["schedule_id"]: row["late"] / 1e6 for row in rows}
    assert late.pop(locked) > 1.0, "it was locked"
    assert max(late.values()) < 1.0, "nobody else waited"
    for row in world.store.query(
        "SELECT j.at, j.new::json ->> 'lease_until' AS until, r.lease_seconds FROM journal AS j "
        "JOIN runs AS r ON r.id = j.subject WHERE j.kind = 'run' AND j.new::json ->> 'status' = 'running'"
    ):
        assert int(row["until"]) / 1e6 - row["at"] > row["lease_seconds"] - 0.5, "the lease is whole"
