"""Jobs from the command line, over the database itself (JOB-1, UI-4)."""

from pathlib import Path

import pytest

from support.product import gnomon
from support.shell import Shell

pytestmark = pytest.mark.process
CREATE = ("jobs", "create", "--role", "pm", "--cadence", "0 9 * * 1-5", "--zone", "Europe/Berlin")


def test_a_job_from_its_making_to_its_end(tmp_path: Path) -> None:
    """JOB-1, IDM-1, SCH-13."""
    gnomon("migrate", cwd=tmp_path)
    shell = Shell(tmp_path)
    assert "There are no jobs yet." in shell.run("jobs", "list").stderr
    assert "dedup_key" in shell.refused(*CREATE, "--slug", "digest")
    make = (*CREATE, "--slug", "digest", "--dedup-key", "{{job}}-{{date}}", "--payload", '{"repo": "a/b"}')
    made = shell.data(*make)
    assert (made["slug"], made["payload"], made["cadence"]["zone"]) == (
        "digest",
        {"repo": "a/b"},
        "Europe/Berlin",
    )
    assert 'There is a job "digest" already.' in shell.refused(*make)
    assert "digest" in shell.text("jobs", "list", "--role", "pm")
    assert shell.data("jobs", "list", "--role", "dev")["items"] == []
    assert shell.data("jobs", "show", "digest")["id"] == made["id"]
    assert (
        shell.data("jobs", "edit", "digest", "--grace", "90", "--set", "payload.n=1")["grace_seconds"] == 90
    )
    assert shell.data("jobs", "show", "digest")["payload"] == {"n": 1}  # replaced whole
    assert "Disabled job digest" in shell.text("jobs", "disable", "digest")
    assert shell.run("jobs", "next", "digest").stderr.strip() == "No slot is to come: it is disabled."
    assert "Its next slot: 20" in shell.text("jobs", "enable", "digest")
    told = shell.text("jobs", "show", "digest").splitlines()
    assert [line.partition(":")[0] for line in told[:5]] == ["id", "slug", "name", "enabled", "role"]
    assert any(line.startswith("next_fire_at:") and "09:00:00 in Europe/Berlin)" in line for line in told)
    assert len(shell.data("jobs", "next", "digest", "--count", "2")["items"]) == 2
    assert shell.run("jobs", "triggers", "digest").stderr.strip() == "No slot has come yet."
    assert shell.data("jobs", "edit", "digest", "--at", "2097-01-07 09:00")["cadence"]["unit"] == "once"
    document = shell.text("export")
    assert "jobs:" in document
    (tmp_path / "house.yaml").write_text(document)
    assert "Nothing to do" in shell.text("apply", "-f", "house.yaml", "--yes")
    shell.text("jobs", "delete", "digest")
    assert "There is no job" in shell.refused("jobs", "show", "digest")


def test_flags_that_mean_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    wrong = shell.run("jobs", "create", "--slug", "x", "--payload", "{")
    assert (wrong.returncode, "--payload has to be JSON" in wrong.stderr) == (2, True)
    assert shell.run("jobs", "create", "--zone", "Europe/Berlin").returncode == 2
