"""The tools of those who watch over schedules and runs, over a real database (UI-5)."""

from typing import Any

import pytest

from support.agents import refused, told
from support.api import AGENT, Api

DAILY = {
    "name": "morning report",
    "target": {"kind": "agent", "id": "writer"},
    "cadence": {"unit": "day", "at": "09:00", "zone": "Europe/Berlin"},
    "query": "Write it.",
}


@pytest.fixture
async def schedule(api: Api) -> str:
    async with api.client(await api.key()) as admin:
        assert (await admin.post("/v1/agents", json=AGENT)).status_code == 201
        made = await admin.post("/v1/schedules", json=DAILY)
    assert made.status_code == 201, made.text
    found: str = made.json()["id"]
    return found


async def cancel(api: Api, run: str) -> None:
    """By a person: no tool of an agent does it."""
    async with api.client(await api.key()) as admin:
        assert (await admin.post(f"/v1/runs/{run}/cancel")).status_code == 202


async def test_the_overview_says_what_to_look_at(api: Api, comes: Any, schedule: str) -> None:
    """UI-1: numbers for a program, and for a model what a person would look at first."""
    async with comes(await api.key()) as client:
        quiet = await told(client, "overview")
        assert (quiet["schedules"]["active"], quiet["runs_queued"], quiet["roles"]) == (1, 0, [])
        assert "No process of Gnomon is alive" in quiet["next"]
        await told(client, "run_now", schedule_id=schedule)
        await told(client, "create_task", role="writer", title="t", dedup_key="t")
        await told(client, "create_task", role="writer", title="u", dedup_key="u")
        granted = await told(client, "next_task", role="writer")
        await told(
            client, "report_task", task_id=granted["task_id"], fence=granted["fence"], status="blocked"
        )
        busy = await told(client, "overview", zone="Asia/Tokyo")
        code, words = await refused(client, "overview", zone="Nowhere/Land")
    (role,) = busy["roles"]
    assert (role["role"], role["tasks"]["claimable"], role["tasks"]["blocked"]) == ("writer", 1, 1)
    assert busy["runs_queued"] == 1
    assert "Tasks wait for a person" in busy["next"]
    assert (code, "- zone" in words) == ("invalid", True)


async def test_a_rule_is_previewed_with_what_moved_it(api: Api, comes: Any) -> None:
    """UI-2, CAD-8: by the dispatcher's own arithmetic."""
    rule = {"unit": "month", "day": 31, "at": ["09:00"], "zone": "Europe/Berlin"}
    async with comes(await api.key("schedules:read")) as client:
        found = await told(client, "preview_schedule", cadence=rule, count=4)
        code, words = await refused(client, "preview_schedule", cadence={"unit": "day", "at": "25:00"})
        both, _ = await refused(client, "preview_schedule", cadence=rule, schedule_id="sch_x")
        neither, _ = await refused(client, "preview_schedule")
    assert [slot["local_time"][:10] for slot in found["slots"]] == [
        "2026-11-30",
        "2026-12-31",
        "2027-01-31",
        "2027-02-28",
    ]
    assert found["slots"][0]["note"]
    assert (code, both, neither) == ("invalid", "invalid", "invalid")
    assert "- cadence.at" in words


async def test_a_schedule_is_listed_previewed_paused_and_resumed(api: Api, comes: Any, schedule: str) -> None:
    """SCH-2."""
    async with comes(await api.key("schedules:*")) as client:
        (listed,) = (await told(client, "list_schedules", status="active"))["schedules"]
        assert (listed["id"], listed["name"], listed["status"]) == (schedule, "morning report", "active")
        ahead = await told(client, "preview_schedule", schedule_id=schedule, count=2)
        assert ahead["slots"][0]["at"] == listed["next_fire_at"]
        paused = await told(client, "pause_schedule", schedule_id=schedule, reason="holidays")
        again = await told(client, "pause_schedule", schedule_id=schedule, reason="holidays")
        assert paused["schedule"]["status"] == again["schedule"]["status"] == "paused"
        assert paused["schedule"]["status_reason"] == "holidays"
        assert "stands still" in (await told(client, "preview_schedule", schedule_id=schedule))["next"]
        assert (await told(client, "list_schedules", status="active"))["schedules"] == []
        code, _ = await refused(client, "pause_schedule", schedule_id=schedule, until="yesterday")
        assert code == "invalid"
        resumed = await told(client, "resume_schedule", schedule_id=schedule)
    assert resumed["schedule"]["status"] == "active"
    assert resumed["schedule"]["next_fire_at"] in resumed["next"]


