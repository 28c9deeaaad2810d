"""``gnomon import crontab`` as people run it: a plan, all or nothing, safe to repeat (CONTRACT, CLI)."""

import json
from pathlib import Path

import pytest

from support.processes import until
from support.product import gnomon, up

pytestmark = pytest.mark.process
GOOD = "MAILTO=ops\n0 3 * * * echo backup\n@daily cat%hello\n"
BAD = "* * * * * echo often\n@reboot echo up\n"


def imported(folder: Path, text: str, *words: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of an import from standard input."""
    done = gnomon("import", "crontab", "-", "--zone", "Europe/Berlin", *words, cwd=folder, stdin=text)
    return done.returncode, done.stdout, done.stderr


def schedules(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(gnomon("schedules", "list", "--json", cwd=folder).stdout)[
        "items"
    ]
    return found


def test_a_crontab_is_planned_made_and_made_again(tmp_path: Path) -> None:
    """SCH-13: the plan first; a second time there is nothing to do, and doctor is content."""
    code, told, notes = imported(tmp_path, GOOD, "--dry-run")
    assert (code, told.endswith("Would create 4 and change 0.\n")) == (0, True), notes
    assert "Line 1: MAILTO is left out" in notes
    assert schedules(tmp_path) == []
    code, _, complaint = imported(tmp_path, GOOD)
    assert (code, "add --yes" in complaint) == (2, True)
    code, told, _ = imported(tmp_path, GOOD, "--yes")
    assert (code, told.endswith("Created 4, changed 0.\n")) == (0, True)
    assert imported(tmp_path, GOOD, "--yes")[1].endswith("Nothing to do: everything is as the file says.\n")
    found = schedules(tmp_path)
    assert [schedule["query"] for schedule in found] == ["", "hello\n"]
    assert {json.dumps(schedule["cadence"]) for schedule in found} == {
        '{"cron": "0 3 * * *", "zone": "Europe/Berlin"}',
        '{"cron": "0 0 * * *", "zone": "Europe/Berlin"}',
    }
    assert gnomon("doctor", cwd=tmp_path).returncode == 0


def test_a_line_that_can_not_be_expressed_refuses_all_with_its_reason(tmp_path: Path) -> None:
    """CONTRACT, CLI: exit 1, the line and the way out."""
    code, told, complaint = imported(tmp_path, GOOD + BAD, "--yes")
    assert (code, told) == (1, "")
    assert "line 4: two slots would lie 60 seconds apart; the floor is 300" in complaint
    assert "line 5: a start of the machine is no slot" in complaint
    assert "--partly" in complaint
    code, _, complaint = imported(tmp_path, GOOD + BAD, "--yes", "--json")
    assert [error["field"] for error in json.loads(complaint)["errors"]] == ["line 4", "line 5"]
    code, told, notes = imported(tmp_path, GOOD + BAD, "--partly", "--yes")
    assert (code, told.endswith("Created 4, changed 0.\n")) == (0, True)
    assert "Line 4 is left out: two slots" in notes


def test_what_the_command_line_says_wrong_is_bad_usage(tmp_path: Path) -> None:
    """CONTRACT, CLI: exit 2."""
    for words in (("nowhere",), ("-", "--zone", "Mars/Base")):
        done = gnomon("import", "crontab", *words, "--yes", cwd=tmp_path, stdin=GOOD)
        assert done.returncode == 2, done.stderr


def test_an_imported_line_does_what_cron_did(tmp_path: Path) -> None:
    """CONTRACT, CLI: the shell runs the command, with the file's settings and its input."""
    text = 'WORD="a word"\n@daily echo "$WORD"; cat%from%crontab\n'
    assert imported(tmp_path, text, "--yes")[0] == 0
    [schedule] = schedules(tmp_path)
    run = gnomon("schedules", "run", str(schedule["id"]), "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    run_id = json.loads(run.stdout)["id"]
    with up(tmp_path) as product:
        until(lambda: product.ask(f"/v1/runs/{run_id}")[1]["status"] == "succeeded", "the run is done")
        assert product.ask(f"/v1/runs/{run_id}")[1]["output"] == "a word\nfrom\ncrontab\n"
