"""What a command loads: a command line is as fast as what it imports is little, and a count of modules is never flaky."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.product import gnomon

pytestmark = pytest.mark.process

PROGRAM = """
import atexit, gc, json, sys
atexit.register(lambda: print(json.dumps([sorted(sys.modules), gc.get_freeze_count()]), file=sys.stderr))
from gnomon.__main__ import main
main()
"""


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


def test_the_end_of_a_command_is_no_time_to_tidy_up(place: Path) -> None:
    """Python would look four times through all that was imported, which takes longer than the command's own work."""
    _, left_alone = loaded("schedules", "list", cwd=place)
    assert left_alone > 100_000
