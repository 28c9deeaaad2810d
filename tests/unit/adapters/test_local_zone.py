"""The zone of the machine's wall clock, by name (CONTRACT, CLI: import crontab)."""

from pathlib import Path

import pytest

from gnomon.adapters import local_zone as module
from gnomon.adapters.local_zone import local_zone


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that says nothing of its zone."""
    monkeypatch.setattr(module, "LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(module, "TIMEZONE", tmp_path / "timezone")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "found"),
    [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("CET-1CEST", None), ("", "UTC")],
)
def test_the_variable_wins(machine: Path, given: str, found: str | None) -> None:
    assert local_zone({"TZ": given}) == found


def test_the_link_names_it(machine: Path) -> None:
    place = machine / "share/zoneinfo/America/New_York"
    place.parent.mkdir(parents=True)
    place.touch()
    (machine / "localtime").symlink_to(place)
    assert local_zone({}) == "America/New_York"


def test_a_copy_is_named_by_the_note_beside_it(machine: Path) -> None:
    (machine / "localtime").write_bytes(b"TZif")
    assert local_zone({}) is None
    (machine / "timezone").write_text("Asia/Kolkata\n")
    assert local_zone({}) == "Asia/Kolkata"
