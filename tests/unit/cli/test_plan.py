"""What apply would do, held against what is there (SCH-13)."""

from typing import Any

import pytest

from gnomon.cli.plan import Step, ambiguous, faults_of, plan

SCHEDULE = {
    "id": "sch_1",
    "name": "Digest",
    "target": {"kind": "agent", "id": "agt_1"},
    "cadence": {"unit": "day", "every": 1, "at": ["09:00"], "zone": "Europe/Berlin"},
    "query": "q",
    "starts_at": "2026-01-01T00:00:00Z",
    "retry": {"max_attempts": 1, "backoff_seconds": 10, "backoff_max_seconds": 600},
    "scopes": [],
    "revision": 3,
}
SLUGS = {"agt_1": "digest"}


def only(definition: dict[str, Any]) -> Any:
    (change,) = plan("schedules", [{"name": "Digest", **definition}], [SCHEDULE], SLUGS)
    return change


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"query": "q"},
        {"target": {"kind": "agent", "id": "digest"}},
        {"target": {"kind": "agent", "id": "agt_1"}},
        {"cadence": {"unit": "day", "at": "09:00", "zone": "Europe/Berlin"}},
        {"starts_at": "2026-01-01T01:00:00+01:00"},
        {"retry": {"max_attempts": 1}},
        {"scopes": None, "dedup_key": None},
    ],
)
def test_what_is_there_already_however_written_is_kept(definition: dict[str, Any]) -> None:
    assert only(definition).step is Step.KEEP


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        ({"query": "other"}, "query"),
        ({"target": {"kind": "team", "id": "digest"}}, "target"),
        ({"cadence": {"unit": "day", "at": "09:01", "zone": "Europe/Berlin"}}, "cadence"),
        ({"cadence": {"unit": "nonsense"}}, "cadence"),
        ({"starts_at": "2026-01-01T00:00:01Z"}, "starts_at"),
        ({"starts_at": "soon"}, "starts_at"),
        ({"retry": {"max_attempts": 2}}, "retry"),
        ({"scopes": ["runs:read"]}, "scopes"),
        ({"dedup_key": "x"}, "dedup_key"),
    ],
)
def test_what_differs_is_an_update_of_that_field(definition: dict[str, Any], field: str) -> None:
    change = only(definition)
    assert change.step is Step.UPDATE
    assert [name for name, _, _ in change.fields] == [field]


def test_what_is_not_there_is_created() -> None:
    (change,) = plan("schedules", [{"name": "New"}], [SCHEDULE], SLUGS)
    assert (change.step, change.record) == (Step.CREATE, None)


def test_a_team_is_the_same_when_its_nodes_name_agents_by_slug() -> None:
    record = {"id": "tea_1", "slug": "t", "nodes": [{"id": "a", "agent": "agt_1", "query": "q", "after": []}]}
    said = {"slug": "t", "nodes": [{"id": "a", "agent": "digest", "query": "q"}]}
    (change,) = plan("teams", [said], [record], SLUGS)
    assert change.step is Step.KEEP


def test_every_fault_of_a_file_is_told() -> None:
    document = {
        "agents": [{"slug": "a"}, {"slug": "a"}, {"name": "x"}, "text"],
        "robots": [],
        "teams": {},
    }
    assert [(fault.field, fault.message.split(",")[0]) for fault in faults_of(document)] == [
        ("agents.1.slug", "there is another 'a' in the file"),
        ("agents.2", "needs a slug: it is known by that"),
        ("agents.3", "needs a slug: it is known by that"),
        ("robots", "is no section; there are calendars"),
        ("teams", "must be a list of definitions"),
    ]


def test_a_name_that_two_schedules_have_is_ambiguous() -> None:
    (fault,) = ambiguous("schedules", ["Digest", "Other"], [SCHEDULE, {**SCHEDULE, "id": "sch_2"}])
    assert "sch_1, sch_2" in fault.message
