"""Named queries as PostgreSQL gets them: numbered parameters, and the rows of a set query as one array a column.

A column that all rows have in common is one value instead. So a batch is one statement and one round trip, however many
rows it has. Several statements over the same rows become one as well, each but the last a data-modifying WITH: they
then see the same snapshot, so none may read what another writes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from gnomon.stores import migrations
from gnomon.stores.database import Rows, Value
from gnomon.stores.postgres.columns import TYPES, pack, unpacked
from gnomon.stores.queries import PARAMETER, ROWS, Query, picker

_CHANGES = "UPDATE "
_OF_A_ROW = re.compile(r"given\.(\w+)")
_FORMS = 8
# Every text lies below it, which the planner does not know: it takes a range for one row in two hundred. So it looks up
# each of the given rows by its key, instead of reading a table whole that was small when the plan was made.
_LAST = "\U0010ffff"
_TABLE = re.compile(r"CREATE (?:TABLE|VIEW) (\w+)")
_FUNCTION = re.compile(r"CREATE FUNCTION (\w+)\(")
_SEQUENCE = r"(')(audit_seq_seq)(?='::regclass)"  # made with its table, under no name of its own
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

    __slots__ = (
        "_columns",
        "_counted",
        "_few",
        "_forms",
        "_in_order",
        "_names",
        "_shared",
        "_steps",
        "_values",
        "name",
        "touched",
    )

    def __init__(self, query: Query) -> None:
        self.name = query.name
        self._columns = query.rows
        self._names = tuple(column.name for column in query.rows)
        self._values = picker(self._names)
        self._shared = query.shared
        self._counted = query.counted
        self._forms: set[tuple[int, ...]] = set()
        # a name of the table's own would be ambiguous beside it
        self._steps = tuple(PARAMETER.sub(r"given.\1_", step) for step in query.statements)
        self.touched = {step.split()[1 if step.startswith(_CHANGES) else 2] for step in self._steps}
        # two batches that change the same rows lock them in the same order, wherever the plan follows the array
        self._in_order = any(step.startswith(_CHANGES) for step in self._steps)
        first = next((column.name for column in query.rows if column.kind == "text"), "")
        self._few = f"{first}_ COLLATE \"C\" BETWEEN '' AND '{_LAST}'"

    def put_off(self, rows: Rows, part: "Part", of: Sequence[str] = ()) -> "PutOff | None":
        """These rows, to be sent: a text for each column, or a value where all have one; ``None`` without any row.

        ``of`` are the guard's ids of a part that is guarded, one for each row.
        """
        given: list[Any] = list(rows)
        if not given:
            return None
        if not isinstance(given[0], tuple):
            given = [self._values(row) for row in given]
        if self._in_order and part is not Part.GUARDED:
            given.sort(key=itemgetter(0))
        columns = list(zip(*given, strict=True))
        shared = self._in_common(columns, len(given))
        own = [number for number in range(len(columns)) if number not in shared]
        kinds, each = [self._columns[number].kind for number in own], [columns[number] for number in own]
        if part is Part.GUARDED:
            kinds, each = [*kinds, "text"], [*each, tuple(of)]
        packed = pack(kinds, each)
        values = [*packed.columns, packed.after, packed.null, *(given[0][number] for number in shared)]
        return PutOff(self, values, part, shared)

    def _in_common(self, columns: Sequence[Any], count: int) -> tuple[int, ...]:
        """The columns that all rows have in common. Each set of them is a statement of its own, so they are few."""
        form = tuple(number for number in self._shared if columns[number].count(columns[number][0]) == count)
        if form not in self._forms:
            if len(self._forms) == _FORMS:
                return ()
            self._forms.add(form)
        return form

    @property
    def width(self) -> int:
        """How many parameters it has, by itself: its columns and the two marks."""
        return len(self._columns) + 2

    def steps(self, taken: int, put_off: "PutOff") -> list[str]:
        """Its statements, where so many parameters are taken by others before it.

        One that depends on a guard takes a parameter more: the guard's ids, of which the first step lets some through.
        """
        own = [column for number, column in enumerate(self._columns) if number not in put_off.shared]
        kinds, names = [column.kind for column in own], [f"{column.name}_" for column in own]
        conditions = [self._few] if self._in_order else []
        if put_off.part is Part.GUARDED:
            kinds, names = [*kinds, "text"], [*names, "of_"]
            # IS TRUE: looked up in a hash, where a join would compare each row with each id
            conditions.append("(of_ IN (SELECT id FROM step_1)) IS TRUE")
        marks = taken + len(kinds)
        arrays = ", ".join(
            unpacked(kind, f"${taken + number}", f"${marks + 1}", f"${marks + 2}")
            for number, kind in enumerate(kinds, 1)
        )
        given = f"unnest({arrays}) AS given({', '.join(names)})"
        common = {
            f"{self._names[number]}_": f"${marks + 2 + place}::{TYPES[self._columns[number].kind]}"
            for place, number in enumerate(put_off.shared, 1)
        }
        if self._counted:
            given = self._gathered(arrays, names, conditions, common)
        elif conditions:
            every = f"unnest({arrays}) AS every({', '.join(names)})"
            given = f"(SELECT * FROM {every} WHERE {' AND '.join(conditions)}) AS given"  # noqa: S608 - names of ours
        return [
            _OF_A_ROW.sub(lambda found: common.get(found.group(1), found.group()), step).replace(ROWS, given)
            for step in self._steps
        ]

    def _gathered(
        self, arrays: str, names: Sequence[str], conditions: Sequence[str], common: Mapping[str, str]
    ) -> str:
        """The rows with those made one that are alike in all but their last column, in the order of their first ones."""
        *alike, last = [name for name in names if name != "of_"]
        told = [f"{value} AS {name}" for name, value in common.items()] + alike
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        by = f"GROUP BY {', '.join(alike)}" if alike else "HAVING count(*) > 0"
        return (
            f"(SELECT {', '.join(told)}, count(*) AS {self._counted}_, "  # noqa: S608 - likewise
            f"string_agg({last}, ',' ORDER BY place_) AS {last} "
            f"FROM unnest({arrays}) WITH ORDINALITY AS every({', '.join(names)}, place_) {where} {by} "
            "ORDER BY min(place_)) AS given"
        )


class Part(Enum):
    """What a set query is among those that are sent together: by itself, the guard, or guarded row by row."""

    WHOLE = auto()
    GUARD = auto()
    GUARDED = auto()


class PutOff(NamedTuple):
    """A set query that waits to be sent, with its parameters: its columns, their marks, the values that are shared."""

    statement: SetStatement
    values: list[Value]
    part: Part = Part.WHOLE
    shared: tuple[int, ...] = ()


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
        self._together: dict[tuple[tuple[str, Part, tuple[int, ...]], ...], str] = {}

    def together(self, put_off: Sequence[PutOff]) -> str:
        """Several set queries as one statement, whose answer is the guard's ids, else the last one's."""
        names = tuple((each.statement.name, each.part, each.shared) for each in put_off)
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
        steps += each.statement.steps(taken, each)
        taken += each.statement.width + (each.part is Part.GUARDED)
    if put_off[0].part is Part.GUARD:
        steps.append("SELECT id FROM step_1")
    first = ", ".join(f"step_{number} AS ({step})" for number, step in enumerate(steps[:-1], 1))
    return f"WITH {first} {steps[-1]}" if first else steps[-1]


@cache
def _qualifier(schema: str) -> Qualifier:
    """What puts the schema before the tables, functions and the sequence that the migrations make."""
    made = [migration.text for migration in migrations.load("postgres")]
    tables = "|".join(sorted({name for text in made for name in _TABLE.findall(text)} | {"migrations"}))
    functions = "|".join(sorted({name for text in made for name in _FUNCTION.findall(text)}))
    ours = re.compile(
        rf"\b((?:FROM|JOIN|INTO|UPDATE)\s+)({tables})\b|(,\s+)({tables})(?=\s+AS\b)|\b()({functions})(?=\()|{_SEQUENCE}"
    )

    def qualified(found: re.Match[str]) -> str:
        before, name = (part for part in found.groups() if part is not None)
        return f"{before}{schema}.{name}"

    return lambda text: ours.sub(qualified, text)
