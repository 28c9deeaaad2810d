"""``gnomon verify`` as people and programs run it: the exit code, the sentences, the document (OPS-7)."""

import json
from pathlib import Path

import apsw
import pytest

from gnomon.domain.breach import Invariant
from support.product import gnomon

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database in which three schedules are."""
    gnomon("migrate", cwd=tmp_path)
    gnomon("agents", "create", "--slug", "words", "--command", "wc -w", cwd=tmp_path)
    for name in ("one", "two", "three"):
        made = gnomon(
            "schedules", "create", "--name", name, "--agent", "words", "--cadence", "0 0 1 1 *", cwd=tmp_path
        )
        assert made.returncode == 0, made.stderr
    return tmp_path


def test_what_was_judged_is_told_in_words(tmp_path: Path) -> None:
    gnomon("migrate", cwd=tmp_path)
    assert gnomon("keys", "create", "--scope", "*", cwd=tmp_path).returncode == 0
    assert gnomon("verify", cwd=tmp_path).stdout.rstrip().endswith(" hold over 1 API key, 1 audit entry.")


def damage(folder: Path, statement: str) -> None:
    connection = apsw.Connection(str(folder / "gnomon.db"))
    connection.execute(statement)
    connection.close()


def test_a_clean_database_is_said_to_be_and_what_was_judged(folder: Path) -> None:
    """OPS-7: exit 0."""
    told = gnomon("verify", cwd=folder)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"Clean: {len(Invariant)} invariants hold over 3 schedules")
    assert told.stdout.rstrip().endswith(" audit entries.")
    answer = json.loads(gnomon("verify", "--json", cwd=folder).stdout)
    assert (answer["clean"], answer["breaches"], answer["left_out"]) == (True, [], [])
    assert answer["rows"]["schedules"] == 3
    assert {invariant["name"] for invariant in answer["invariants"]} == {each.value for each in Invariant}


def test_a_breach_is_named_with_its_rows_and_the_rest_is_counted(folder: Path) -> None:
    """OPS-7: exit 1."""
    damage(folder, "UPDATE schedules SET in_flight_run_id = 'run_none'")
    told = gnomon("verify", "--limit", "2", cwd=folder)
    assert told.returncode == 1
    assert told.stdout.count("lock_without_run (RUN-3, A11)\n") == 2
    assert "    schedules sch_" in told.stdout
    assert f"3 breaches of 1 of {len(Invariant)} invariants over 3 schedules" in told.stdout
    assert "There is 1 more of lock_without_run: --limit 3 names all." in told.stderr
    answer = json.loads(gnomon("verify", "--json", cwd=folder).stdout)
    assert not answer["clean"]
    breach = answer["breaches"][0]
    assert (breach["invariant"], breach["rules"]) == ("lock_without_run", "RUN-3, A11")
    assert breach["sentence"].endswith("is locked by run_none, which is not there.")
    assert [row["table"] for row in breach["rows"]] == ["schedules", "runs"]
    counted = {each["name"]: each["breaches"] for each in answer["invariants"]}
    assert counted["lock_without_run"] == 3


def test_where_there_is_no_database_none_is_made(tmp_path: Path) -> None:
    """CONTRACT: exit 3, not reachable."""
    told = gnomon("verify", "--json", cwd=tmp_path)
    assert told.returncode == 3
    assert json.loads(told.stderr)["code"] == "no_database"
    assert list(tmp_path.iterdir()) == []
    assert gnomon("verify", "--limit", "0", cwd=tmp_path).returncode == 2
