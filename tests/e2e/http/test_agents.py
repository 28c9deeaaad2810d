"""Agents over HTTP (CONTRACT, "Agent and team")."""

import base64
from typing import Any

import httpx2
import pytest

from gnomon.stores import audit
from support.api import AGENT, Api
from support.rows import add_run, add_schedule, execute, one

HOURLY = '{"unit":"hour","every":1,"zone":"UTC"}'
HTTP: dict[str, Any] = {"slug": "hook", "runtime": {"kind": "http", "url": "https://example.com/"}}


async def test_an_agent_is_made_read_listed_edited_and_deleted(admin: httpx2.AsyncClient) -> None:
    made = await admin.post("/v1/agents", json=AGENT)
    assert made.status_code == 201, made.text
    agent = made.json()
    assert made.headers["location"] == f"/v1/agents/{agent['id']}"
    assert agent["slug"] == agent["name"] == "writer"
    assert "secret" not in agent
    for name in (agent["id"], "writer"):
        read = await admin.get(f"/v1/agents/{name}")
        assert read.json() == agent
        assert read.headers["etag"] == made.headers["etag"]
    listed = await admin.get("/v1/agents")
    assert listed.json() == {"items": [agent], "next_cursor": None}
    edited = await admin.patch("/v1/agents/writer", json={"name": "The writer", "limits": {"cost": 2}})
    assert edited.status_code == 200, edited.text
    assert edited.json()["limits"]["cost"] == 2
    assert edited.headers["etag"] != made.headers["etag"]
    assert (await admin.delete("/v1/agents/writer")).status_code == 204
    for name in (agent["id"], "writer"):
        assert (await admin.get(f"/v1/agents/{name}")).status_code == 404


async def test_the_signing_secret_is_shown_once(api: Api, admin: httpx2.AsyncClient) -> None:
    """CONTRACT: made by the centre, shown once; never in a read, a list, an edit or the audit."""
    made = (await admin.post("/v1/agents", json=HTTP)).json()
    prefix, _, secret = made["secret"].partition("_")
    assert prefix == "whsec"
    assert len(base64.b64decode(secret, validate=True)) == 32
    answers = [
        await admin.get("/v1/agents/hook"),
        await admin.get("/v1/agents"),
        await admin.patch("/v1/agents/hook", json={"name": "Hook"}),
        await admin.get("/v1/audit"),
    ]
    assert all(secret not in answer.text for answer in answers)
    kept = await one(api.database, "agents", slug="hook")
    assert kept["secret"] == made["secret"]


