"""Named queries as PostgreSQL gets them: numbered parameters, and the rows of a set query as one array a column.

So a batch is one statement and one round trip, however many rows it has. Several statements over the same rows become
one as well, each but the last a data-modifying WITH: they then see the same snapshot, so none may read what another
writes.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from operator import itemgetter
from typing import NamedTuple

from gnomon.stores import migrations
from gnomon.stores.database import Value
from gnomon.stores.queries import PARAMETER, ROWS, Query, picker

_TYPES = {"text": "text", "int": "bigint", "real": "double precision"}
_CHANGES = "UPDATE "
_TABLE = re.compile(r"CREATE TABLE (\w+)")
_FUNCTION = re.compile(r"CREATE FUNCTION (\w+)\(")
Qualifier = Callable[[str], str]


class Statement:
    """A query that runs once for its parameters."""

    __slots__ = ("name", "text", "values")

    def __init__(self, query: Query, qualified: Qualifier) -> None:
        numbers = {name: number for number, name in enumerate(query.parameters, 1)}
        self.name = query.name
        self.text = qualified(PARAMETER.sub(lambda match: f"${numbers[match.group(1)]}", query.text))
        self.values = picker(query.parameters)


class SetStatement:
    """A query that runs once for a whole list of rows."""

    __slots__ = ("_columns", "_in_order", "_kinds", "_steps", "name", "touched")

    def __init__(self, query: Query) -> None:
        self.name = query.name
        self._columns = tuple(column.name for column in query.rows)
        self._kinds = tuple(column.kind for column in query.rows)
        # a name of the table's own would be ambiguous beside it
        self._steps = tuple(PARAMETER.sub(r"given.\1_", step) for step in query.statements)
        self.touched = {step.split()[1 if step.startswith(_CHANGES) else 2] for step in self._steps}
        # two batches that change the same rows lock them in the same order, wherever the plan follows the array
        self._in_order = any(step.startswith(_CHANGES) for step in self._steps)

    def steps(self, taken: int, part: "Part") -> list[str]:
        """Its statements, where so many parameters are taken by others before it.

        One that depends on a guard takes a parameter more: the guard's ids, of which the first step lets some through.
        """
        arrays = ", ".join(f"${taken + n}::{_TYPES[kind]}[]" for n, kind in enumerate(self._kinds, 1))
        names = ", ".join(f"{name}_" for name in self._columns)
        given = f"unnest({arrays}) AS given({names})"
        if part is Part.GUARDED:
            every = f"unnest({arrays}, ${taken + self.width + 1}::text[]) AS every({names}, of_)"
            given = f"(SELECT {names} FROM {every} WHERE of_ IN (SELECT id FROM step_1)) AS given"  # noqa: S608 - names of ours
        return [step.replace(ROWS, given) for step in self._steps]

    @property
    def width(self) -> int:
        """How many parameters it takes."""
        return len(self._columns)

    def arrays(
        self, rows: Iterable[Mapping[str, Value]], of: Sequence[str] | None = None
    ) -> list[list[Value]]:
        """The rows as one list for each column, and one of the guard's ids; empty where there is no row."""
        given = list(rows)
        if not given:
            return []
        more: list[list[Value]] = []
        if of is not None:
            more = [list(of)]
        elif self._in_order:
            given.sort(key=itemgetter(self._columns[0]))
        return [[row[name] for row in given] for name in self._columns] + more


class Part(Enum):
    """What a set query is among those that are sent together: by itself, the guard, or guarded row by row."""

    WHOLE = auto()
    GUARD = auto()
    GUARDED = auto()


class PutOff(NamedTuple):
    """A set query that waits to be sent, with its rows."""

    statement: SetStatement
    arrays: list[list[Value]]
    part: Part = Part.WHOLE


class Catalogue:
    """All named queries in PostgreSQL's text, made once for all connections of a database.

    Each table and function of ours is named with its ``schema``: a statement then needs no search path, which would
    have to be set in a transaction around it, as a pooler forgets what was set outside one.
    """

    __slots__ = ("_qualified", "_together", "plain", "sets")

    def __init__(self, queries: Mapping[str, Query], schema: str) -> None:
        self._qualified = _qualifier(schema)
        self.plain = {
            name: _plain(query, self._qualified) for name, query in queries.items() if not query.rows
        }
        self.sets = {name: _set(query) for name, query in queries.items() if query.rows}
        self._together: dict[tuple[tuple[str, Part], ...], str] = {}

    def together(self, put_off: Sequence[PutOff]) -> str:
        """Several set queries as one statement, whose answer is the guard's ids, else the last one's."""
        names = tuple((each.statement.name, each.part) for each in put_off)
        text = self._together.get(names)
        if text is None:
            text = self._together[names] = self._qualified(_combined(put_off))
        return text


# the text of a query is the same for each database with the same schema
_plain = cache(Statement)
_set = cache(SetStatement)


def _combined(put_off: Sequence[PutOff]) -> str:
    steps: list[str] = []
    taken = 0
    for each in put_off:
        steps += each.statement.steps(taken, each.part)
        taken += each.statement.width + (each.part is Part.GUARDED)
    if put_off[0].part is Part.GUARD:
        steps.append("SELECT id FROM step_1")
    first = ", ".join(f"step_{number} AS ({step})" for number, step in enumerate(steps[:-1], 1))
    return f"WITH {first} {steps[-1]}" if first else steps[-1]


@cache
def _qualifier(schema: str) -> Qualifier:
    """What puts the schema before the tables and functions that the migrations make."""
    made = [migration.text for migration in migrations.load("postgres")]
    tables = "|".join(sorted({name for text in made for name in _TABLE.findall(text)} | {"migrations"}))
    functions = "|".join(sorted({name for text in made for name in _FUNCTION.findall(text)}))
    ours = re.compile(
        rf"\b((?:FROM|JOIN|INTO|UPDATE)\s+)({tables})\b|(,\s+)({tables})(?=\s+AS\b)|\b()({functions})(?=\()"
    )

    def qualified(found: re.Match[str]) -> str:
        before, name = (part for part in found.groups() if part is not None)
        return f"{before}{schema}.{name}"

    return lambda text: ours.sub(qualified, text)
