"""Teams over HTTP: a sound graph or every fault of it (TGT-3)."""

from typing import Any

import httpx2

from support.api import AGENT, Api
from support.rows import add_schedule, one

TEAM = {
    "slug": "crew",
    "nodes": [
        {"id": "draft", "agent": "writer"},
        {"id": "edit", "agent": "writer", "query": "Edit: {{nodes.draft.output}}", "after": ["draft"]},
    ],
    "output": "edit",
}
BROKEN: dict[str, Any] = {
    "slug": "broken",
    "nodes": [
        {"id": "a", "agent": "writer", "after": ["b"]},
        {"id": "b", "agent": "nobody", "after": ["a"], "query": "{{nodes.d.output}}"},
        {"id": "c", "agent": "writer", "after": ["zzz"]},
        {"id": "d", "agent": "writer"},
    ],
    "output": "nowhere",
}


async def test_a_team_is_made_read_edited_and_deleted(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    made = await admin.post("/v1/teams", json=TEAM)
    assert made.status_code == 201, made.text
    team = made.json()
    assert team["nodes"][0] == {"id": "draft", "agent": "writer", "query": "{{query}}", "after": []}
    for name in (team["id"], "crew"):
        assert (await admin.get(f"/v1/teams/{name}")).json() == team
    assert (await admin.get("/v1/teams")).json()["items"] == [team]
    edited = await admin.patch(
        "/v1/teams/crew", json={"daily_cap": 3}, headers={"if-match": made.headers["etag"]}
    )
    assert (edited.status_code, edited.json()["daily_cap"], edited.json()["version"]) == (200, 3, 2)
    stale = await admin.patch(
        "/v1/teams/crew", json={"daily_cap": 4}, headers={"if-match": made.headers["etag"]}
    )
    assert stale.status_code == 412
    assert (await admin.delete("/v1/teams/crew")).status_code == 204
    assert (await admin.get("/v1/teams/crew")).status_code == 404


async def test_every_fault_of_the_graph_and_of_the_shape_is_in_one_answer(admin: httpx2.AsyncClient) -> None:
    """TGT-3: cycle, unknown agent, unknown node, no way out, a template that names a node that isn't upstream."""
    await admin.post("/v1/agents", json=AGENT)
    answer = await admin.post("/v1/teams", json={**BROKEN, "daily_cap": 0, "colour": "red"})
    assert answer.status_code == 422
    errors = {error["field"]: error["message"] for error in answer.json()["errors"]}
    shape = {"daily_cap", "colour"}
    assert shape | {"nodes", "nodes.1.agent", "nodes.1.query", "nodes.2.after", "output"} <= errors.keys()
    assert "cycle" in errors["nodes"]


async def test_a_draft_may_have_faults_until_it_is_enabled(admin: httpx2.AsyncClient) -> None:
    """A team that is not enabled can be saved in pieces; the check lists what is missing, the switch insists."""
    await admin.post("/v1/agents", json=AGENT)
    assert (await admin.post("/v1/teams", json={**BROKEN, "enabled": False})).status_code == 201
    check = await admin.post("/v1/teams/broken/check")
    assert check.status_code == 200
    found = check.json()
    assert found["ok"] is False
    assert len(found["faults"]) >= 5
    assert all(fault["message"] in found["summary"] for fault in found["faults"])
    switch = await admin.patch("/v1/teams/broken", json={"enabled": True})
    assert switch.status_code == 422
    assert len(switch.json()["errors"]) == len(found["faults"])
    assert (await admin.patch("/v1/teams/broken", json={**TEAM, "slug": "broken"})).status_code == 200
    assert (await admin.patch("/v1/teams/broken", json={"enabled": True})).status_code == 200
    assert (await admin.post("/v1/teams/broken/check")).json()["ok"] is True


async def test_a_patch_can_be_checked_without_being_saved(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    await admin.post("/v1/teams", json=TEAM)
    check = await admin.post("/v1/teams/crew/check", json={"output": "nowhere"})
    assert any(fault["field"] == "output" for fault in check.json()["faults"])
    assert (await admin.get("/v1/teams/crew")).json()["version"] == 1
    assert (await admin.post("/v1/teams/crew/check", json={"output": 5})).status_code == 422


async def test_the_check_sees_an_agent_that_has_gone_or_is_disabled_since(admin: httpx2.AsyncClient) -> None:
    """TGT-3: it is checked before it is invoked, as things are then."""
    await admin.post("/v1/agents", json=AGENT)
    await admin.post("/v1/teams", json=TEAM)
    await admin.patch("/v1/agents/writer", json={"enabled": False})
    disabled = (await admin.post("/v1/teams/crew/check")).json()
    assert "disabled" in disabled["summary"]
    await admin.delete("/v1/agents/writer")
    gone = (await admin.post("/v1/teams/crew/check")).json()
    assert 'no agent "writer"' in gone["summary"]


async def test_a_deleted_team_disables_its_schedules(api: Api, admin: httpx2.AsyncClient) -> None:
    """SCH-12."""
    await admin.post("/v1/agents", json=AGENT)
    team = (await admin.post("/v1/teams", json=TEAM)).json()
    hourly = '{"unit":"hour","every":1,"zone":"UTC"}'
    await add_schedule(api.database, cadence=hourly, target_kind="team", target_id=team["id"])
    await admin.delete(f"/v1/teams/{team['id']}")
    row = await one(api.database, "schedules", target_id=team["id"])
    assert (row["status"], row["next_fire_at"]) == ("disabled", None)
