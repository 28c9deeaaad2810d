"""Every store test runs on each engine: an engine is one entry in ``ENGINES``."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock
from support.databases import open_database

ENGINES: dict[str, Callable[[Path, FrozenClock], Awaitable[Database]]] = {"sqlite": open_database}


@pytest.fixture(params=sorted(ENGINES))
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock
) -> AsyncIterator[Database]:
    opened = await ENGINES[request.param](tmp_path, clock)
    yield opened
    await opened.close()
