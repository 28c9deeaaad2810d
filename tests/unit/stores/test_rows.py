"""Rows that are written as tuples stand in the order of the columns of their queries."""

from typing import Any

import pytest

from gnomon.stores import queries, slots
from gnomon.stores.run_rows import Closing

ROWS: dict[str, Any] = {
    "slots.enter": slots.Entry,
    "slots.record": slots.Entry,
    "slots.advance": slots.Advance,
    "runs.close": Closing,
    "runs.close_plain": Closing,
}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_columns_of_its_query(engine: str, name: str) -> None:
    columns = tuple(column.name for column in queries.load(engine)[name].rows)
    assert ROWS[name]._fields == columns


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_rows_are_found_by_is_never_shared(engine: str) -> None:
    """An engine could look for all rows of one value, instead of each row by its key."""
    for query in queries.load(engine).values():
        for number in query.shared:
            assert all(
                f":{query.rows[number].name}" not in text.split(queries.ROWS, 1)[1]
                for text in query.statements
            )


@pytest.mark.parametrize("column", ["id", "nowhere"])
def test_sharing_what_can_t_be_shared_is_refused(column: str) -> None:
    lines = ["-- rows: id text, status text", f"-- shared: status, {column}"]
    text = "UPDATE runs SET status = :status FROM @rows WHERE id = :id"
    with pytest.raises(ValueError, match=column):
        queries._query("runs.end", text, lines)
