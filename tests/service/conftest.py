"""Service tests drive a whole engine by its ticks."""

from collections.abc import AsyncIterator

import pytest

from gnomon.services.mint import Mint
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock
from support.house import House


@pytest.fixture
async def house(database: Database, clock: FrozenClock, mint: Mint) -> AsyncIterator[House]:
    built = await House(database, clock, mint).open()
    yield built
    built.direct.close()
