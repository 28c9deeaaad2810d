"""What every test may ask for: a clock driven by hand, a real database, ids from a seed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.databases import START, open_database


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
