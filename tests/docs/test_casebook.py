"""The casebook's table is whole: each case stands in it once, and each test that it names is there and names the case."""

import ast
import json
import re
from dataclasses import dataclass
from functools import cache

import pytest

from support.source import ROOT

TESTS = ROOT / "tests"
IDS = (TESTS / "casebook_ids.txt").read_text("utf-8").split()
PROBES = "unit/cadence/test_casebook.py::test_probe_gives_the_instants_of_the_casebook"
_ROW = re.compile(r"^\| (\w{2,3}-\d\d) \| (\w+) \|(.*)\|(.*)\|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py::\w+)`")


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    id: str
    stands: str
    tests: tuple[str, ...]
    note: str


def read(text: str) -> list[Case]:
    """The rows of a table, in their order."""
    return [
        Case(case, stands, tuple(_TEST.findall(by)), note.strip())
        for case, stands, by, note in _ROW.findall(text)
    ]


CASES = read((TESTS / "casebook.md").read_text("utf-8"))


@cache
def functions(file: str) -> dict[str, str]:
    """The tests of a file by name, each with its text; nothing where there is no such file."""
    path = TESTS / file
    text = path.read_text("utf-8") if path.is_file() else ""
    return {
        node.name: ast.get_source_segment(text, node) or ""
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@cache
def probed() -> frozenset[str]:
    """The cases that are probes of a cadence: data, which one test runs."""
    probes = json.loads((TESTS / "unit/cadence/casebook.json").read_text("utf-8"))
    return frozenset(probe["id"].rpartition(".")[0] for probe in probes)


def faults(case: Case) -> list[str]:
    """What is wrong with one row."""
    found = []
    for test in case.tests:
        file, _, name = test.partition("::")
        text = functions(file).get(name)
        if text is None:
            found.append(f"{test} is not there")
        elif test == PROBES:
            found += [] if case.id in probed() else [f"there is no probe {case.id}"]
        elif case.id not in text and case.id.replace("-", "_") not in text:
            found.append(f"{test} does not name {case.id}")
    if case.stands == "proven" and not case.tests:
        found.append("proven by nothing")
    if case.stands == "later" and not case.note:
        found.append("later, but with what?")
    if case.stands not in {"proven", "later"}:
        found.append(f"{case.stands} is no word of this table")
    return found


def test_every_case_stands_in_the_table_once_and_in_order() -> None:
    assert len(IDS) == len(set(IDS))
    assert [case.id for case in CASES] == IDS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_row_says_what_is_so(case: Case) -> None:
    assert faults(case) == []


def test_every_probe_is_a_case_of_the_list() -> None:
    assert probed() <= set(IDS)


@pytest.mark.parametrize(
    "row",
    [
        "| mis-04 | proven | | |",
        "| mis-04 | later | | |",
        "| mis-04 | done | | |",
        "| mis-04 | proven | `service/no_such_file.py::test_it` | |",
        "| mis-04 | proven | `service/test_health.py::test_it` | |",
        "| mis-04 | proven | `service/test_health.py::test_a_dispatcher_that_never_started_is_told` | |",
        f"| mis-04 | proven | `{PROBES}` | |",
    ],
)
def test_a_row_that_is_wrong_is_noticed(row: str) -> None:
    [case] = read(row)
    assert faults(case)
