"""The application with its door, and agents that come in without a socket."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import httpx2
import pytest
from mcp.client import Client

from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.agents import agent
from support.api import Api, api_over

Comes = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
async def api(database: SqliteDatabase, clock: FrozenClock) -> AsyncIterator[Api]:
    found = api_over(database, clock)
    yield found
    await found.door.close()


@pytest.fixture
def comes(api: Api) -> Comes:
    """``comes(key)`` is an agent with this key."""
    return partial(agent, "http://gnomon.test", transport=httpx2.ASGITransport(api.app))
