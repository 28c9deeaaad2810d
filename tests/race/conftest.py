"""The database that several processes meet over, on each engine."""

import asyncio
import random
from pathlib import Path

import pytest

from gnomon.adapters.clock import SystemClock
from gnomon.stores.postgres.opening import prepare as prepare_postgres
from gnomon.stores.sqlite.opening import prepare as prepare_sqlite


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where it is: a file, or a schema of its own."""
    if request.param == "sqlite":
        path = tmp_path / "gnomon.db"
        prepare_sqlite(path, SystemClock())
        return str(path)
    server = request.getfixturevalue("postgres_url")
    found = f"{server}?schema=race_{random.Random(str(tmp_path)).getrandbits(40):010x}"
    asyncio.run(prepare_postgres(found))
    return found
