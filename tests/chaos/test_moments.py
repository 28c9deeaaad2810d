"""Real processes killed and stopped at moments that nobody chose, clocks that lie, a file that can't grow (PRF-1)."""

import resource
from pathlib import Path

import pytest

from support.chaos_stores import SqliteStore
from support.chaos_target import lines
from support.chaos_world import PAST_THE_TIMEOUT, World
from support.processes import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(150)]
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
# without the second one waits of threads hang: the monotonic clock is the truth that every wait is measured on
LYING = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
needs_faketime = pytest.mark.skipif(
    FAKETIME is None, reason="libfaketime is missing: apt-get install faketime"
)
on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # it is done to a file
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)  # it is done to a server
SMALL_FILE = 32_768


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    long = metafunc.config.getoption("--long")
    if "storm" in metafunc.fixturenames:
        metafunc.parametrize("storm", range(4 if long else 1))


def test_kills_and_stops_at_random_moments(world: World, storm: int) -> None:
    """K13, Z1, Z4: three processes, each moment one of them is killed and started again, or stands still and comes back."""
    world.start("", "", "")
    world.furnish(count=12, slots=4)
    for _ in range(4):
        world.pause(world.rng.uniform(0.2, 1.5))
        victim = world.rng.choice(world.living)
        if world.rng.random() < 0.6:
            world.kill(victim)
            if world.rng.random() < 0.7 or not world.living:
                world.start("")
        else:
            deed = world.freeze(victim)
            world.pause(world.rng.choice((0.5, PAST_THE_TIMEOUT)))
            world.thaw(victim, deed)
    if not world.living:
        world.start("")


@on_sqlite
def test_a_stranger_holds_the_write_lock_again_and_again(world: World) -> None:
    """Q1: longer than a heartbeat's timeout; who can't renew stops his own work, and nothing is done twice."""
    assert isinstance(world.store, SqliteStore)
    world.start("", "")
    world.furnish()
    for _ in range(2):
        world.pause(1.0)
        deed = world.put("outage", 0, None)
        connection = world.store.connect()
        connection.execute("BEGIN IMMEDIATE")
        world.pause(PAST_THE_TIMEOUT)
        connection.close()
        deed.end = world.now()


@on_sqlite
def test_a_file_that_can_t_grow_loses_nothing(world: World) -> None:
    """PG7, OPS-1: as with a full disk every write fails; when there is room again all goes on."""
    world.start("", "")
    world.furnish()
    world.pause(2.0)
    deed = world.put("outage", 0, None)
    for process in world.living:
        resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (SMALL_FILE, resource.RLIM_INFINITY))
    world.pause(PAST_THE_TIMEOUT)
    for process in world.living:
        resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    deed.end = world.now()
    assert any("can't be read or written" in line for each in world.living for line in each.err)


@on_sqlite
@needs_faketime
def test_a_machine_whose_clock_jumps_takes_nothing_from_the_living(world: World) -> None:
    """CLK2, RUN-5b, A20: ten minutes forward and back again, under runs in work on one file."""
    world.heartbeat_timeout = (
        8.0  # longer than a busy machine keeps a beat waiting, and far less than the jump
    )
    dial = world.folder / "clock"
    dial.write_text("+0\n")
    world.start("", "", **LYING, FAKETIME_TIMESTAMP_FILE=str(dial), FAKETIME_CACHE_DURATION="1")
    world.furnish(count=8, slots=1, query="6.0", timeout_seconds=20, on_lost="resume")
    until(lambda: sum(line["begins"] for line in lines(world.folder)) == 8, "all are in work")
    deed = world.put("jump", 0, None)
    dial.write_text("+600\n")
    world.pause(2.5)
    dial.write_text("+0\n")
    deed.end = world.now()
    world.settle()
    assert world.store.query("SELECT DISTINCT status, fence FROM runs") == [
        {"status": "succeeded", "fence": 1}
    ]
    assert world.store.query("SELECT count(*) AS n FROM audit_entries WHERE action = 'CLOCK_JUMP'") != [
        {"n": 0}
    ]


@on_postgres
@needs_faketime
def test_hosts_whose_clocks_differ_agree_all_the_same(world: World) -> None:
    """CLK1, DSP-3, A12: one process is ten minutes ahead, one ten minutes behind; the database's clock is everybody's."""
    patient = {"GNOMON_HEARTBEAT_SECONDS": "1", "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "8"}
    world.start("", **patient)
    for offset in ("+600", "-600"):
        world.start("", **patient, **LYING, FAKETIME=offset)
    world.furnish(count=16)
    world.settle()
    claimers = world.store.query("SELECT DISTINCT actor FROM audit_entries WHERE action = 'CLAIM'")
    assert len(claimers) == 3, "each of them had a hand in it"
    assert world.store.query("SELECT count(*) AS n FROM audit_entries WHERE action = 'EXPIRE'") == [{"n": 0}]
