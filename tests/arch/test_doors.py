"""One door each: what only one module or folder may touch (HOUSE section 2, rules 3, 5 and 7)."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.source import PROGRAM, ROOT, Source, calls, imports, imports_package, modules

PACKAGES = {
    # package: who may import it, by name or by folder
    "apsw": ("stores/sqlite/",),
    "asyncpg": ("stores/postgres/",),
    "zoneinfo": ("cadence/civil.py",),
    "secrets": ("adapters/clock.py", "cli/"),
    "time": ("adapters/clock.py", "adapters/postgres_gate.py", "cli/"),
}
NOWHERE = ("sqlite3", "pysqlite3", "aiosqlite", "pytz", "dateutil", "requests")
READS_THE_CLOCK = re.compile(
    r"(^|\.)(datetime\.(now|utcnow|today|fromtimestamp)|date\.today|time\.(time|time_ns|monotonic|monotonic_ns"
    r"|perf_counter|perf_counter_ns|clock_gettime|localtime|gmtime|sleep))$"
)
MAY_READ_THE_CLOCK = {
    "adapters/clock.py": "it is the door",
    "adapters/postgres_gate.py": "a script of its own, which imports nothing of the program",
    "cli/runs.py": "a person's terminal follows a run: it has nothing else to do than to look again",
}
EDGES = ("http", "ws", "mcp", "web")


def strangers(source: Source) -> list[str]:
    """The packages that this module imports past their door."""
    found = [
        package
        for package, doors in PACKAGES.items()
        if imports_package(source, package) and not source.name.startswith(doors)
    ]
    return found + [package for package in NOWHERE if imports_package(source, package)]


def looks_at_the_clock(source: Source) -> list[str]:
    """Where this module reads a clock of the machine."""
    return [call for call in calls(source) if READS_THE_CLOCK.search(call)]


def reaches_too_far(source: Source) -> list[str]:
    """What an edge imports of storage, of runtimes or of another edge."""
    edge = next((name for name in EDGES if source.name.startswith(f"edges/{name}/")), None)
    if not source.name.startswith("edges/"):
        return []
    forbidden = ["gnomon.stores", "gnomon.runtimes", "gnomon.adapters"]
    if edge is not None:
        forbidden += [f"gnomon.edges.{other}" for other in EDGES if other != edge]
    return [package for package in forbidden if imports_package(source, package)]


def holds_sql(source: Source) -> list[str]:
    """Statements in the text of a module, docstrings apart."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    return [
        text for text in texts if re.match(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE)\s", text)
    ]


MODULES = list(modules())
CHECKS: dict[str, Callable[[Source], list[str]]] = {
    "a package past its door": strangers,
    "a look at the machine's clock": lambda s: [] if s.name in MAY_READ_THE_CLOCK else looks_at_the_clock(s),
    "an edge that reaches too far": reaches_too_far,
    "SQL outside of the stores": lambda s: (
        [] if s.name.startswith(("stores/", "domain/lease.py")) else holds_sql(s)
    ),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_nobody_goes_past_a_door(check: Callable[[Source], list[str]]) -> None:
    """HOUSE section 2, rules 3, 5 and 7."""
    assert {source.name: found for source in MODULES if (found := check(source))} == {}


@pytest.mark.parametrize(
    ("check", "name", "text"),
    [
        ("a package past its door", "services/loop.py", "import apsw"),
        ("a package past its door", "domain/ids.py", "from zoneinfo import ZoneInfo"),
        ("a package past its door", "services/loop.py", "import time"),
        ("a package past its door", "stores/sqlite/x.py", "import sqlite3"),
        ("a package past its door", "cli/x.py", "import sqlite3.dbapi2 as d"),
        ("a look at the machine's clock", "services/x.py", "import datetime\ndatetime.datetime.now()"),
        (
            "a look at the machine's clock",
            "services/x.py",
            "from datetime import datetime\ndatetime.now(UTC)",
        ),
        (
            "a look at the machine's clock",
            "services/x.py",
            "import time as t\nimport time\nx = time.monotonic",
        ),
        ("an edge that reaches too far", "edges/http/x.py", "from gnomon.stores import runs"),
        ("an edge that reaches too far", "edges/http/x.py", "from gnomon.edges import ws"),
        ("an edge that reaches too far", "edges/web/x.py", "import gnomon.edges.http.answers"),
        ("SQL outside of the stores", "services/x.py", 'x = "SELECT 1 FROM runs"'),
    ],
)
def test_each_of_these_would_be_noticed(check: str, name: str, text: str) -> None:
    """PRF-4."""
    assert CHECKS[check](Source(name, text, ast.parse(text))) != []


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_nothing_beside_the_program_opens_a_database_with_another_library(folder: str) -> None:
    """HOUSE rule 7: two SQLite libraries in one process break each other's locks."""
    others = ("sqlite3", "pysqlite3", "aiosqlite")
    here = Path(__file__).name
    found = [
        source.name
        for source in modules(ROOT / folder)
        if not source.name.endswith(here) and any(imports_package(source, other) for other in others)
    ]
    assert found == []


def test_an_exception_to_the_rule_of_the_clock_is_still_one() -> None:
    """A reason that has gone is taken out of the list."""
    named = {source.name for source in MODULES if looks_at_the_clock(source)}
    assert set(MAY_READ_THE_CLOCK) == named & set(MAY_READ_THE_CLOCK)


def test_imports_are_seen_in_every_form() -> None:
    text = "import a.b\nfrom c.d import e\nfrom f import (g, h as i)\nif True:\n    import j as k\n"
    found = set(imports(Source("x.py", text, ast.parse(text))))
    assert {"a.b", "c.d", "c.d.e", "f.g", "f.h", "j"} <= found
    assert (PROGRAM / "cadence" / "civil.py").exists()
