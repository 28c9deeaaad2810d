"""The forms of agents, teams and calendars: what may be written, and that reading gives it back (CONTRACT)."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from gnomon.domain import agent_form, calendar, team_form
from gnomon.domain.agent import (
    Agent,
    CommandRuntime,
    HttpRuntime,
    LlmRuntime,
    PythonRuntime,
    RoleRuntime,
    RuntimeSpec,
    runtime_from_json,
    runtime_to_json,
)
from gnomon.domain.calendar import Calendar
from gnomon.domain.form import Form
from gnomon.domain.invocation import Limits
from gnomon.domain.team import Node, Team

PYTHON = {"kind": "python", "path": "m:f"}
DAY = datetime(2026, 11, 29, tzinfo=UTC)
STAMPS: dict[str, Any] = {
    "version": 3,
    "created_at": DAY,
    "created_by": "ada",
    "updated_at": DAY.replace(day=30),
}
SHOWN = {
    "version": 3,
    "created_at": "2026-11-29T00:00:00Z",
    "created_by": "ada",
    "updated_at": "2026-11-30T00:00:00Z",
}
AGENT = Agent(
    id="agt_1",
    slug="writer",
    name="Writer",
    runtime=CommandRuntime(("cat", "-"), None, {"LANG": "C"}),
    timeout_seconds=60,
    daily_cap=None,
    limits=Limits(output_bytes=1_000, cost=0.5),
    enabled=False,
    secret="whsec_hidden",
    **STAMPS,
)
TEAM = Team(
    id="tea_1",
    slug="desk",
    name="Desk",
    nodes=(Node("a", "writer", "{{query}}"), Node("b", "editor", "{{nodes.a.output}}", ("a",))),
    output="b",
    daily_cap=5,
    limits=Limits(),
    enabled=True,
    **STAMPS,
)
HOLIDAYS = Calendar("cal_1", "de", "Germany", (date(2026, 12, 25), date(2026, 12, 26)), **STAMPS)


def faults_of(read: Any, written: dict[str, Any]) -> set[str]:
    form = Form(written)
    read(form)
    return {fault.field for fault in form.faults}


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ({"kind": "http", "url": "https://a.b/c"}, HttpRuntime("https://a.b/c")),
        (
            {"kind": "http", "url": "https://a.b", "headers": {"X": "y"}},
            HttpRuntime("https://a.b", {"X": "y"}),
        ),
        ({"kind": "command", "argv": ["sh", "-c", "a\nb"]}, CommandRuntime(("sh", "-c", "a\nb"))),
        (
            {"kind": "command", "argv": ["x"], "cwd": "/tmp", "env": {"A": ""}},
            CommandRuntime(("x",), "/tmp", {"A": ""}),
        ),
        (PYTHON, PythonRuntime("m:f")),
        ({"kind": "llm", "model": "test"}, LlmRuntime("test")),
        (
            {"kind": "llm", "model": "test", "instructions": "Be\nbrief", "settings": {"temperature": 0}},
            LlmRuntime("test", "Be\nbrief", {"temperature": 0}),
        ),
        ({"kind": "role", "role": "builder"}, RoleRuntime("builder")),
    ],
)
def test_each_runtime_of_the_contract_is_read(written: dict[str, Any], spec: RuntimeSpec) -> None:
    """TGT-1."""
    form = Form({"slug": "a", "runtime": written})
    draft = agent_form.read(form)
    assert form.faults == []
    assert draft.runtime == spec
    assert runtime_from_json(runtime_to_json(spec)) == spec
    assert runtime_to_json(spec) == written, "what was left out stays out"


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ({}, {"slug", "runtime"}),
        ({"slug": "a"}, {"runtime"}),
        ({"slug": "A", "runtime": PYTHON}, {"slug"}),
        ({"slug": "agt_" + "0" * 20, "runtime": PYTHON}, {"slug"}),
        ({"slug": "a", "runtime": {"kind": "ftp"}}, {"runtime.kind"}),
        ({"slug": "a", "runtime": {"kind": "http"}}, {"runtime.url"}),
        ({"slug": "a", "runtime": {"kind": "command", "argv": []}}, {"runtime.argv"}),
        ({"slug": "a", "runtime": {"kind": "command", "argv": "ls"}}, {"runtime.argv"}),
        ({"slug": "a", "runtime": {"kind": "command", "argv": ["x"], "env": {"A": 1}}}, {"runtime.env.A"}),
        ({"slug": "a", "runtime": PYTHON | {"url": "x"}}, {"runtime.url"}),
        (
            {
                "slug": "a",
                "runtime": PYTHON,
                "timeout_seconds": True,
                "daily_cap": "5",
                "limits": {"cost": -1, "x": 1},
            },
            {"timeout_seconds", "daily_cap", "limits.cost", "limits.x"},
        ),
        (
            {"slug": "a", "runtime": PYTHON, "timeout_seconds": 86_401, "daily_cap": 0},
            {"timeout_seconds", "daily_cap"},
        ),
        (
            {"slug": "a", "runtime": PYTHON, "id": "x", "version": 1, "secret": "s"},
            {"id", "version", "secret"},
        ),
        ({"name": "…", "runtime": PYTHON}, {"slug"}),
        ({"slug": "a", "name": "a\nb", "runtime": PYTHON}, {"name"}),
        # no second fault for a slug that only the faulty name could have given
        ({"name": 5, "runtime": PYTHON}, {"name"}),
    ],
)
def test_every_fault_of_an_agent_is_at_its_field(written: dict[str, Any], fields: set[str]) -> None:
    assert faults_of(agent_form.read, written) == fields


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Nightly report", "nightly-report"),
        ("Über-Büro", "uber-buro"),
        ("  --x--  ", "x"),
        ("日本", None),
        ("a" * 100, "a" * 64),
        ("agt_" + "0" * 20, "agt-" + "0" * 20),
    ],
)
def test_a_slug_is_made_from_a_name(name: str, slug: str | None) -> None:
    assert agent_form.slug_of(name) == slug


def test_a_team_is_read_with_its_defaults() -> None:
    form = Form({"slug": "t", "nodes": [{"id": "a", "agent": "writer"}], "output": "a"})
    draft = team_form.read(form)
    assert form.faults == []
    assert draft.nodes == (Node("a", "writer", "{{query}}"),)
    assert draft.whole
    assert draft.enabled


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ({"slug": "t"}, {"nodes", "output"}),
        ({"slug": "t", "nodes": [], "output": "a"}, {"nodes"}),
        ({"slug": "t", "nodes": [{}], "output": "a"}, {"nodes.0.id", "nodes.0.agent"}),
        ({"slug": "t", "nodes": ["a"], "output": "a"}, {"nodes.0"}),
        ({"slug": "t", "nodes": [{"id": "a", "agent": "x", "after": "b"}], "output": "a"}, {"nodes.0.after"}),
    ],
)
def test_a_team_that_can_not_be_read_is_not_whole(written: dict[str, Any], fields: set[str]) -> None:
    form = Form(written)
    assert not team_form.read(form).whole
    assert {fault.field for fault in form.faults} == fields


def test_the_dates_of_a_calendar_are_sorted_and_each_once() -> None:
    """CAD-9."""
    form = Form({"slug": "de", "dates": ["2026-12-26", "2026-12-25", "2026-12-26"]})
    assert [day.isoformat() for day in calendar.read(form).dates] == ["2026-12-25", "2026-12-26"]
    bad = {"slug": "de", "dates": ["2026-12-25", "20261225", "2026-02-30", "2026-W52-5", "2026-1-1"]}
    assert faults_of(calendar.read, bad) == {"dates.1", "dates.2", "dates.3", "dates.4"}
    assert faults_of(calendar.read, {"slug": "de", "dates": [1]}) == {"dates.0"}


def test_what_is_read_of_an_agent_can_be_written_again() -> None:
    """SCH-13: an export is a document that can be applied."""
    form = Form(agent_form.to_written(AGENT))
    draft = agent_form.read(form)
    assert form.faults == []
    assert replace(AGENT, **{name: getattr(draft, name) for name in draft.__slots__}) == AGENT


def test_the_secret_of_an_agent_is_shown_only_where_it_is_handed_over() -> None:
    """CONTRACT, "Agent": made by the centre and shown once."""
    shown = agent_form.to_json(AGENT)
    assert shown == {"id": "agt_1", **agent_form.to_written(AGENT), **SHOWN}
    assert shown["limits"] == {"output_bytes": 1_000, "model_calls": None, "cost": 0.5}
    assert agent_form.to_json(AGENT, secret="whsec_hidden") == shown | {"secret": "whsec_hidden"}


def test_what_is_read_of_a_team_can_be_written_again() -> None:
    """SCH-13."""
    form = Form(team_form.to_written(TEAM))
    draft = team_form.read(form)
    assert form.faults == []
    read = {name: getattr(draft, name) for name in draft.__slots__ if name != "whole"}
    assert replace(TEAM, **read) == TEAM
    assert team_form.to_json(TEAM) == {"id": "tea_1", **team_form.to_written(TEAM), **SHOWN}


def test_what_is_read_of_a_calendar_can_be_written_again() -> None:
    """SCH-13."""
    form = Form(calendar.to_written(HOLIDAYS))
    draft = calendar.read(form)
    assert form.faults == []
    assert replace(HOLIDAYS, **{name: getattr(draft, name) for name in draft.__slots__}) == HOLIDAYS
    assert calendar.to_json(HOLIDAYS) == {"id": "cal_1", **calendar.to_written(HOLIDAYS), **SHOWN}
