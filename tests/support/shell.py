"""A person's terminal inside the test's own process, which is what makes many commands cheap."""

import json
import logging
import os
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import structlog
import typer
from typer import testing

from gnomon.cli.app import build

_program = cache(build)
_whole = cache(typer.main.get_command)


def invoked(*words: str, **how: Any) -> Any:
    """What typer's runner says of a command; its hundred commands are put together once and not for each."""
    with patch.object(testing, "_get_command", _whole):
        return testing.CliRunner().invoke(_program(), words, prog_name="gnomon", **how)


class Done(NamedTuple):
    """How a command ended and what it said."""

    returncode: int
    stdout: str
    stderr: str


class Shell:
    """A person's terminal: `text` and `data` run a command that has to end with 0, `refused` one that must not.

    The commands run in this process, which is what makes so many of them cheap; what a whole process does, the other
    files here look at.
    """

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        self._env = {"COLUMNS": "80", "NO_COLOR": "1", **env}

    def run(self, *words: str, stdin: str = "", **env: str) -> Done:
        cleared = {name: None for name in os.environ if name.startswith("GNOMON_")}
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            with chdir(self.folder):
                result = invoked(*words, input=stdin, env={**cleared, **self._env, **env})
        finally:
            root.handlers[:], root.level = handlers, level
            structlog.reset_defaults()
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def text(self, *words: str) -> str:
        found = self.run(*words)
        assert found.returncode == 0, found.stderr
        assert all(len(line) <= 80 for line in found.stdout.splitlines()), found.stdout
        return found.stdout

    def data(self, *words: str) -> Any:
        found = self.run(*words, "--json")
        assert found.returncode == 0, found.stderr
        assert found.stderr == ""
        return json.loads(found.stdout)

    def refused(self, *words: str) -> str:
        found = self.run(*words)
        assert (found.returncode, found.stdout) == (1, ""), found
        assert found.stderr.startswith("Error: ")
        assert "Traceback" not in found.stderr
        return found.stderr
