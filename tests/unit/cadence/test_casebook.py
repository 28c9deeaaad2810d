"""Instants that other systems got wrong, one probe each: gaps, overlaps, month ends, phases, windows, zone data."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gnomon.cadence import Cadence, latest_at, preview

_PROBES = json.loads(Path(__file__).with_name("casebook.json").read_text(encoding="utf-8"))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("probe", _PROBES, ids=[probe["id"] for probe in _PROBES])
def test_probe_gives_the_instants_of_the_casebook(probe: dict[str, Any]) -> None:
    """CAD-2 to CAD-8, CAD-11."""
    rule, anchor = Cadence.parse(probe["rule"]), _at(probe["anchor"])
    if "before" in probe:
        found = [latest_at(rule, _at(probe["before"]), anchor=anchor)]
    else:
        slots = preview(rule, _at(probe["after"]), probe["take"], anchor=anchor)
        found = [slot.at for slot in slots if "end" not in probe or slot.at <= _at(probe["end"])]
    assert found == [_at(text) for text in probe["expect"]]
