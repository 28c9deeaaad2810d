"""API keys over HTTP (SEC-3)."""

from datetime import timedelta

import httpx2
import pytest

from gnomon.domain.instants import rfc3339
from support.api import AGENT, Api
from support.databases import START
from support.rows import execute, one


async def test_a_key_is_shown_once_works_and_is_revoked(api: Api, admin: httpx2.AsyncClient) -> None:
    made = await admin.post("/v1/keys", json={"name": "ci", "scopes": ["agents:read"]})
    assert made.status_code == 201, made.text
    key = made.json()
    assert made.headers["location"] == f"/v1/keys/{key['id']}"
    text = key.pop("key")
    assert text.startswith("gnk_master_key_")
    async with api.client(text) as client:
        assert (await client.get("/v1/agents")).status_code == 200
        assert (await client.get("/v1/keys")).status_code == 403
    read = await admin.get(f"/v1/keys/{key['id']}")
    assert read.json() == {**key, "last_used_at": rfc3339(START)}
    assert text not in (await admin.get("/v1/keys")).text
    assert (await admin.delete(f"/v1/keys/{key['id']}")).status_code == 204
    async with api.client(text) as client:
        assert (await client.get("/v1/agents")).status_code == 401
    for method in ("GET", "DELETE"):
        assert (await admin.request(method, f"/v1/keys/{key['id']}")).status_code == 404
    listed = (await admin.get("/v1/keys")).json()["items"]
    assert key["id"] not in [found["id"] for found in listed]
    with_revoked = (await admin.get("/v1/keys?revoked=true")).json()["items"]
    assert key["id"] in [found["id"] for found in with_revoked]


async def test_nothing_of_a_key_but_its_hash_is_stored(api: Api, admin: httpx2.AsyncClient) -> None:
    """SEC-3, reliability 11: no table holds the secret part, the audit neither."""
    text = (await admin.post("/v1/keys", json={"scopes": ["*"]})).json()["key"]
    secret = text.split("_")[3]
    for table in ("api_keys", "audit", "secrets", "idempotency_keys"):
        rows = await execute(api.database, f"SELECT * FROM {table}")
        assert secret not in repr(rows)
        assert secret.encode() not in b"".join(
            v for row in rows for v in row.values() if isinstance(v, bytes)
        )
    assert len((await one(api.database, "secrets", name="api_key_pepper"))["value"]) == 32


async def test_nobody_makes_a_key_that_opens_more_than_their_own(api: Api, admin: httpx2.AsyncClient) -> None:
    """SEC-3: keys:write is not every scope."""
    await admin.post("/v1/agents", json=AGENT)
    async with api.client(await api.key("keys:*", "agents:*")) as client:
        for scopes in (["*"], ["teams:read"], ["agents:read", "teams:*"]):
            answer = await client.post("/v1/keys", json={"scopes": scopes})
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_exceeds_caller")
        assert (await client.post("/v1/keys", json={"scopes": ["agents:read", "keys:*"]})).status_code == 201
        target = {"target": {"kind": "agent", "id": "writer"}}
        assert (await client.post("/v1/keys", json=target)).status_code == 201
    async with api.client(await api.key("keys:*")) as client:
        assert (await client.post("/v1/keys", json=target)).status_code == 403


async def test_a_key_is_bound_to_a_target_by_id_or_slug(admin: httpx2.AsyncClient) -> None:
    agent = (await admin.post("/v1/agents", json=AGENT)).json()
    for name in ("writer", agent["id"]):
        key = (await admin.post("/v1/keys", json={"target": {"kind": "agent", "id": name}})).json()
        assert key["target"] == {"kind": "agent", "id": agent["id"]}
        assert key["key"].startswith("gnk_master_agt_")
    answer = await admin.post("/v1/keys", json={"target": {"kind": "team", "id": "writer"}, "colour": 1})
    assert {error["field"] for error in answer.json()["errors"]} == {"target.id", "colour"}


async def test_a_key_can_be_renamed_and_given_an_end(admin: httpx2.AsyncClient) -> None:
    key = (await admin.post("/v1/keys", json={"scopes": ["runs:read"]})).json()
    later = rfc3339(START + timedelta(days=1))
    edited = await admin.patch(f"/v1/keys/{key['id']}", json={"name": "reader", "expires_at": later})
    assert (edited.json()["name"], edited.json()["expires_at"]) == ("reader", later)
    kept = await admin.patch(f"/v1/keys/{key['id']}", json={"name": "again"})
    assert kept.json()["expires_at"] == later
    for patch in (
        {"scopes": ["*"]},
        {"target": None},
        {"expires_at": rfc3339(START)},
        {"expires_at": "soon"},
    ):
        assert (await admin.patch(f"/v1/keys/{key['id']}", json=patch)).status_code == 422


@pytest.mark.parametrize("expires_at", [rfc3339(START), rfc3339(START - timedelta(days=1))])
async def test_a_key_that_would_be_over_at_once_is_refused(
    admin: httpx2.AsyncClient, expires_at: str
) -> None:
    answer = await admin.post("/v1/keys", json={"scopes": ["*"], "expires_at": expires_at})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "expires_at")


async def test_the_last_use_is_written_once_a_minute(api: Api, admin: httpx2.AsyncClient) -> None:
    """SEC-3."""
    key = (await admin.post("/v1/keys", json={"scopes": ["agents:read"]})).json()
    async with api.client(key["key"]) as client:
        for seconds, noted in ((0, 0), (30, 0), (30, 60), (59, 60), (1, 120)):
            api.clock.advance(seconds)
            await client.get("/v1/agents")
            read = (await admin.get(f"/v1/keys/{key['id']}")).json()
            assert read["last_used_at"] == rfc3339(START + timedelta(seconds=noted))
