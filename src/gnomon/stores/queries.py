"""The named SQL: read once from ``sql/<noun>.sql``, one text for both engines, and never composed elsewhere.

A query starts at ``-- name: <words>`` and is called ``<noun>.<words>``. Parameters are ``:name``. ``@lease_seconds``
is replaced by the domain's formula (DSP-4), ``@unfinished_run`` by the run that locks the schedule at hand, ``@draws`` by what holds back who reads the audit, and a
line ``@<words>`` by the query of that name before it. A line that starts with ``--sqlite:`` or ``--postgres:`` is read by
that engine alone; an engine's own folder (``postgres/sql``) replaces a query of the same name.

A query with a line ``-- rows: <column> <kind>, ...`` is a *set query*: it runs once for a whole list of rows, which it
reads ``FROM @rows``, with ``:column`` for a column of the row at hand. Several statements in it, separated by ``;``,
run one after the other over the same rows. How the rows get in is the engine's affair. A line ``-- shared: <column>, ...``
names those that the rows of one batch mostly have in common: they are then given once instead of with each row. Only what
is written may be shared, not what a row is found by: else an engine could look for all rows of one value. A line
``-- gathered: <column>, <count>`` names the last column, a text: rows that follow each other and are alike in all others are
one row to the query, with their texts joined by commas, and ``:count`` of them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from gnomon.domain.lease import LEASE_SECONDS_SQL

_NAME = re.compile(r"^--\s*name:\s*(\w+)\s*$")
_ROWS = re.compile(r"^--\s*rows:\s*(.+?),?\s*$")
_SHARED = re.compile(r"^--\s*shared:\s*(.+?),?\s*$")
_GATHERED = re.compile(r"^--\s*gathered:\s*(\w+),\s*(\w+)\s*$")
PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_OWN_LINE = re.compile(r"^\s*--(sqlite|postgres):(.*)$")
ROWS = "@rows"
_AGAIN = re.compile(r"^@(\w+)$", re.MULTILINE)
_KINDS = frozenset({"text", "int", "real"})
# A schedule keeps the run it let through last, and holds it as its lock while that is unfinished (RUN-3).
_UNFINISHED = (
    "(SELECT runs.id FROM runs WHERE runs.id = schedules.in_flight_run_id AND runs.finished_at IS NULL)"
)
# A transaction holds a lock before it draws its first number for the audit: what it is for is said at `audit.settled`.
_DRAWS = """(
    SELECT CASE WHEN current_setting('gnomon.draws', true) IS DISTINCT FROM log::text THEN set_config(
        'gnomon.draws',
        log::text || pg_advisory_xact_lock_shared(
            log::int, (coalesce(pg_sequence_last_value(log), 0) / 1000)::bit(32)::int
        )::text,
        true
    ) END
    FROM (SELECT 'audit_seq_seq'::regclass::oid AS log) AS named
) AS draws"""
_MACROS = {"@lease_seconds": LEASE_SECONDS_SQL, "@unfinished_run": _UNFINISHED, "@draws": _DRAWS}


def _is_head(line: str) -> bool:
    return any(head.match(line) for head in (_ROWS, _SHARED, _GATHERED))


class Column(NamedTuple):
    """One column of the rows of a set query; ``kind`` is ``text``, ``int`` or ``real``."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Query:
    """A named query: its statements (one, unless it is a set query), its parameters in the order of their first use.

    ``rows`` are the columns of a set query; empty for any other. ``shared`` are the numbers of those that its rows may
    have in common. ``counted`` is what a query that gathers its rows calls how many there were; empty for any other.
    """

    name: str
    statements: tuple[str, ...]
    parameters: tuple[str, ...]
    rows: tuple[Column, ...] = ()
    shared: tuple[int, ...] = ()
    counted: str = ""

    @property
    def text(self) -> str:
        """The statement of a query that has one."""
        (only,) = self.statements
        return only


def picker(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What takes the values of these names out of a mapping, in order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


@cache
def load(engine: str) -> Mapping[str, Query]:
    """All named queries as ``engine`` (``sqlite`` or ``postgres``) reads them, read once in a process."""
    found: dict[str, Query] = {}
    here = files("gnomon.stores")
    for folder in (here / "sql", here / engine / "sql"):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda f: f.name):
                if file.name.endswith(".sql"):
                    found.update(_parse(file, engine))
    return MappingProxyType(found)


def _parse(file: Traversable, engine: str) -> dict[str, Query]:
    noun = file.name.removesuffix(".sql")
    blocks: dict[str, list[str]] = {}
    current: list[str] | None = None
    for written in file.read_text("utf-8").splitlines():
        line = _OWN_LINE.sub(lambda own: own.group(2) if own.group(1) == engine else "--", written)
        match = _NAME.match(line)
        if match:
            name = f"{noun}.{match.group(1)}"
            if name in blocks:
                raise ValueError(f"{name} stands twice in {file.name}")
            current = blocks.setdefault(name, [])
        elif current is not None and (_is_head(line) or not line.lstrip().startswith("--")):
            current.append(line)
    said: dict[str, str] = {}
    found: dict[str, Query] = {}
    for name, lines in blocks.items():
        text = "\n".join(line for line in lines if not _is_head(line)).strip().rstrip(";").rstrip()
        for macro, value in _MACROS.items():
            text = text.replace(macro, value)
        text = said[name] = _AGAIN.sub(lambda match: said[f"{noun}.{match.group(1)}"], text)
        found[name] = _query(name, text, lines)
    return found


def _query(name: str, text: str, lines: list[str]) -> Query:
    given = ", ".join(match.group(1) for line in lines if (match := _ROWS.match(line)))
    parameters = tuple(dict.fromkeys(PARAMETER.findall(text)))
    if not given:
        return Query(name, (text,), parameters)
    rows = tuple(_column(name, column) for column in given.split(","))
    counted = _counted(name, rows, lines)
    missing = set(parameters) - {column.name for column in rows} - {counted}
    if missing:
        raise ValueError(f"{name} uses {sorted(missing)}, which its rows don't have")
    statements = tuple(statement.strip() for statement in text.split(";") if statement.strip())
    shared = _shared(name, rows, statements, lines)
    return Query(name, statements, tuple(column.name for column in rows), rows, shared, counted)


def _shared(
    name: str, rows: tuple[Column, ...], statements: tuple[str, ...], lines: list[str]
) -> tuple[int, ...]:
    given = ", ".join(match.group(1) for line in lines if (match := _SHARED.match(line)))
    shared = {word.strip() for word in given.split(",") if word.strip()}
    found_by = {word for text in statements for word in PARAMETER.findall(text.partition(ROWS)[2])}
    wrong = shared - {column.name for column in rows} | shared & found_by
    if wrong:
        raise ValueError(f"{name} can't share {sorted(wrong)}: no columns, or what its rows are found by")
    return tuple(number for number, column in enumerate(rows) if column.name in shared)


def _counted(name: str, rows: tuple[Column, ...], lines: list[str]) -> str:
    for line in lines:
        if match := _GATHERED.match(line):
            if match.group(1) != rows[-1].name or rows[-1].kind != "text":
                raise ValueError(
                    f"{name} can't gather {match.group(1)}: it is not the last column, and a text"
                )
            return match.group(2)
    return ""


def _column(name: str, text: str) -> Column:
    column, _, kind = text.strip().partition(" ")
    if kind not in _KINDS:
        raise ValueError(f"{name}: the column {column} of its rows has the kind {kind!r}")
    return Column(column, kind)
