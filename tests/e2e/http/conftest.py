"""An application and a client that may do everything."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.api import Api, admin_of, api_over


@pytest.fixture
def api(database: SqliteDatabase, clock: FrozenClock) -> Api:
    return api_over(database, clock)


@pytest.fixture
async def admin(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with admin_of(api) as client:
        yield client
