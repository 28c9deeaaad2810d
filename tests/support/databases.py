"""Real databases for tests: a migrated SQLite file, copied from a template that is made once in a session."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from unittest.mock import patch

from gnomon.stores.sqlite import connection
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.stores.sqlite.opening import prepare
from gnomon.testing.clock import FrozenClock

START = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


PRAGMAS = connection._PRAGMAS


@contextmanager
def powered(*more: str) -> Iterator[None]:
    """Connections opened in it have the product's pragmas and ``more``."""
    with patch.object(connection, "_PRAGMAS", (*PRAGMAS, *more)):
        yield


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
