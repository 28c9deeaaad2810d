"""Named queries as SQLite gets them: numbered parameters, the instant among them, a batch of rows as one of them."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import cast

from gnomon.stores.database import Rows, Value
from gnomon.stores.queries import PARAMETER, ROWS, Query, picker

_NOW = "now_us()"
_NUMBER = re.compile(r"\?(\d+)")
_but_the_last = itemgetter(slice(-1))


class Statement:
    """A named query as SQLite gets it: numbered parameters, and ``now_us()`` as one of them.

    A function of ours would be called back from inside SQLite for each row and place, and each call would fight with
    the event loop for the interpreter. As a parameter it has one value for the whole of a statement, as
    statement_timestamp() has on PostgreSQL.
    """

    __slots__ = ("text", "uses_now", "values")

    def __init__(self, query: Query) -> None:
        numbers = {name: number for number, name in enumerate(query.parameters, 1)}
        self.uses_now = _NOW in query.text
        text = query.text.replace(_NOW, f"?{len(numbers) + 1}")
        self.text = PARAMETER.sub(lambda match: f"?{numbers[match.group(1)]}", text)
        self.values = picker(query.parameters)


class SetStatement:
    """A set query as SQLite gets it: its rows as one JSON parameter, and what they have in common as one each.

    So a batch is one step inside SQLite, during which the event loop has the interpreter; bound row by row it would be
    let go of and fought for a hundred times.
    """

    __slots__ = ("_names", "_query", "_shared", "_texts", "_values")

    def __init__(self, query: Query) -> None:
        self._query = query
        self._names = [column.name for column in query.rows]
        self._shared = query.shared
        if query.counted:  # of what is gathered there is mostly one row, and nothing is found by it
            self._names.append(query.counted)
            self._shared = tuple(range(len(self._names)))
        self._texts: dict[tuple[tuple[int, ...], bool], tuple[tuple[str, int], ...]] = {}
        self._values = picker(query.parameters)

    def tuples(self, rows: Rows) -> list[tuple[Value, ...]]:
        """The rows as tuples in the order of the columns."""
        return [row if isinstance(row, tuple) else self._values(row) for row in rows]

    def gathered(self, rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
        """The rows as the query has them: those made one that are alike in all but their last column, where it gathers."""
        if not self._query.counted:
            return rows
        found: list[tuple[Value, ...]] = []
        for alike, together in groupby(rows, key=_but_the_last):
            texts = [cast("str", row[-1]) for row in together]
            found.append((*alike, ",".join(texts), len(texts)))
        return found

    def apart(
        self, rows: Sequence[tuple[Value, ...]]
    ) -> tuple[tuple[int, ...], list[Value], Sequence[object]]:
        """The numbers of the columns that these rows have in common, their values, and what is each row's own."""
        columns = list(zip(*rows, strict=True))
        shared = tuple(
            number for number in self._shared if columns[number].count(columns[number][0]) == len(rows)
        )
        if not shared:
            return (), [], rows
        own = [column for number, column in enumerate(columns) if number not in shared]
        each: Sequence[object] = list(zip(*own, strict=True)) if own else [()] * len(rows)
        return shared, [columns[number][0] for number in shared], each

    def texts(self, shared: tuple[int, ...] = (), *, returning: bool = True) -> tuple[tuple[str, int], ...]:
        """The statements, each with how many parameters it takes of: the rows, the instant, the columns in ``shared``."""
        texts = self._texts.get((shared, returning))
        if texts is None:
            places: dict[str, str] = {}
            for number, name in enumerate(self._names):
                if number in shared:
                    places[name] = f"?{3 + shared.index(number)}"
                else:
                    places[name] = f"(given.value ->> {number - sum(one < number for one in shared)})"
            said = [text if returning else text.partition("RETURNING")[0] for text in self._query.statements]
            texts = self._texts[shared, returning] = tuple(self._text(text, places) for text in said)
        return texts

    @staticmethod
    def _text(text: str, places: Mapping[str, str]) -> tuple[str, int]:
        text = text.replace(ROWS, "(SELECT value FROM jsonb_each(?1)) AS given").replace(_NOW, "?2")
        text = PARAMETER.sub(lambda match: places[match.group(1)], text)
        return text, max(int(number) for number in _NUMBER.findall(text))
