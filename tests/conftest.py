"""What every test may ask for: a clock driven by hand, a real database, ids from a seed."""

import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.databases import START, open_database

# The same examples in every run, so that a red test is red again; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("fixed", derandomize=True, database=None)
settings.register_profile("explore")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=None, help="how many seeds the simulator runs (tests/sim)")
    parser.addoption("--long", action="store_true", help="the whole matrix of faults (tests/chaos)")
    parser.addoption("--seed", type=int, default=0, help="what chaos draws from: repeats a run (tests/chaos)")


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


@pytest.fixture
async def database(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[SqliteDatabase]:
    opened = await open_database(tmp_path, clock)
    yield opened
    await opened.close()
