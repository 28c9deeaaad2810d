"""Numbered migrations, forward only: ``NNNN_words.sql``, one text for both engines.

A line that starts with ``--sqlite:`` or ``--postgres:`` is read by that engine alone.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gnomon.domain.errors import UnusableDatabase
from gnomon.stores.database import Tx

_ENGINES = ("sqlite", "postgres")
# Texts are compared byte by byte in both engines, whatever the language of the database
_POSTGRES_TYPES = {
    "INTEGER": "BIGINT",
    "TEXT": 'TEXT COLLATE "C"',
    "BLOB": "BYTEA",
    "REAL": "DOUBLE PRECISION",
}
_TYPE = re.compile(rf"\b({'|'.join(_POSTGRES_TYPES)})\b")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its words, its text for one engine, the checksum of that text."""

    number: int
    name: str
    text: str
    checksum: str


@cache
def load(engine: str) -> Sequence[Migration]:
    """All migrations for ``engine``, in order, read once in a process."""
    found = []
    for file in files("gnomon.stores.migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, words = file.name.removesuffix(".sql").partition("_")
            text = _for_engine(file.read_text("utf-8"), engine)
            found.append(Migration(int(number), words, text, hashlib.sha256(text.encode()).hexdigest()[:16]))
    return tuple(sorted(found, key=lambda migration: migration.number))


def pending(applied: dict[int, str], known: Sequence[Migration]) -> list[Migration]:
    """What is still to apply, given number and checksum of what was.

    Raises:
        UnusableDatabase: the database is newer than the program, has a gap, or was migrated by another text.
    """
    newest = known[-1].number
    if applied and max(applied) > newest:
        raise UnusableDatabase(
            f"The database is at migration {max(applied)}, this program knows {newest}: it was written by a newer "
            "Gnomon. Start that version, or use another database. Nothing was changed.",
            code="database_newer",
        )
    if sorted(applied) != [migration.number for migration in known][: len(applied)]:
        raise UnusableDatabase(
            f"The database is half migrated: it has had {sorted(applied)} of the migrations up to {newest}. Restore a "
            "backup, or use another database. Nothing was changed.",
            code="database_incomplete",
        )
    for migration in known:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise UnusableDatabase(
                f"Migration {migration.number} ({migration.name}) was applied with another text than this program "
                "has. Nothing was changed.",
                code="database_differs",
            )
    return [migration for migration in known if migration.number not in applied]


async def newest(tx: Tx) -> int:
    """The number of the newest migration that the database has had: another process may have applied it since."""
    row = await tx.one("migrations.newest")
    assert row is not None
    return int(row["number"])


def _for_engine(text: str, engine: str) -> str:
    lines = []
    for line in text.splitlines():
        stripped = line.lstrip()
        marked = next((name for name in _ENGINES if stripped.startswith(f"--{name}:")), None)
        if marked == engine:
            lines.append(stripped.removeprefix(f"--{marked}:"))
        elif marked is None and not stripped.startswith("--"):
            lines.append(line if engine == "sqlite" else _postgres_types(line))
    return "\n".join(lines)


def _postgres_types(line: str) -> str:
    return _TYPE.sub(lambda match: _POSTGRES_TYPES[match.group(1)], line)
