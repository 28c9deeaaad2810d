"""What a command loads: a command line is as fast as what it imports is little, and a count of modules is never flaky."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gnomon.edges.http.nouns import NOUNS
from support.product import gnomon

pytestmark = pytest.mark.process

PROGRAM = """
import atexit, gc, json, sys
atexit.register(lambda: print(json.dumps([sorted(sys.modules), gc.get_freeze_count()]), file=sys.stderr))
from gnomon.__main__ import main
main()
"""
SERVING = {"uvicorn", "uvloop", "mcp", "mcp_types", "gnomon.edges.server", "gnomon.edges.ws.connect"}
WORKING = {"httpcore2", "pydantic_ai", "gnomon.runtimes.http"}
WEB = {"fastapi", "starlette", "prometheus_client", "gnomon.edges.http.app"}
OTHER_COMMANDS = {"gnomon.cli.work", "gnomon.cli.serving", "gnomon.cli.tasks", "gnomon.cli.apply"}
OTHER_DATABASE = {"asyncpg", "gnomon.stores.postgres.database"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in it."""
    folder = tmp_path_factory.mktemp("loaded")
    assert gnomon("migrate", cwd=folder).returncode == 0
    return folder


def loaded(*words: str, cwd: Path) -> tuple[set[str], int]:
    """The modules that are there when this command ends, and how many things Python leaves alone at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *told, last = done.stderr.splitlines()
    assert (done.returncode, [line for line in told if line.startswith("Error")]) == (0, []), done.stderr
    modules, left_alone = json.loads(last)
    return set(modules), left_alone


def nouns(modules: set[str]) -> set[str]:
    """The nouns whose routes were made."""
    return {noun for noun in NOUNS if f"gnomon.edges.http.{noun}" in modules}


@pytest.mark.parametrize("words", [("--help",), ("schedules", "create", "--help")])
def test_help_loads_nothing_heavy(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A CLI starts fast: what the help needs is typer, and none of the server's libraries."""
    heavy = {"asyncio", "pydantic_settings", "apsw", "httpx2", "yaml", "structlog"}
    modules, _ = loaded(*words, cwd=tmp_path)
    assert modules & (heavy | SERVING | WORKING | WEB | OTHER_DATABASE) == set()


@pytest.mark.parametrize(
    ("words", "noun"),
    [(("schedules", "list"), "schedules"), (("runs", "list"), "runs"), (("settings",), None)],
)
def test_a_command_loads_the_noun_that_it_asks_for(
    place: Path, words: tuple[str, ...], noun: str | None
) -> None:
    """ADR 0017: it is the same application, and what nobody asks it for is not made."""
    modules, _ = loaded(*words, cwd=place)
    assert nouns(modules) == ({noun} if noun else set())
    assert modules & OTHER_COMMANDS == set()
    assert modules & (SERVING | WORKING | OTHER_DATABASE) == set()


def test_what_answers_no_http_makes_no_application(place: Path) -> None:
    modules, _ = loaded("verify", cwd=place)
    assert modules & (WEB | SERVING | WORKING | OTHER_DATABASE) == set()


def test_the_end_of_a_command_is_no_time_to_tidy_up(place: Path) -> None:
    """Python would look four times through all that was imported, which takes longer than the command's own work."""
    _, left_alone = loaded("schedules", "list", cwd=place)
    assert left_alone > 10_000


def test_a_server_has_everything_from_its_start() -> None:
    """What a command leaves out must not wait for the first request that somebody sends to a server."""
    program = """
import asyncio, json, sys, tempfile
from gnomon.settings import Settings
from gnomon.wiring import open_center

async def start(folder):
    center = await open_center(Settings(database_url=f"sqlite:///{folder}/gnomon.db"))
    center.app
    await center.stop()

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(start(folder))
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    modules = set(json.loads(done.stdout))
    assert nouns(modules) == set(NOUNS)
    assert modules >= {"gnomon.runtimes.http", "gnomon.edges.ws.connect", "gnomon.edges.mcp.door"}
    assert modules & {"mcp", "mcp_types", "pydantic_ai"} == set(), (
        "the door imports its SDK when an agent comes"
    )
