"""Named queries as PostgreSQL gets them: numbered parameters, and the rows of a set query as one array a column.

So a batch is one statement and one round trip, however many rows it has. Several statements over the same rows become
one as well, each but the last a data-modifying WITH: they then see the same snapshot, so none may read what another
writes.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from gnomon.stores.database import Value
from gnomon.stores.queries import PARAMETER, ROWS, Query, picker

_TYPES = {"text": "text", "int": "bigint", "real": "double precision"}
_CHANGES = "UPDATE "


class Statement:
    """A query that runs once for its parameters."""

    __slots__ = ("name", "text", "values")

    def __init__(self, query: Query) -> None:
        numbers = {name: number for number, name in enumerate(query.parameters, 1)}
        self.name = query.name
        self.text = PARAMETER.sub(lambda match: f"${numbers[match.group(1)]}", query.text)
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

    def steps(self, taken: int) -> list[str]:
        """Its statements, where so many parameters are taken by others before it."""
        arrays = ", ".join(f"${taken + n}::{_TYPES[kind]}[]" for n, kind in enumerate(self._kinds, 1))
        names = ", ".join(f"{name}_" for name in self._columns)
        return [step.replace(ROWS, f"unnest({arrays}) AS given({names})") for step in self._steps]

    @property
    def width(self) -> int:
        """How many parameters it takes."""
        return len(self._columns)

    def arrays(self, rows: Iterable[Mapping[str, Value]]) -> list[list[Value]]:
        """The rows as one list for each column; empty where there is no row."""
        given = list(rows)
        if not given:
            return []
        if self._in_order:
            given.sort(key=itemgetter(self._columns[0]))
        return [[row[name] for row in given] for name in self._columns]


class Catalogue:
    """All named queries in PostgreSQL's text, made once for all connections of a database."""

    __slots__ = ("_together", "plain", "sets")

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self.plain = {name: Statement(query) for name, query in queries.items() if not query.rows}
        self.sets = {name: SetStatement(query) for name, query in queries.items() if query.rows}
        self._together: dict[tuple[str, ...], str] = {}

    def together(self, statements: Sequence[SetStatement]) -> str:
        """Several set queries as one statement, whose answer is the last one's."""
        names = tuple(statement.name for statement in statements)
        text = self._together.get(names)
        if text is None:
            steps: list[str] = []
            taken = 0
            for statement in statements:
                steps += statement.steps(taken)
                taken += statement.width
            first = ", ".join(f"step_{number} AS ({step})" for number, step in enumerate(steps[:-1], 1))
            text = self._together[names] = f"WITH {first} {steps[-1]}" if first else steps[-1]
        return text
