"""Definitions as code (SCH-13): a plan first, all or nothing, safe to repeat, and an export that says the same."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import Conflict, Invalid, Refused, RunInFlight
from gnomon.domain.instants import to_micros
from gnomon.services.agents import Agents
from gnomon.services.apply import Apply, Outcome, Step
from gnomon.services.apply_jobs import JobPart
from gnomon.services.apply_parts import AgentPart, CalendarPart, SchedulePart, TeamPart
from gnomon.services.calendars import Calendars
from gnomon.services.holidays import realign_users
from gnomon.services.jobs import Jobs
from gnomon.services.schedules import Schedules
from gnomon.services.teams import Teams
from gnomon.testing.clock import SeededEntropy
from support.house import House, an_agent, rows
from support.rows import RUNNING, add_run

pytestmark = pytest.mark.anyio
ANA = system("ana")
DOCUMENT: dict[str, Any] = {
    "calendars": [{"slug": "feast", "name": "Feasts", "dates": ["2026-12-25"]}],
    "agents": [
        {"slug": "writer", "runtime": {"kind": "command", "argv": ["echo", "hi"], "env": {"A": "1"}}},
        {"slug": "hook", "runtime": {"kind": "http", "url": "https://example.org/hook"}},
    ],
    "teams": [
        {
            "slug": "desk",
            "nodes": [{"id": "a", "agent": "writer"}, {"id": "b", "agent": "hook", "after": ["a"]}],
            "output": "b",
        }
    ],
    "schedules": [
        {
            "name": "daily-brief",
            "target": {"kind": "team", "id": "desk"},
            "cadence": {"unit": "day", "at": "07:00", "zone": "Europe/Berlin", "calendar": "feast"},
            "query": "{{date}}",
            "session_mode": "fixed",
            "max_runs": 10,
            "retry": {"max_attempts": 3},
        },
        {
            "name": "tick",
            "target": {"kind": "agent", "id": "writer"},
            "cadence": {"unit": "minute", "every": 30},
        },
    ],
    "jobs": [
        {
            "slug": "digest",
            "role": "pm",
            "cadence": {"unit": "day", "at": "07:00", "calendar": "feast"},
            "dedup_key": "{{job}}-{{date}}",
            "payload": {"repo": "a/b", "since": None},
        }
    ],
}


@pytest.fixture
def apply(house: House) -> Apply:
    database, clock, mint, signal = house.database, house.clock, house.mint, house.signal
    agents = Agents(database, clock, mint, SeededEntropy(5), signal, check_runtime=lambda _: [])
    return Apply(
        database=database,
        signal=signal,
        parts=(
            CalendarPart(Calendars(database, clock, mint, signal, on_changed=realign_users)),
            AgentPart(agents),
            TeamPart(Teams(database, clock, mint, signal)),
            SchedulePart(Schedules(database=database, mint=mint, signal=signal)),
            JobPart(Jobs(database, mint, signal)),
        ),
    )


async def applied(apply: Apply, document: dict[str, Any]) -> list[Outcome]:
    """What applying a document did; nothing is answered from memory."""
    outcomes = await apply.apply(ANA, document)
    assert isinstance(outcomes, list)
    return outcomes


def steps(outcomes: list[Outcome]) -> list[str]:
    return [outcome.step.value for outcome in outcomes]


async def everything(house: House) -> list[Any]:
    tables = ("calendars", "agents", "teams", "schedules", "revisions", "sessions", "jobs", "audit")
    return [await rows(house.database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


async def test_a_plan_says_what_would_happen_and_changes_nothing(house: House, apply: Apply) -> None:
    """SCH-13."""
    before = await everything(house)
    plan = await apply.plan(ANA, DOCUMENT)
    assert steps(plan) == ["create"] * 7
    assert [outcome.key for outcome in plan][-3:] == ["team/desk/daily-brief", "agent/writer/tick", "digest"]
    assert await everything(house) == before


async def test_applying_thrice_leaves_one_of_each(house: House, apply: Apply) -> None:
    """SCH-13, casebook dbl-15: the natural key of a schedule is its target and its name."""
    first = await applied(apply, DOCUMENT)
    assert steps(first) == ["create"] * 7
    [secret] = [outcome.secret for outcome in first if outcome.key == "hook"]
    assert secret is not None
    assert secret.startswith("whsec_")
    before = await everything(house)
    house.clock.advance(3600)
    for _ in range(2):
        assert steps(await applied(apply, DOCUMENT)) == ["unchanged"] * 7
    assert await everything(house) == before


async def test_the_export_is_a_document_that_changes_nothing(house: House, apply: Apply) -> None:
    """SCH-13: the same form back, in this house and in an empty one."""
    await apply.apply(ANA, DOCUMENT)
    document = await apply.export(ANA)
    assert set(document) == set(DOCUMENT)
    assert document["schedules"][0] == {
        **DOCUMENT["schedules"][1],
        "cadence": {"unit": "minute", "every": 30, "zone": "UTC"},
    }
    assert document["schedules"][1]["target"] == {"kind": "team", "id": "desk"}
    assert document["jobs"][0]["payload"] == {"repo": "a/b", "since": None}
    assert steps(await applied(apply, document)) == ["unchanged"] * 7
    for table in ("schedules", "agents", "teams", "calendars", "sessions", "jobs"):
        await rows(house.database, f"DELETE FROM {table}")
    assert steps(await applied(apply, document)) == ["create"] * 7
    assert await apply.export(ANA) == document


async def test_a_document_is_the_whole_definition(house: House, apply: Apply) -> None:
    """SCH-13: what it leaves out goes back to its default; what it does not name is left alone."""
    await apply.apply(ANA, DOCUMENT)
    brief = {
        name: value for name, value in DOCUMENT["schedules"][0].items() if name not in {"max_runs", "retry"}
    }
    writer = {"slug": "writer", "runtime": {"kind": "command", "argv": ["echo", "hi"]}}
    [agent, schedule] = await applied(apply, {"agents": [writer], "schedules": [brief]})
    assert {d.field: (d.standing, d.wanted) for d in schedule.differences} == {
        "max_runs": (10, None),
        "retry": (
            {"max_attempts": 3, "backoff_seconds": 10, "backoff_max_seconds": 600},
            {"max_attempts": 1, "backoff_seconds": 10, "backoff_max_seconds": 600},
        ),
    }
    assert [d.field for d in agent.differences] == ["runtime"]
    assert len(await house.rows("SELECT id FROM schedules")) == 2


async def test_all_of_it_or_nothing_with_every_fault_at_its_place(house: House, apply: Apply) -> None:
    """SCH-13."""
    before = await everything(house)
    broken = {
        **DOCUMENT,
        "agents": [{"slug": "writer", "runtime": {"kind": "command", "argv": []}}, DOCUMENT["agents"][1]],
        "schedules": [{**DOCUMENT["schedules"][0], "max_runs": 0}],
    }
    for do in (apply.plan, apply.apply):
        with pytest.raises(Invalid) as caught:
            await do(ANA, broken)
        found = {fault.field for fault in caught.value.faults}
        assert {"agents.0.runtime.argv", "schedules.0.max_runs"} <= found
        assert await everything(house) == before


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"gadgets": []}, "gadgets"),
        ({"agents": {}}, "agents"),
        ({"agents": ["x"]}, "agents.0"),
        ({"agents": [{"name": "A B"}, {"slug": "a-b"}]}, "agents.1"),
        ({"schedules": [DOCUMENT["schedules"][1]] * 2}, "schedules.1"),
        ({"schedules": [{"name": "x"}]}, "schedules.0.target"),
    ],
)
async def test_a_document_that_can_not_be_read_is_refused(apply: Apply, document: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        await apply.plan(ANA, document)
    assert field in {fault.field for fault in caught.value.faults}


async def test_two_schedules_of_one_name_can_not_be_told_apart(house: House, apply: Apply) -> None:
    """SCH-13: refused, with their ids."""
    await apply.apply(ANA, DOCUMENT)
    service = Schedules(database=house.database, mint=house.mint, signal=house.signal)
    await service.create(DOCUMENT["schedules"][1], "bo")
    with pytest.raises(Conflict) as caught:
        await apply.plan(ANA, {"schedules": [DOCUMENT["schedules"][1]]})
    assert caught.value.code == "ambiguous_name"
    found = caught.value.data["schedules"]
    assert isinstance(found, list)
    assert len(found) == 2


async def test_a_change_under_a_run_in_flight_is_refused_and_a_repeat_is_not(
    house: House, apply: Apply
) -> None:
    """SCH-10, SCH-13."""
    await apply.apply(ANA, DOCUMENT)
    await add_run(house.database, **{**RUNNING, "id": "run_1"})
    await rows(house.database, "UPDATE schedules SET in_flight_run_id = 'run_1'")
    assert set(steps(await applied(apply, DOCUMENT))) == {"unchanged"}
    with pytest.raises(RunInFlight):
        await apply.apply(ANA, {"schedules": [{**DOCUMENT["schedules"][1], "query": "new"}]})


async def test_a_section_needs_its_own_scope(house: House, apply: Apply) -> None:
    """SEC-1: the export shows what the caller may read, and no more."""
    await apply.apply(ANA, DOCUMENT)
    narrow = Caller("bo", ("schedules:read", "schedules:write"))
    assert set(await apply.export(narrow)) == {"schedules"}
    with pytest.raises(Refused):
        await apply.plan(narrow, DOCUMENT)
    assert set(steps(await apply.plan(narrow, {"schedules": DOCUMENT["schedules"]}))) == {"unchanged"}


async def test_a_team_that_names_an_agent_by_id_is_the_same_team(house: House, apply: Apply) -> None:
    """SCH-13."""
    agent_id = await an_agent(house.database)
    team = {"slug": "solo", "nodes": [{"id": "a", "agent": agent_id}], "output": "a"}
    await apply.apply(ANA, {"teams": [team]})
    document = await apply.export(ANA)
    assert document["teams"][0]["nodes"][0]["agent"] == agent_id.replace("_", "-")
    [outcome] = await applied(apply, {"teams": document["teams"]})
    assert outcome.step is Step.UNCHANGED


async def test_the_export_leaves_out_what_lost_its_target(house: House, apply: Apply) -> None:
    """SCH-13: a schedule whose target was deleted could not be applied, here or anywhere."""
    await apply.apply(ANA, DOCUMENT)
    await rows(house.database, "UPDATE agents SET deleted_at = 1 WHERE slug = 'writer'")
    document = await apply.export(ANA)
    assert [schedule["name"] for schedule in document["schedules"]] == ["daily-brief"]


async def test_a_changed_calendar_moves_the_next_slots_of_who_uses_it(house: House, apply: Apply) -> None:
    """CAD-9, DSP-9: in the transaction of the change."""
    await apply.apply(ANA, DOCUMENT)
    feast = {**DOCUMENT["calendars"][0], "dates": ["2026-11-30", "2026-12-25"]}
    await apply.apply(ANA, {"calendars": [feast]})
    [row] = await house.rows("SELECT * FROM schedules WHERE name = 'daily-brief'")
    assert row["next_fire_at"] == to_micros(datetime(2026, 12, 1, 6, tzinfo=UTC))
    [job] = await house.rows("SELECT * FROM jobs")
    assert job["next_fire_at"] == to_micros(datetime(2026, 12, 1, 7, tzinfo=UTC))
    assert [entry["subject_id"] for entry in await house.audit("REALIGN")] == [row["id"], job["id"]]
