"""The tree of commands: whole, or as much of it as one command needs."""

import pytest
import typer

from gnomon.cli.app import PARTS, build

EVERY = [name for _, names in PARTS.values() for name in names]


def commands(app: typer.Typer) -> list[str]:
    return list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_registers_the_commands_that_it_is_called_for(part: str) -> None:
    """One that it did not tell would be there in the help, and could not be called."""
    for name in PARTS[part][1]:
        assert sorted(commands(build(name))) == sorted(PARTS[part][1])


@pytest.mark.parametrize("first", [None, "--help", "--version", "schedule", ""])
def test_without_a_command_the_whole_tree_is_there(first: str | None) -> None:
    assert sorted(commands(build(first))) == sorted(EVERY)
