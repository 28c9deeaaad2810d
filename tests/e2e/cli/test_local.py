"""Commands that ask nobody: preview, settings, version; help, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.product import gnomon

pytestmark = pytest.mark.process


def test_preview_shows_local_time_offset_and_what_moved(tmp_path: Path) -> None:
    """CAD-8, CAD-4."""
    words = (
        "preview",
        "30 2 * * *",
        "--zone",
        "America/New_York",
        "--after",
        "2026-03-07T00:00Z",
        "--count",
        "2",
    )
    text = gnomon(*words, cwd=tmp_path)
    assert text.returncode == 0
    assert "2026-03-08 03:00:00  -04:00  2026-03-08 07:00:00Z  gap" in text.stdout
    assert all(len(line) <= 80 for line in text.stdout.splitlines()[:3])
    data = json.loads(gnomon(*words, "--json", cwd=tmp_path).stdout)
    assert data["items"][1]["at"] == "2026-03-08T07:00:00Z"
    assert data["items"][1]["offset"] == "-04:00"


def test_preview_takes_json_files_and_rrules(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"unit": "once", "at": "2026-12-24T18:00:00", "zone": "Europe/Berlin"}')
    after = ("--after", "2026-11-29T00:00:00Z", "--json")
    for words in (("@c.json",), ('{"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "at": "18:00"}',), ("@-",)):
        found = gnomon("preview", *words, *after, cwd=tmp_path, stdin="0 18 24 12 *")
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["items"]


def test_preview_takes_the_nicknames_of_cron(tmp_path: Path) -> None:
    """CAD-9: as `gnomon import crontab` does; a nickname is no file that should be there."""
    found = gnomon("preview", "@daily", "--after", "2026-11-29T00:00:00Z", "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["items"][0]["local_time"] == "2026-11-30T00:00:00"


def test_a_cadence_that_can_not_be_is_told_field_by_field(tmp_path: Path) -> None:
    cadence = '{"unit": "day", "every": 999, "at": "25:00", "zone": "Europe/Berln"}'
    told = gnomon("preview", cadence, cwd=tmp_path)
    assert told.returncode == 1
    for field in ("every:", "at:", "zone:"):
        assert f"  {field}" in told.stderr
    assert "Europe/Berlin" in told.stderr, "CAD-11: a near name is suggested"
    assert told.stdout == ""
    problem = json.loads(gnomon("preview", cadence, "--json", cwd=tmp_path).stderr)
    assert {error["field"] for error in problem["errors"]} == {"every", "at", "zone"}


@pytest.mark.parametrize(
    "words",
    [
        ("preview",),
        ("nonsense",),
        ("preview", "{", "--json"),
        ("preview", "0 9 * * *", "--after", "soon"),
        ("preview", "0 9 * * *", "--after", "2026-11-29T12:00:00"),
        ("preview", "0 9 * * *", "--anchor", "2026-11-29"),
        ("preview", "@missing.json"),
        ("preview", "0 9 * * *", "--count", "0"),
        ("agents", "create", "--http", "http://x", "--role", "r"),
        ("agents", "list", "--url", "127.0.0.1:1"),
        ("keys", "create"),
        ("apply",),
    ],
)
def test_bad_usage_ends_with_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    found = gnomon(*words, cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr
    assert "Traceback" not in found.stderr


def test_an_instant_has_its_offset_as_over_http(tmp_path: Path) -> None:
    """CONTRACT, forms: none is guessed. What a list shows may be typed again as it stands there."""
    told = gnomon("preview", "0 9 * * *", "--after", "2026-11-29T12:00:00", cwd=tmp_path)
    assert told.returncode == 2
    assert "--after" in told.stderr
    assert "offset" in told.stderr
    for text in ("2026-11-29T13:00:00+01:00", "2026-11-29 12:00:00Z"):
        found = gnomon("preview", "0 9 * * *", "--after", text, "--count", "1", "--json", cwd=tmp_path)
        assert json.loads(found.stdout)["items"][0]["at"] == "2026-11-30T09:00:00Z"


def test_a_server_that_is_not_there_ends_with_3(tmp_path: Path) -> None:
    found = gnomon("agents", "list", cwd=tmp_path, GNOMON_URL="http://127.0.0.1:1")
    assert found.returncode == 3
    assert found.stderr.startswith("Error: http://127.0.0.1:1 can't be reached")


def test_a_database_that_is_not_there_ends_with_3_and_is_not_made(tmp_path: Path) -> None:
    for words in (("agents", "list"), ("schedules", "run", "x"), ("export",), ("audit",)):
        found = gnomon(*words, cwd=tmp_path)
        assert found.returncode == 3, found.stderr
        assert "There is no database at gnomon.db" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_told_in_both_usual_ways(tmp_path: Path) -> None:
    assert gnomon("--version", cwd=tmp_path).stdout.startswith("gnomon 0.")
    told = json.loads(gnomon("version", "--json", cwd=tmp_path).stdout)
    assert set(told) == {"version", "zone_data"}


def test_settings_prints_the_inventory_and_where_each_value_came_from(tmp_path: Path) -> None:
    """OPS-5."""
    (tmp_path / "gnomon.toml").write_text("concurrency = 3\n")
    text = gnomon("settings", cwd=tmp_path, GNOMON_PORT="9000")
    assert "GNOMON_PORT = 9000   (from GNOMON_PORT; default 8420)" in text.stdout
    assert "GNOMON_CONCURRENCY = 3   (from gnomon.toml: concurrency; default 100)" in text.stdout
    assert all(len(line) <= 80 for line in text.stdout.splitlines())
    rows = {
        row["variable"]: row for row in json.loads(gnomon("settings", "--json", cwd=tmp_path).stdout)["items"]
    }
    assert rows["GNOMON_CONCURRENCY"]["value"] == 3
    assert {"type", "range", "default", "meaning", "origin"} <= rows["GNOMON_PORT"].keys()


@pytest.mark.parametrize(
    "words", [("settings",), ("up",), ("serve",), ("worker",), ("migrate",), ("agents", "list")]
)
def test_a_wrong_setting_stops_every_start_in_readable_lines(tmp_path: Path, words: tuple[str, ...]) -> None:
    """OPS-5."""
    found = gnomon(*words, cwd=tmp_path, GNOMON_PROT="1", GNOMON_TICK_SECONDS="never")
    assert found.returncode == 1
    assert found.stderr.splitlines() == [
        "Error: The settings can't be used.",
        "  GNOMON_TICK_SECONDS: 'never' can't be used: it must be a number from 0.05 to 30.",
        "  GNOMON_PROT: There is no such setting. Did you mean GNOMON_PORT?",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m gnomon preview '*/5 * * * *' --count 1000 | head -1"
    found = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert "LOCAL TIME" in found.stdout
    assert found.stderr == ""


@pytest.mark.parametrize("words", [("migrate",), ("verify",), ("up",), ("schedules", "list")])
def test_a_database_that_does_not_answer_ends_with_3(tmp_path: Path, words: tuple[str, ...]) -> None:
    """CONTRACT, CLI: not reachable, whichever command asks for it."""
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    found = gnomon(*words, cwd=tmp_path, GNOMON_DATABASE_URL=nobody, GNOMON_PORT="0")
    assert (found.returncode, "can't be reached" in found.stderr) == (3, True)
