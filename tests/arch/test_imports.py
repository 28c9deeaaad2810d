"""Imports point down (HOUSE section 2): the contracts of pyproject.toml hold, and each goes red when it is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.source import PROGRAM, ROOT

PLANTED = {
    "an upward import": ("domain/streak.py", "import gnomon.stores.runs", "Imports point down"),
    "one from the lowest layer": ("cadence/jitter.py", "import gnomon.domain.ids", "Imports point down"),
    "a sideways import": ("stores/slots.py", "import gnomon.runtimes.answers", "Imports point down"),
    "a clock in the core": ("domain/misfire.py", "import time", "The pure core knows no machine"),
    "settings in a service": ("services/loop.py", "import gnomon.settings", "Settings are read by wiring"),
    "a second door to SQLite": ("services/loop.py", "import apsw", "apsw has one door"),
    "a second door to zones": ("domain/misfire.py", "import zoneinfo", "zoneinfo has one door"),
    "a folder that has no layer": ("elsewhere/__init__.py", '"""Nowhere."""', "Imports point down"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The contracts over the tree in ``folder``, which has a ``src`` and a ``pyproject.toml``."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PROGRAM, tmp_path / "src" / "gnomon", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_are_kept(copy: Path) -> None:
    """HOUSE section 2."""
    done = lint(copy)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED.values(), ids=PLANTED.keys())
def test_a_contract_goes_red_when_it_is_broken(copy: Path, module: str, line: str, contract: str) -> None:
    """PRF-4: a check that can't fail checks nothing."""
    path = copy / "src" / "gnomon" / module
    path.parent.mkdir(exist_ok=True)
    before = path.read_text("utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{line}\n", "utf-8")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert contract in done.stdout
