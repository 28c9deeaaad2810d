"""Which migrations a database has had, asked while it is in use (OPS-3)."""

import pytest

from gnomon.stores import migrations
from gnomon.stores.database import Database

pytestmark = pytest.mark.anyio


async def test_the_newest_migration_is_the_program_s_own(database: Database) -> None:
    known = migrations.load("sqlite")
    assert await database.read(migrations.newest) == known[-1].number
