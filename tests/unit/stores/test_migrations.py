"""Numbered migrations: one text for both engines, their order, what is pending, what is refused (OPS-3)."""

import pytest

from gnomon.domain.errors import UnusableDatabase
from gnomon.stores import migrations
from gnomon.stores.migrations import Migration, load, pending

ONE, TWO, THREE = (Migration(n, f"step_{n}", f"-- {n}", f"sum{n}") for n in (1, 2, 3))
KNOWN = [ONE, TWO, THREE]
TEXT = """-- A remark.
CREATE TABLE t (
    id INTEGER PRIMARY KEY, -- beside the code
--sqlite: a TEXT,
--postgres: a BYTEA,
    b INTEGER
)
  --sqlite: STRICT
;
"""


def test_each_engine_reads_its_own_lines() -> None:
    assert migrations._for_engine(TEXT, "sqlite").split() == (
        [
            "CREATE",
            "TABLE",
            "t",
            "(",
            "id",
            "INTEGER",
            "PRIMARY",
            "KEY,",
            "--",
            "beside",
            "the",
            "code",
            "a",
            "TEXT,",
            "b",
            "INTEGER",
            ")",
            "STRICT",
            ";",
        ]
    )
    assert migrations._for_engine(TEXT, "postgres").split() == (
        [
            "CREATE",
            "TABLE",
            "t",
            "(",
            "id",
            "BIGINT",
            "PRIMARY",
            "KEY,",
            "--",
            "beside",
            "the",
            "code",
            "a",
            "BYTEA,",
            "b",
            "BIGINT",
            ")",
            ";",
        ]
    )


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_they_are_numbered_from_one_without_a_gap(engine: str) -> None:
    """OPS-3."""
    found = load(engine)
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    assert len({migration.checksum for migration in found}) == len(found)
    assert all(migration.name for migration in found)


def test_each_does_something_on_one_of_the_engines() -> None:
    """OPS-3: one that moves nothing where a file is the database still keeps older programs away from it."""
    assert all(
        one.text.strip() or other.text.strip()
        for one, other in zip(*map(load, ("sqlite", "postgres")), strict=True)
    )


def test_a_checksum_is_over_what_the_engine_reads() -> None:
    """A line for PostgreSQL alone does not make a SQLite file look foreign."""
    sqlite, postgres = load("sqlite")[0], load("postgres")[0]
    assert sqlite.checksum != postgres.checksum
    assert load("sqlite")[0].checksum == sqlite.checksum


@pytest.mark.parametrize(
    ("applied", "left"),
    [
        ({}, KNOWN),
        ({1: "sum1"}, [TWO, THREE]),
        ({1: "sum1", 2: "sum2", 3: "sum3"}, []),
    ],
)
def test_what_is_pending(applied: dict[int, str], left: list[Migration]) -> None:
    """OPS-3."""
    assert pending(applied, KNOWN) == left


@pytest.mark.parametrize(
    ("applied", "code"),
    [
        ({1: "sum1", 4: "sum4"}, "database_newer"),
        ({1: "sum1", 3: "sum3"}, "database_incomplete"),  # each was written for what the one before it left
        ({4: "sum4"}, "database_newer"),
        ({1: "other"}, "database_differs"),
        ({1: "sum1", 2: "sum2", 3: ""}, "database_differs"),
    ],
)
def test_what_is_refused(applied: dict[int, str], code: str) -> None:
    """OPS-3: a newer database, or one that another text made, is left alone."""
    with pytest.raises(UnusableDatabase) as caught:
        pending(applied, KNOWN)
    assert caught.value.code == code
    assert "Nothing was changed." in caught.value.message
