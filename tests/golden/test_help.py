"""The help of every command, as it stands in 80 columns. `UPDATE_GOLDEN=1 pytest tests/golden` writes it anew."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gnomon.cli.app import build
from support.shell import invoked

FOLDER = Path(__file__).parent / "cli"


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*words, name))


ALL = list(commands(typer.main.get_command(build()), ()))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_is_as_it_was(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    for name in ("GNOMON_URL", "GNOMON_API_KEY", "GNOMON_KEY", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    result = invoked(*words, "--help")
    assert result.exit_code == 0
    text = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip() + "\n"
    assert all(len(line) <= 80 for line in text.splitlines())
    file = FOLDER / ("_".join(("gnomon", *words)) + ".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_help_is_left_of_a_command_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == {"_".join(("gnomon", *words)) for words in ALL}
