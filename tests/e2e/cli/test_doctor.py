"""``gnomon doctor`` as people and programs run it: the exit code, the sentences, the document (IDM-4)."""

import json
from pathlib import Path

import pytest

from support.product import gnomon, up
from support.shell import Shell

pytestmark = pytest.mark.process
KEYED = ("--dedup-key", "words-{{date}}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database in which one schedule names its effects."""
    assert Shell(tmp_path).run("migrate").returncode == 0
    Shell(tmp_path).data("agents", "create", "--slug", "words", "--command", "wc -w")
    schedule(tmp_path, "keyed", *KEYED)
    return tmp_path


def schedule(folder: Path, name: str, *words: str) -> str:
    """Make a daily schedule; its id."""
    asked = ("schedules", "create", "--name", name, "--agent", "words", "--cadence", "0 9 * * *")
    return str(Shell(folder).data(*asked, *words)["id"])


def test_where_nothing_is_found_it_ends_well(folder: Path) -> None:
    """IDM-4: exit 0."""
    told = gnomon("doctor", cwd=folder)
    assert (told.returncode, told.stdout, told.stderr) == (0, "Nothing found.\n", "")
    answer = gnomon("doctor", "--json", cwd=folder)
    assert answer.returncode == 0
    assert json.loads(answer.stdout) == {"healthy": True, "counts": {}, "items": []}


def test_each_loop_whose_rerun_could_double_something_is_listed(folder: Path) -> None:
    """IDM-4: exit 1, with what, where and what to do."""
    resumed = schedule(folder, "resumed", "--set", "on_lost=resume")
    label = schedule(folder, "label", "--dedup-key", "v1.2.0")
    told = gnomon("doctor", cwd=folder)
    assert told.returncode == 1
    assert f"no_dedup_key: schedule resumed ({resumed})\n" in told.stdout
    assert "(on_lost: resume)" in told.stdout
    assert f"key_without_slot: schedule label ({label})\n" in told.stdout
    assert told.stdout.endswith("2 found.\n")
    assert "keyed" not in told.stdout
    answer = gnomon("doctor", "--json", cwd=folder)
    assert answer.returncode == 1
    found = json.loads(answer.stdout)
    assert (found["healthy"], found["counts"]) == (False, {"no_dedup_key": 1, "key_without_slot": 1})
    assert [item["where"]["id"] for item in found["items"]] == [resumed, label]
    assert set(found["items"][0]) == {"finding", "where", "what", "advice"}


def test_instants_are_told_as_everywhere_and_what_was_typed_is_quoted_as_everywhere(folder: Path) -> None:
    words = ("--agent", "words", "--cadence", "0 9,10 * * *", "--dedup-key", "x-{{date}}")
    assert gnomon("schedules", "create", "--name", "twice a day", *words, cwd=folder).returncode == 0
    told = " ".join(gnomon("doctor", cwd=folder).stdout.split())
    assert " 09:00:00Z and 20" in told
    assert "T09:00:00Z" not in told
    assert 'have the same dedup key "x-20' in told


def test_what_is_meant_to_be_so_can_be_left_out(folder: Path) -> None:
    """IDM-4: a label is a lawful key."""
    schedule(folder, "label", "--dedup-key", "v1.2.0")
    told = gnomon("doctor", "--ignore", "key_without_slot", cwd=folder)
    assert (told.returncode, told.stdout) == (0, "Nothing found.\n")
    wrong = gnomon("doctor", "--ignore", "nothing_of_this_name", cwd=folder)
    assert wrong.returncode == 2
    assert "key_without_slot" in wrong.stderr


def test_a_server_is_asked_as_well(folder: Path) -> None:
    """CONTRACT, CLI: the same answer, from a server."""
    schedule(folder, "plain")
    with up(folder) as product:
        made = gnomon("keys", "create", "--scope", "settings:read", "--json", cwd=folder)
        words = ("--url", product.started["address"], "--key", json.loads(made.stdout)["key"])
        answer = gnomon("doctor", *words, "--json", cwd=folder)
        assert answer.returncode == 1
        assert json.loads(answer.stdout)["counts"] == {"no_dedup_key": 1}


def test_without_a_database_nobody_is_there_to_be_looked_at(tmp_path: Path) -> None:
    """CONTRACT, CLI: exit 3."""
    assert gnomon("doctor", cwd=tmp_path).returncode == 3
