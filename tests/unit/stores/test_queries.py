"""The named SQL: how files are read, and that what the stores call is there with the parameters it takes."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from gnomon.domain.lease import LEASE_SECONDS_SQL
from gnomon.stores import queries
from gnomon.stores.queries import Column, Query, load
from gnomon.stores.sqlite.statements import SetStatement as SqliteSet

ENGINES = ("sqlite", "postgres")
SOURCES = sorted(Path(str(files("gnomon.stores"))).rglob("*.sql"))


def parse(folder: Path, text: str, engine: str = "sqlite") -> dict[str, Query]:
    file = folder / "noun.sql"
    file.write_text(text, "utf-8")
    return queries._parse(file, engine)


def test_a_query_runs_from_its_name_to_the_next(tmp_path: Path) -> None:
    found = parse(
        tmp_path,
        "-- What the file is about.\n\n-- name: one\nSELECT :a,\n  -- a remark\n  :b, :a;\n\n--name:two\nSELECT 2;\n",
    )
    assert found == {
        "noun.one": Query("noun.one", ("SELECT :a,\n  :b, :a",), ("a", "b")),
        "noun.two": Query("noun.two", ("SELECT 2",), ()),
    }


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Otherwise the second would silently win."""
    with pytest.raises(ValueError, match=r"noun\.one stands twice"):
        parse(tmp_path, "-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n")


def test_text_before_the_first_name_belongs_to_nobody(tmp_path: Path) -> None:
    assert parse(tmp_path, "SELECT 1;\n-- name: one\nSELECT 2;\n") == {
        "noun.one": Query("noun.one", ("SELECT 2",), ())
    }


@pytest.mark.parametrize(("engine", "last"), [("sqlite", "LIMIT 1"), ("postgres", "LIMIT 1\n FOR UPDATE")])
def test_a_line_may_belong_to_one_engine(tmp_path: Path, engine: str, last: str) -> None:
    (query,) = parse(
        tmp_path, "-- name: one\nSELECT 1\nLIMIT 1\n--postgres: FOR UPDATE\n;\n", engine
    ).values()
    assert query.text == f"SELECT 1\n{last}"


def test_a_cast_is_no_parameter(tmp_path: Path) -> None:
    (query,) = parse(tmp_path, "-- name: one\nSELECT :a::text, x::bigint, :b_2;\n").values()
    assert query.parameters == ("a", "b_2")


def test_the_lease_is_the_domain_s_formula(tmp_path: Path) -> None:
    """DSP-4."""
    (query,) = parse(tmp_path, "-- name: one\nSELECT @lease_seconds AS lease;\n").values()
    assert query.text == f"SELECT {LEASE_SECONDS_SQL} AS lease"


def test_a_set_query_has_rows_and_may_have_several_statements(tmp_path: Path) -> None:
    text = "-- name: one\n-- rows: a text, b int,\n-- rows: c real\nINSERT INTO t SELECT :a FROM @rows;\nUPDATE u SET b = :b FROM @rows;\n"
    (query,) = parse(tmp_path, text).values()
    assert query.statements == ("INSERT INTO t SELECT :a FROM @rows", "UPDATE u SET b = :b FROM @rows")
    assert query.rows == (Column("a", "text"), Column("b", "int"), Column("c", "real"))
    assert query.parameters == ("a", "b", "c")
    with pytest.raises(ValueError, match="expected 1"):
        assert query.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("-- rows: a text\nSELECT :b FROM @rows;", r"noun\.one uses \['b'\]"),
        ("-- rows: a blob\nSELECT :a FROM @rows;", r"the column a of its rows has the kind 'blob'"),
        (
            "-- rows: a text, b int\n-- gathered: a, n\nSELECT :n FROM @rows;",
            r"can't gather a: it is not the last",
        ),
        ("-- rows: a text, b int\n-- gathered: b, n\nSELECT :n FROM @rows;", r"can't gather b: .* a text"),
    ],
)
def test_a_set_query_that_can_t_be_run_is_refused_when_it_is_read(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        parse(tmp_path, f"-- name: one\n{text}\n")


def test_a_set_query_may_gather_its_rows(tmp_path: Path) -> None:
    text = "-- name: one\n-- rows: a int, b text\n-- gathered: b, n\nINSERT INTO t SELECT :a, :b, :n FROM @rows;\n"
    (query,) = parse(tmp_path, text).values()
    assert query.counted == "n"
    assert query.parameters == ("a", "b")
    alike = SqliteSet(query).gathered([(1, "x"), (1, "y"), (2, "z"), (1, "w")])
    assert alike == [(1, "x,y", 2), (2, "z", 1), (1, "w", 1)]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_query_has_a_text_and_no_macro_left_in_it(engine: str) -> None:
    for query in load(engine).values():
        for text in query.statements:
            assert text
            assert "@" not in text.replace("@rows", ""), query.name
            assert ("@rows" in text) is bool(query.rows), query.name
            assert ";" not in text, query.name


# where one statement of an engine stands for several of the other (Tx.at_once)
OF_POSTGRES_ALONE = {"runs.claim_at_once"}


def test_both_engines_have_the_same_queries_with_the_same_parameters() -> None:
    """PRF-3: a store's method calls the same statement in the same way on either."""
    sqlite, postgres = load("sqlite"), load("postgres")
    assert sqlite.keys() | OF_POSTGRES_ALONE == postgres.keys()
    assert not sqlite.keys() & OF_POSTGRES_ALONE
    for name, query in sqlite.items():
        assert set(query.parameters) == set(postgres[name].parameters), name


def _called() -> set[str]:
    """The names in the stores' own texts; ``f"noun.{name}"`` stands for each word in the same file."""
    found: set[str] = set()
    for file in Path(str(files("gnomon.stores"))).rglob("*.py"):
        text = file.read_text("utf-8")
        found |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', text))
        for noun in re.findall(r'f"([a-z_]+)\.\{', text):
            known = {name for name in load("sqlite") if name.startswith(f"{noun}.")}
            found |= known & {f"{noun}.{word}" for word in re.findall(r'"([a-z_]+)"', text)}
    return found


def _parts() -> set[str]:
    """The queries that are part of others."""
    return {
        f"{file.stem}.{name}"
        for file in Path(str(files("gnomon.stores"))).rglob("*.sql")
        for name in re.findall(r"^@(\w+)$", file.read_text("utf-8"), re.MULTILINE)
    }


def test_every_query_that_a_store_names_is_there_and_every_one_there_is_named() -> None:
    """HOUSE rule 5: no dead SQL, and no name that is only found missing at night."""
    known = set(load("postgres"))
    nouns = {name.split(".")[0] for name in known}
    called = {name for name in _called() if name.split(".")[0] in nouns}
    assert called - known == set()
    assert known - called - _parts() == set()


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_no_clock_but_the_one_that_a_test_can_set(file: Path) -> None:
    """HOUSE rule 3: every instant in SQL is now_us(), which the adapter provides."""
    text = re.sub(r"--.*", "", file.read_text("utf-8")).lower()
    for other in (
        "current_timestamp",
        "current_time",
        "current_date",
        "now()",
        "strftime",
        "unixepoch",
        "datetime(",
    ):
        assert other not in text