async def test_an_agent_that_becomes_an_http_one_gets_a_secret_then(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    edited = await admin.patch("/v1/agents/writer", json={"runtime": HTTP["runtime"]})
    assert edited.status_code == 200, edited.text
    assert edited.json()["runtime"] == HTTP["runtime"]
    first = edited.json()["secret"]
    assert first.startswith("whsec_")
    await admin.patch("/v1/agents/writer", json={"runtime": AGENT["runtime"]})
    again = await admin.patch("/v1/agents/writer", json={"runtime": HTTP["runtime"]})
    assert again.json()["secret"] != first


async def test_a_taken_slug_is_a_conflict_and_free_again_after_deletion(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    answer = await admin.post("/v1/agents", json=AGENT)
    assert (answer.status_code, answer.json()["code"], answer.json()["slug"]) == (409, "slug_taken", "writer")
    await admin.delete("/v1/agents/writer")
    assert (await admin.post("/v1/agents", json=AGENT)).status_code == 201


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_stale_edit_is_refused(admin: httpx2.AsyncClient, method: str) -> None:
    """SCH-4, CONTRACT: ETag and If-Match on agents; stale is 412."""
    made = await admin.post("/v1/agents", json=AGENT)
    await admin.patch("/v1/agents/writer", json={"name": "Second"})

    async def edit(match: str) -> httpx2.Response:
        body: dict[str, Any] = {"json": {"name": "Third"}} if method == "PATCH" else {}
        return await admin.request(method, "/v1/agents/writer", headers={"if-match": match}, **body)

    fresh = (await admin.get("/v1/agents/writer")).headers["etag"]
    for stale in (made.headers["etag"], '"x"', f"W/{fresh}", "nonsense"):
        answer = await edit(stale)
        assert (answer.status_code, answer.json()["code"]) == (412, "revision_stale"), stale
        assert answer.json()["version"] == 2
    assert (await edit(f'"x", {fresh}')).status_code in {200, 204}


async def test_a_star_matches_whatever_is_there(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    headers = {"if-match": "*"}
    assert (await admin.patch("/v1/agents/writer", json={"name": "x"}, headers=headers)).status_code == 200
    assert (await admin.patch("/v1/agents/nobody", json={}, headers=headers)).status_code == 404


async def test_the_tag_of_a_predecessor_does_not_fit_its_successor(admin: httpx2.AsyncClient) -> None:
    """A deleted agent and a new one under the same slug are both at version 1."""
    old = await admin.post("/v1/agents", json=AGENT)
    await admin.delete("/v1/agents/writer")
    await admin.post("/v1/agents", json=AGENT)
    answer = await admin.delete("/v1/agents/writer", headers={"if-match": old.headers["etag"]})
    assert answer.status_code == 412


async def test_saving_without_a_change_changes_nothing(api: Api, admin: httpx2.AsyncClient) -> None:
    """SCH-12a's like for agents: no new version, no audit entry."""
    made = await admin.post("/v1/agents", json=AGENT)
    before = len(await api.services.audit_log.after(0, 99))
    same: list[dict[str, Any]] = [
        {},
        {"name": "writer"},
        {"slug": "writer"},
        {"daily_cap": None, "limits": {}},
    ]
    for patch in same:
        answer = await admin.patch("/v1/agents/writer", json=patch)
        assert answer.headers["etag"] == made.headers["etag"]
    assert len(await api.services.audit_log.after(0, 99)) == before


async def test_null_takes_a_field_back_to_its_default_and_objects_are_merged(
    admin: httpx2.AsyncClient,
) -> None:
    written = {**AGENT, "timeout_seconds": 60, "daily_cap": 5, "limits": {"cost": 1, "model_calls": 3}}
    await admin.post("/v1/agents", json=written)
    patch = {"timeout_seconds": None, "daily_cap": None, "limits": {"cost": None}}
    agent = (await admin.patch("/v1/agents/writer", json=patch)).json()
    assert (agent["timeout_seconds"], agent["daily_cap"]) == (300, None)
    assert agent["limits"] == {"output_bytes": None, "model_calls": 3, "cost": None}


async def test_a_fault_in_the_form_of_a_runtime_hides_none_of_its_address(admin: httpx2.AsyncClient) -> None:
    """OPS-8, TGT-4: every fault at once, and each field's once."""
    wrong = {"kind": "http", "url": "ftp://x", "headers": {"Host": "a", "A": 5}, "z": 1}
    refused = await admin.post("/v1/agents", json={"slug": "hook", "runtime": wrong})
    fields = [fault["field"] for fault in refused.json()["errors"]]
    assert sorted(fields) == ["runtime.headers.A", "runtime.headers.Host", "runtime.url", "runtime.z"]
    empty = {"kind": "command", "argv": [], "cwd": "here", "env": {"A-B": "x", "C": 1}}
    refused = await admin.post("/v1/agents", json={"slug": "hook", "runtime": empty})
    fields = [fault["field"] for fault in refused.json()["errors"]]
    assert sorted(fields) == ["runtime.argv", "runtime.cwd", "runtime.env.A-B", "runtime.env.C"]


async def test_a_runtime_is_replaced_whole(admin: httpx2.AsyncClient) -> None:
    """What a patch leaves out of it is gone, as with a target or a cadence."""
    url = HTTP["runtime"]["url"]
    await admin.post(
        "/v1/agents", json={**HTTP, "runtime": {"kind": "http", "url": url, "headers": {"A": "b"}}}
    )
    edited = await admin.patch("/v1/agents/hook", json={"runtime": {"kind": "http", "url": f"{url}v2"}})
    assert edited.json()["runtime"] == {"kind": "http", "url": f"{url}v2"}
    assert "secret" not in edited.json()
    partial = await admin.patch("/v1/agents/hook", json={"runtime": {"url": url}})
    assert (partial.status_code, partial.json()["errors"][0]["field"]) == (422, "runtime.kind")


async def test_an_edit_that_names_no_runtime_leaves_each_kind_as_it_is(admin: httpx2.AsyncClient) -> None:
    """CONTRACT: a patch says what changes, and what it doesn't name stays."""
    runtimes: list[dict[str, Any]] = [
        {"kind": "command", "argv": ["cat", "-"], "cwd": "/", "env": {"LANG": "C"}},
        {"kind": "llm", "model": "test", "settings": {"temperature": 0}},
        {"kind": "role", "role": "builder"},
    ]
    for runtime in runtimes:
        slug = runtime["kind"]
        assert (await admin.post("/v1/agents", json={"slug": slug, "runtime": runtime})).status_code == 201
        edited = await admin.patch(f"/v1/agents/{slug}", json={"timeout_seconds": 7})
        assert edited.status_code == 200, edited.text
        assert edited.json()["runtime"] == runtime


async def test_a_slug_does_not_change(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/agents", json=AGENT)
    answer = await admin.patch("/v1/agents/writer", json={"slug": "author"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "slug")


async def test_a_deleted_agent_disables_its_schedules_and_revokes_its_keys(
    api: Api, admin: httpx2.AsyncClient
) -> None:
    """SCH-12: in one transaction, told in the audit; a run in flight is not touched."""
    agent = (await admin.post("/v1/agents", json=AGENT)).json()
    run = await add_run(api.database, target_id=agent["id"], schedule_id="sch_a")
    await add_schedule(
        api.database, id="sch_a", cadence=HOURLY, target_id=agent["id"], in_flight_run_id=run["id"]
    )
    await add_schedule(api.database, id="sch_b", cadence=HOURLY, target_id="agt_other", status="paused")
    key = (await admin.post("/v1/keys", json={"target": {"kind": "agent", "id": "writer"}})).json()
    await admin.delete("/v1/agents/writer")
    schedule = await one(api.database, "schedules", id="sch_a")
    assert (schedule["status"], schedule["next_fire_at"]) == ("disabled", None)
    assert schedule["status_reason"] == "its target was deleted"
    assert (await one(api.database, "schedules", id="sch_b"))["status"] == "paused"
    assert (await one(api.database, "runs", id=run["id"]))["status"] == "queued"
    changes = await execute(api.database, "SELECT status FROM status_changes WHERE schedule_id = 'sch_a'")
    assert changes == [{"status": "disabled"}]
    async with api.client(key["key"]) as client:
        assert (await client.get("/v1/agents")).json()["code"] == "key_revoked"
    entries = await api.database.read(lambda tx: audit.after(tx, 0, 99))
    told = {(entry.action, entry.subject_id) for entry in entries}
    assert {("DELETE", agent["id"]), ("DISABLE", "sch_a"), ("REVOKE", key["id"])} <= told


async def test_lists_go_page_by_page(admin: httpx2.AsyncClient) -> None:
    """CONTRACT, lists: every item once, and null at the end."""
    made = [(await admin.post("/v1/agents", json={**AGENT, "slug": f"a{n}"})).json()["id"] for n in range(7)]
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 3}
    for _ in range(3):
        page = (await admin.get("/v1/agents", params=params)).json()
        seen += [agent["id"] for agent in page["items"]]
        params["cursor"] = page["next_cursor"]
    assert params["cursor"] is None
    assert seen == sorted(made)


async def test_a_cursor_is_of_use_in_its_own_list_alone(admin: httpx2.AsyncClient) -> None:
    """Reliability 15: a cursor edited or carried elsewhere."""
    for n in range(3):
        await admin.post("/v1/agents", json={**AGENT, "slug": f"a{n}"})
    cursor = (await admin.get("/v1/agents?limit=1")).json()["next_cursor"]
    for path, text in (("/v1/teams", cursor), ("/v1/agents", cursor[:-2]), ("/v1/agents", cursor + "AAAA")):
        answer = await admin.get(path, params={"cursor": text})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")
