"""Service tests drive a whole engine by its ticks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gnomon.services.mint import Mint
from gnomon.stores.database import Database
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.house import House
from support.lived import lived_file
from support.verdicts import Lived


@pytest.fixture
async def house(database: Database, clock: FrozenClock, mint: Mint) -> AsyncIterator[House]:
    built = await House(database, clock, mint).open()
    yield built
    built.close()


@pytest.fixture
def lived_copy(tmp_path: Path) -> tuple[Path, FrozenClock, dict[str, str]]:
    """Made outside the event loop, since the first one lives in a loop of its own."""
    return lived_file(tmp_path)


@pytest.fixture
async def lived(lived_copy: tuple[Path, FrozenClock, dict[str, str]]) -> AsyncIterator[Lived]:
    path, clock, schedules = lived_copy
    database = SqliteDatabase(path, clock)
    yield Lived(database, schedules)
    await database.close()
