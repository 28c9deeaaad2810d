"""Instants that other systems got wrong, one probe each: gaps, overlaps, month ends, phases, windows, zone data."""

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gnomon.cadence import Cadence, CadenceError, latest_at, next_after, preview

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


def test_two_day_selectors_are_either_or_as_in_cron_mon_14() -> None:
    """CAD-9: decided and told (ADR 0022), not guessed; here the last Friday and the last day of the month."""
    asked = _at("2021-05-06T00:00Z")
    slots = preview(Cadence.parse({"cron": "0 0 L * 5L"}), asked, 4, anchor=asked)
    days = ["2021-05-28T00:00Z", "2021-05-31T00:00Z", "2021-06-25T00:00Z", "2021-06-30T00:00Z"]
    assert [slot.at for slot in slots] == [_at(day) for day in days]


@pytest.mark.parametrize("cron", ["0 0 L * FRIL", "0 0 1 * FRIL"])
def test_a_form_that_cron_does_not_have_is_refused_mon_14(cron: str) -> None:
    """CAD-9: with its field."""
    with pytest.raises(CadenceError) as caught:
        Cadence.parse({"cron": cron})
    assert [fault.field for fault in caught.value.faults] == ["cron"]


@pytest.mark.parametrize("host", ["Australia/Sydney", "America/New_York", "Pacific/Apia"])
@pytest.mark.parametrize(
    "rule",
    [
        {"unit": "hour", "every": 1, "zone": "UTC"},
        {"unit": "day", "at": "02:30", "zone": "Europe/Berlin"},
        {"cron": "30 2 * * 1,0", "zone": "America/New_York"},
    ],
    ids=lambda rule: next(iter(rule.values())),
)
def test_the_zone_of_the_host_bends_nothing_dst_15(
    rule: dict[str, Any], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAD-2, CAD-11: the same slots whatever the environment says, at the hour in which the host's clocks change."""
    asked = _at("2025-10-04T15:00Z")

    def slots() -> list[datetime]:
        return [slot.at for slot in preview(Cadence.parse(rule), asked, 40, anchor=asked)]

    before = slots()
    try:
        monkeypatch.setenv("TZ", host)
        time.tzset()
        assert slots() == before
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_search_that_finds_nothing_ends_at_once_mon_09() -> None:
    """CAD-7: 30 February; bounded by candidates, not by patience."""
    rule = Cadence.parse({"unit": "month", "every": 12, "day": 30, "short_month": "skip", "at": "00:00"})
    began = time.perf_counter()
    assert next_after(rule, _at("2026-02-01T00:00Z"), anchor=_at("2026-02-01T00:00Z")) is None
    assert time.perf_counter() - began < 0.1
