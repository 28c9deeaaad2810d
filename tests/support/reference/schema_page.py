"""`docs/reference/schema.md`: the tables of a fresh database, read from the database itself, with the migrations' words."""

import re
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw

from gnomon.adapters.clock import SystemClock
from gnomon.stores.sqlite.opening import prepare
from support.reference.markdown import cell, table

HEAD = """
# The schema

For whoever reads the database by hand, or backs it up. It is no interface: columns change with migrations, the
[API](api.md) does not. Reading a live file is safe with the `sqlite3` program in a process of its own; write nothing.

Instants are integers of microseconds since 1970 in UTC (`…_at`, `…_until`, `…_us`), durations integers of seconds
(`…_seconds`), JSON is text. `datetime(next_fire_at / 1000000, 'unixepoch')` reads an instant.
"""


def schema_page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.db"
        prepare(path, SystemClock())
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            lines = [HEAD.strip(), "", *_tables(database), "## Triggers", "", *_triggers(database)]
        finally:
            database.close()
    return "\n".join(lines) + "\n"


def _tables(database: apsw.Connection) -> Iterator[str]:
    words = _words()
    names = database.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    ).fetchall()
    for (found,) in names:
        name = str(found)
        yield f"## {name}"
        yield ""
        if words.get(name):
            yield words[name]
            yield ""
        yield from table(("column", "type", "null", "default"), _columns(database, name))
        indexes = [sql for (sql,) in _of_table(database, "index", name) if sql]
        yield ""
        for sql in indexes:
            yield f"- `{cell(sql.removeprefix('CREATE '))}`"
        if indexes:
            yield ""


def _columns(database: apsw.Connection, name: str) -> Iterator[tuple[str, ...]]:
    for _, column, kind, not_null, default, key in database.execute(f"PRAGMA table_info({name})"):
        marks = f"{kind.lower()}{', key' if key else ''}"
        yield (
            f"`{column}`",
            marks,
            "no" if not_null or key else "yes",
            "" if default is None else f"`{default}`",
        )


def _of_table(database: apsw.Connection, kind: str, name: str) -> list[tuple[Any, ...]]:
    query = "SELECT sql FROM sqlite_schema WHERE type = ? AND tbl_name = ? ORDER BY name"
    return database.execute(query, (kind, name)).fetchall()


def _triggers(database: apsw.Connection) -> Iterator[str]:
    found = database.execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
    )
    rows = []
    for name, of, sql in found:
        said = re.search(r"RAISE\(ABORT, '([^']*)'\)", sql)
        rows.append((f"`{name}`", f"`{of}`", said.group(1) if said else ""))
    yield from table(("trigger", "table", "refuses, saying"), rows)


def _words() -> dict[str, str]:
    """The comment that stands right above each table or view in the migrations."""
    words: dict[str, str] = {}
    for file in sorted(files("gnomon.stores.migrations").iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".sql"):
            continue
        said: list[str] = []
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("-- "):
                said.append(line[3:].strip())
                continue
            made = re.match(r"CREATE (?:TABLE|VIEW) (\w+)", line)
            if made and said:
                words[made.group(1)] = cell(" ".join(said))
            said = []
    return words
