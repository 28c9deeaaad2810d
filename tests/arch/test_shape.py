"""The shape of the source: small files, small functions, no names that say nothing, a docstring each (HOUSE section 4)."""

import ast

import pytest

from support.source import ROOT, Source, functions, modules

FILE_LINES = 300
BODY_LINES = 40
BANNED = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
# What may be longer, up to which length, and why. A reason that has gone is taken out.
LONGER_FILES: dict[str, tuple[int, str]] = {}
LONGER_FUNCTIONS: dict[str, tuple[int, str]] = {
    "services/engine.py:__init__": (75, "a list: the parts of one process, each built once, top to bottom"),
    "services/slot_plan.py:_fired": (50, "the columns of one row, one to a line"),
    "services/pending.py:account": (45, "one case after the other, each with its reason"),
    "stores/history.py:_run": (50, "the fields of one record, one to a line"),
    "wiring/__init__.py:open_center": (
        50,
        "a list: the parts of the program, each built once, top to bottom",
    ),
}
MODULES = list(modules())


def too_long(source: Source) -> dict[str, int]:
    """Files and functions past their bound, with their length."""
    found = {}
    lines = len(source.text.splitlines())
    if lines > LONGER_FILES.get(source.name, (FILE_LINES, ""))[0]:
        found[source.name] = lines
    for name, length in functions(source):
        key = f"{source.name}:{name}"
        if length > LONGER_FUNCTIONS.get(key, (BODY_LINES, ""))[0]:
            found[key] = length
    return found


def says_nothing(source: Source) -> list[str]:
    """Parts of a file's path, and classes, whose names say nothing of what they are."""
    parts = {part for piece in source.name.removesuffix(".py").split("/") for part in piece.split("_")}
    classes = [
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and node.name.lower().endswith(("manager", "helper", "util", "utils"))
    ]
    return sorted(parts & BANNED) + classes


def test_files_and_functions_stay_small() -> None:
    """HOUSE rule 10: a file that grows has two subjects."""
    assert {name: n for source in MODULES for name, n in too_long(source).items()} == {}


@pytest.mark.parametrize("folder", ["src/gnomon", "tests", "bench"])
def test_names_say_what_is_there(folder: str) -> None:
    """HOUSE rule 10."""
    assert {source.name: found for source in modules(ROOT / folder) if (found := says_nothing(source))} == {}


@pytest.mark.parametrize("folder", ["src/gnomon", "tests"])
def test_a_module_says_what_lives_in_it(folder: str) -> None:
    """HOUSE rule 11."""
    silent = [s.name for s in modules(ROOT / folder) if not ast.get_docstring(s.tree) and s.text.strip()]
    assert silent == []


def test_an_exception_is_still_one() -> None:
    """What has become short enough is taken out of the lists, and every exception has a reason."""
    files = {source.name: len(source.text.splitlines()) for source in MODULES}
    bodies = {f"{s.name}:{name}": length for s in MODULES for name, length in functions(s)}
    assert {name for name in LONGER_FILES if files.get(name, 0) <= FILE_LINES} == set()
    assert {name for name in LONGER_FUNCTIONS if bodies.get(name, 0) <= BODY_LINES} == set()
    assert all(reason for _, reason in [*LONGER_FILES.values(), *LONGER_FUNCTIONS.values()])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("services/x.py", "x = 1\n" * 301),
        ("services/x.py", "def f():\n" + "    x = 1\n" * 41),
        ("services/x.py", "class A:\n    async def f(self):\n" + "        x = 1\n" * 41),
    ],
)
def test_what_is_too_long_would_be_noticed(name: str, text: str) -> None:
    """PRF-4."""
    assert too_long(Source(name, text, ast.parse(text)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("services/utils.py", ""),
        ("services/time_utils.py", ""),
        ("common/x.py", ""),
        ("services/x.py", "class RunManager: pass"),
    ],
)
def test_a_name_that_says_nothing_would_be_noticed(name: str, text: str) -> None:
    """PRF-4."""
    assert says_nothing(Source(name, text, ast.parse(text)))
    assert not says_nothing(Source("stores/database.py", "", ast.parse("")))
