"""Every store test runs on each engine, in a database that it finds empty."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from gnomon.stores.database import Database
from gnomon.stores.postgres.address import Address
from gnomon.testing.clock import FrozenClock
from support import postgres
from support.databases import open_database

ENGINES = ("postgres", "sqlite")


@pytest.fixture(scope="session")
def postgres_address(postgres_url: str) -> Address:
    """The schema that all tests of this process share, one after the other."""
    return asyncio.run(postgres.make_schema(postgres_url))


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine."""
    name: str = request.param
    return name


@pytest.fixture
def opening(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock
) -> Callable[[], Awaitable[Database]]:
    """What opens the test's database; whatever can't be made inside a running loop has been made."""
    if engine == "sqlite":
        return partial(open_database, tmp_path, clock)
    return partial(postgres.open_empty, request.getfixturevalue("postgres_address"), clock)


@pytest.fixture
async def database(opening: Callable[[], Awaitable[Database]]) -> AsyncIterator[Database]:
    opened = await opening()
    yield opened
    await opened.close()