async def test_the_end_of_a_pause_may_be_named(api: Api, comes: Any, schedule: str) -> None:
    async with comes(await api.key("schedules:write")) as client:
        paused = await told(client, "pause_schedule", schedule_id=schedule, until="2026-12-24T00:00:00+01:00")
    assert paused["schedule"]["paused_until"] == "2026-12-23T23:00:00Z"
    assert "by itself" in paused["next"]


async def test_a_slot_is_explained(api: Api, comes: Any, schedule: str) -> None:
    """DSP-9."""
    async with comes(await api.key("schedules:read")) as client:
        found = await told(client, "explain_slot", schedule_id=schedule, at="2026-12-01T12:00:00+01:00")
        future = await told(client, "explain_slot", schedule_id=schedule, at="2026-12-01T08:00:00Z")
        code, words = await refused(
            client, "explain_slot", schedule_id="sch_nothing", at="2026-12-01T08:00:00Z"
        )
        bad, _ = await refused(client, "explain_slot", schedule_id=schedule, at="noon")
    assert (found["verdict"], found["before"]) == ("not_a_slot", "2026-12-01T08:00:00Z")
    assert future["verdict"] == "future"
    assert (code, bad) == ("not_found", "invalid")
    assert "list_" in words


async def test_run_now_starts_one_run_however_often_it_is_asked(api: Api, comes: Any, schedule: str) -> None:
    """SCH-11, IDM-2: the repeat of a call whose answer was lost is the same run; another wish is told of the first."""
    async with comes(await api.key("schedules:*", "runs:*")) as client:
        first = await told(client, "run_now", schedule_id=schedule, idempotency_key="today")
        again = await told(client, "run_now", schedule_id=schedule, idempotency_key="today")
        assert first == again
        run = first["run"]["id"]
        code, words = await refused(client, "run_now", schedule_id=schedule, idempotency_key="tomorrow")
        assert code == "run_in_flight"
        assert run in words
        assert "Do not start another" in words
        other, _ = await refused(client, "run_now", schedule_id="sch_other", idempotency_key="today")
        assert other == "idempotency_key_reused"
        (listed,) = (await told(client, "list_runs", schedule_id=schedule))["runs"]
        assert (listed["id"], listed["status"], listed["trigger"]) == (run, "queued", "manual")
        shown = await told(client, "get_run", run_id=run)
        assert (shown["run"]["id"], shown["output"], shown["output_is_whole"]) == (run, None, True)
        assert "not sooner" in shown["next"]
        await cancel(api, run)
        assert "over" in (await told(client, "get_run", run_id=run))["next"]
    async with api.client(await api.key()) as admin:
        kept = (await admin.get(f"/v1/runs/{run}")).json()
    assert kept["source"] == "mcp"


async def test_lists_come_in_pages(api: Api, comes: Any, schedule: str) -> None:
    async with api.client(await api.key()) as admin:
        for number in range(4):
            await admin.post("/v1/schedules", json={**DAILY, "name": f"report {number}"})
    async with comes(await api.key()) as client:
        runs = []
        for _ in range(5):
            run = (await told(client, "run_now", schedule_id=schedule))["run"]["id"]
            await cancel(api, run)
            runs.append(run)
        for tool, items, given in (
            ("list_schedules", "schedules", {}),
            ("list_runs", "runs", {}),
            ("list_runs", "runs", {"schedule_id": schedule}),
            ("list_runs", "runs", {"target": "writer", "status": "cancelled"}),
        ):
            seen: list[str] = []
            cursor: str | None = None
            while True:
                more = {} if cursor is None else {"cursor": cursor}
                page = await told(client, tool, limit=2, **given, **more)
                seen += [each["id"] for each in page[items]]
                cursor = page["next_cursor"]
                assert ("cursor" in page["next"]) == (cursor is not None)
                if cursor is None:
                    break
            assert len(seen) == len(set(seen)) == 5, (tool, given)
        assert (await refused(client, "list_runs", schedule_id=schedule, target="writer"))[0] == "invalid"
        assert (await refused(client, "list_runs", schedule_id=schedule, cursor="x y"))[0] == "bad_cursor"
