"""The board from the command line: a worker that speaks nothing else does a task from claim to report (BRD)."""

from pathlib import Path

import pytest

from support.product import gnomon
from support.shell import Shell

pytestmark = pytest.mark.process


def test_a_shell_works_on_the_board(tmp_path: Path) -> None:
    """BRD-1 to BRD-3, BRD-8, IDM-2."""
    gnomon("migrate", cwd=tmp_path)
    shell = Shell(tmp_path)
    make = ("tasks", "create", "--role", "pm", "--title", "Look", "--dedup-key", "look/1")
    first = shell.data(*make)["id"]
    assert shell.data(*make)["id"] == first
    second = shell.data("tasks", "create", "--role", "dev", "--title", "Then", "--needs", first)["id"]
    assert "Look" in shell.text("tasks", "list")
    [granted] = shell.data("tasks", "claim", "--role", "pm", "--instance", "pm-1")["items"]
    assert (granted["task"]["id"], granted["fence"]) == (first, 1)
    renewed = shell.data("tasks", "renew", first, "--fence", "1", "--note", "half")
    assert renewed["task"]["last_report"]["note"] == "half"
    held = shell.refused("tasks", "edit", first, "--title", "Other")
    assert '"pm-1" holds it until' in held
    assert f"gnomon tasks release {first}" in held
    report = ("tasks", "report", first, "--status", "done", "--result", '{"found": 2}', "--fence")
    assert "was never granted" in shell.refused(*report, "7")
    assert shell.data(*report, "1")["last_report"]["result"] == {"found": 2}
    assert second in shell.text("tasks", "claim", "--role", "dev", "--instance", "dev-1")
    assert shell.data("tasks", "release", second, "--reason", "wrong one")["possibly_half_done"]
    nothing = shell.run("tasks", "claim", "--role", "qa", "--instance", "qa-1", "--wait", "0")
    assert (nothing.returncode, nothing.stderr.strip()) == (0, "There is nothing to do for qa now.")
    cycle = shell.refused("tasks", "edit", first, "--needs", second)
    assert f"{first} needs {second} needs {first}" in cycle.replace("\n", " ")
    assert shell.data("tasks", "edit", second, "--status", "cancelled")["status"] == "cancelled"
    again = shell.text("tasks", "edit", second, "--status", "backlog")
    assert again.strip() == f"Changed task {second}; it is in the backlog of dev."
    shell.text("tasks", "delete", second)
    assert shell.data("tasks", "show", first)["status"] == "done"
