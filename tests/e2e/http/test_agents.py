"""Agents over HTTP (CONTRACT, "Agent and team")."""

import httpx2

from support.api import AGENT


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
    assert (await admin.get("/v1/agents/writer")).status_code == 404
