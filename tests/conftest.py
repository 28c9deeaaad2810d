"""What every test may ask for: a clock driven by hand, a real database, ids from a seed."""

import os
from collections.abc import AsyncIterator
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
    parser.addoption(
        "--long", action="store_true", help="more rounds of killing real processes (tests/chaos)"
    )


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


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
