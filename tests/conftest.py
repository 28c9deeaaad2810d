"""What every test may ask for: a clock driven by hand, a real database, ids from a seed."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores.database import Database
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.databases import START, open_database, powered
from support.long import LONG

if TYPE_CHECKING:  # whoever runs tests without a server pays for no driver
    from gnomon.stores.postgres.address import Address

# The same examples in every run, so that a red test is red again; HYPOTHESIS_PROFILE=explore draws new ones.
# How long a draw takes says how busy the machine is: on a fresh checkout the first one makes the tables of Unicode.
settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=None, help="how many seeds the simulator runs (tests/sim)")
    parser.addoption(
        "--engine", default="sqlite", help="which engine tests/service runs on: sqlite or postgres"
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="what takes long as well (tests/support/long.py), and the whole matrix of faults (tests/chaos)",
    )
    parser.addoption(
        "--plant", default=None, help="a bug of support/simulation_plants.py: sim and chaos must find it"
    )
    parser.addoption("--seed", type=int, default=0, help="what chaos draws from: repeats a run (tests/chaos)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sqlite: about SQLite itself, whatever the engine of the other tests")
    config.addinivalue_line("markers", "long: left to `make long` (tests/support/long.py)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and on the other engine what is about SQLite itself."""
    gone: set[pytest.Item] = set()
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker("long")
            if not config.getoption("--long"):
                gone.add(item)
        if config.getoption("--engine") != "sqlite" and item.get_closest_marker("sqlite"):
            gone.add(item)
    if gone:
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=list(gone))


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What a test injected and saw, told at the end over all tests: one that injects nothing proves nothing."""
    counted: Counter[str] = Counter()
    yield counted
    request.node.user_properties.append(("tally", dict(counted)))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                total.update(dict(report.user_properties).get("tally", {}))
    if total:
        told = ", ".join(f"{name} {count}" for name, count in sorted(total.items()))
        terminalreporter.write_line(f"with --seed {config.getoption('--seed')}: {told}")


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Processes die in tests, the machine does not: a commit waits for no disk, which takes ten times as long."""
    with powered("PRAGMA synchronous=OFF"):
        yield


@pytest.fixture
def synced(unsynced: None) -> Iterator[None]:
    """Connections are opened with the product's pragmas and no other."""
    with powered():
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> None:
    """Where the product has not set up its logs, a traceback is not laid out in colours: half a second each."""
    renderer = structlog.get_config()["processors"][-1]
    assert isinstance(renderer, structlog.dev.ConsoleRenderer)
    renderer.exception_formatter = structlog.dev.plain_traceback


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of this process of the run; it ends with it, however that ends."""
    from gnomon.adapters.postgres_server import PostgresServer
    from support.postgres import OPTIONS

    folder = tmp_path_factory.mktemp("postgres")
    with PostgresServer(folder / "server", options=OPTIONS) as server:
        yield server.url
    shutil.rmtree(folder, ignore_errors=True)  # fifty megabytes that nobody will look at


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def entropy() -> SeededEntropy:
    return SeededEntropy()


@pytest.fixture
def mint(clock: FrozenClock, entropy: SeededEntropy) -> Mint:
    return Mint(clock, entropy)


@pytest.fixture
def signal() -> Signal:
    return Signal()


@pytest.fixture(scope="session")
def postgres_address(postgres_url: str) -> "Address":
    """A schema that the tests of this process share, one after the other; each finds it empty."""
    from support.postgres import make_schema

    return asyncio.run(make_schema(postgres_url))


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The name of the engine that a test runs on."""
    name: str = request.config.getoption("--engine")
    return name


@pytest.fixture
def opening(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock
) -> Callable[[], Awaitable[Database]]:
    """What opens the test's database; what can't be made inside a running loop has been made."""
    if engine == "sqlite":
        return partial(open_database, tmp_path, clock)
    from support.postgres import open_empty

    return partial(open_empty, request.getfixturevalue("postgres_address"), clock)


@pytest.fixture
async def database(opening: Callable[[], Awaitable[Database]]) -> AsyncIterator[Database]:
    opened = await opening()
    yield opened
    await opened.close()


@pytest.fixture
async def neighbour(database: Database, clock: FrozenClock) -> AsyncIterator[Database]:
    """The same database as another process has it."""
    opened: Database
    if isinstance(database, SqliteDatabase):
        opened = SqliteDatabase(database.path, clock)
    else:
        from support.postgres import FrozenPostgres

        assert isinstance(database, FrozenPostgres)
        opened = FrozenPostgres(database.address, clock)
    yield opened
    await opened.close()
