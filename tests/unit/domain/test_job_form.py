"""A written job: every fault at once, defaults, and back (JOB-1, IDM-1, CAD-1)."""

from dataclasses import replace
from typing import Any

import pytest

from gnomon.cadence import Cadence
from gnomon.domain import job_form
from gnomon.domain.form import Form
from gnomon.domain.job import Job, JobDraft
from support.databases import START

WRITTEN: dict[str, Any] = {
    "slug": "digest",
    "role": "pm",
    "cadence": {"unit": "day", "at": "09:00", "zone": "Europe/Berlin"},
    "dedup_key": "digest-{{date}}",
}


def faults(**changes: Any) -> dict[str, str]:
    form = Form({**WRITTEN, **changes})
    job_form.read(form)
    return {fault.field: fault.message for fault in form.faults}


def read(**changes: Any) -> JobDraft:
    form = Form({**WRITTEN, **changes})
    draft = job_form.read(form)
    form.finish()
    return draft


def test_what_is_left_out_has_its_default() -> None:
    assert read() == JobDraft(
        slug="digest",
        name="digest",
        role="pm",
        cadence=Cadence.parse(WRITTEN["cadence"]),
        payload={},
        dedup_key="digest-{{date}}",
        grace_seconds=None,
        enabled=True,
    )


def test_what_was_written_comes_back() -> None:
    draft = read(name="Digest", payload={"repo": "a/b"}, grace_seconds=90, enabled=False)
    assert job_form.to_written(draft) == {
        **WRITTEN,
        "name": "Digest",
        "payload": {"repo": "a/b"},
        "cadence": draft.cadence.to_json(),
        "grace_seconds": 90,
        "enabled": False,
    }
    form = Form(job_form.to_written(draft))
    assert job_form.read(form) == draft
    assert form.faults == []


def test_a_job_without_a_dedup_key_is_refused() -> None:
    """IDM-1."""
    for missing in ({"dedup_key": None}, {"dedup_key": ""}, {"dedup_key": " "}):
        assert set(faults(**missing)) == {"dedup_key"}
    assert "{{job}}-{{date}}" in faults(dedup_key=None)["dedup_key"]


def test_a_key_may_name_what_the_payload_has_and_no_more() -> None:
    """IDM-1."""
    assert faults(dedup_key="{{payload.tag}}", payload={"tag": "v1"}) == {}
    assert set(faults(dedup_key="{{payload.tog}}", payload={"tag": "v1"})) == {"dedup_key"}
    assert set(faults(dedup_key="{{yesterday}}")) == {"dedup_key"}


@pytest.mark.parametrize(
    ("cadence", "field"),
    [
        ({"unit": "minute", "every": 4}, "cadence.every"),
        ({"unit": "hour", "every": 169}, "cadence.every"),
        ({"unit": "day", "every": 1}, "cadence.at"),
        ({"cron": "* * * * *"}, "cadence.cron"),
        (None, "cadence"),
        ("daily", "cadence"),
    ],
)
def test_the_floor_and_the_ranges_are_those_of_every_cadence(cadence: Any, field: str) -> None:
    """CAD-1."""
    assert field in faults(cadence=cadence)


def test_every_fault_is_told_at_once() -> None:
    found = faults(
        slug="No Slug", role=None, cadence=None, grace_seconds=0, enabled="yes", colour="red", id="job_1"
    )
    assert set(found) == {"slug", "role", "cadence", "grace_seconds", "enabled", "colour", "id"}


@pytest.mark.parametrize("payload", [{}, [], "text", 1, 1.5, True, {"a": {"b": ["ü", None]}}])
def test_a_payload_is_any_json(payload: Any) -> None:
    assert read(payload=payload).payload == payload


def test_a_payload_is_kept_whole_or_refused() -> None:
    """Casebook pay-06: at the limit it is taken, above it the fault says by how much."""
    at_limit = "x" * (100_000 - 2)
    assert read(payload=at_limit).payload == at_limit
    assert faults(payload=at_limit + "x") == {
        "payload": "must have at most 100,000 characters as JSON, not 100,001"
    }


def test_a_patch_replaces_cadence_and_payload_whole() -> None:
    standing = read(payload={"a": 1, "b": 2}, grace_seconds=90)
    form = job_form.patched(standing, {"payload": {"b": 3}, "grace_seconds": None})
    assert job_form.read(form) == replace(standing, payload={"b": 3}, grace_seconds=None)


def test_an_edit_of_the_cadence_keeps_its_anchor() -> None:
    """CAD-5."""
    standing = read(cadence={"unit": "hour", "every": 6, "anchor": "2026-11-01T00:00:00Z"})
    edited = read(cadence={"unit": "hour", "every": 2})
    assert job_form.with_anchor(edited, standing).cadence.anchor == standing.cadence.anchor
    named = read(cadence={"unit": "hour", "every": 2, "anchor": "2026-12-01T00:00:00Z"})
    assert job_form.with_anchor(named, standing) == named


def test_a_job_is_read_back_with_where_it_stands() -> None:
    """JOB-1."""
    job = Job("job_1", read(), START, 2, START, None, None, START, "ana", START, "ben")
    found = job_form.to_json(job)
    assert (found["id"], found["slug"], found["version"]) == ("job_1", "digest", 2)
    assert found["next_fire_at"] == found["created_at"] == "2026-11-29T09:00:00Z"
    assert found["last_fire_at"] is None
