"""Real databases for tests: a migrated SQLite file, copied from a template that is made once in a session."""

import shutil
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare
from gnomon.testing.clock import FrozenClock

START = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


@cache
def _template() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    folder = tempfile.TemporaryDirectory(prefix="gnomon-template-")
    path = Path(folder.name) / "template.db"
    prepare(path, FrozenClock(START))
    return folder, path


def a_file(folder: Path, name: str = "gnomon.db") -> Path:
    """A migrated, empty database file in ``folder``."""
    path = folder / name
    shutil.copyfile(_template()[1], path)
    return path


async def open_database(folder: Path, clock: FrozenClock) -> SqliteDatabase:
    """A migrated, empty database in ``folder`` whose ``now_us()`` is ``clock``; the caller closes it."""
    return SqliteDatabase(a_file(folder), clock)
