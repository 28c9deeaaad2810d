"""The examples of ``--help``: what stands there can be copied, also from a narrow terminal."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from gnomon.cli.app import build

SAID = "For example:"
NARROW = 58  # what a terminal of 60 columns shows in one line


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _commands(each)


HELPED = [each for each in _commands(typer.main.get_command(build())) if SAID in str(each.help)]


@pytest.mark.parametrize("command", HELPED, ids=lambda command: command.name)
def test_an_example_is_not_broken_where_a_shell_would_end_it(command: Any) -> None:
    _, _, example = command.help.partition(SAID)
    lines = example.strip().splitlines()
    assert "gnomon" in lines[0], "it has its own lines"
    assert max(map(len, lines)) <= NARROW
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_there_are_examples() -> None:
    assert {"create", "claim", "preview", "crontab"} <= {command.name for command in HELPED}
