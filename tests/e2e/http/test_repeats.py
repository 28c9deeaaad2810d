"""One effect for each Idempotency-Key (IDM-2; casebook ide-01, ide-02, ide-03, ide-06; reliability 61, 63)."""

import asyncio
import json

import httpx2
import pytest

from gnomon.services import dedup
from gnomon.stores import audit
from gnomon.stores.sqlite.database import SqliteDatabase
from support.api import AGENT, Api
from support.rows import execute

KEY = {"idempotency-key": "order-1"}
HTTP_AGENT = {"slug": "hook", "runtime": {"kind": "http", "url": "https://example.com/"}}


async def test_fifty_at_once_make_one(api: Api, admin: httpx2.AsyncClient) -> None:
    """Casebook ide-01, ide-03."""
    answers = await asyncio.gather(*(admin.post("/v1/agents", json=AGENT, headers=KEY) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert len(await api.services.agents.page("", 9)) == 1


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/v1/agents", HTTP_AGENT),
        ("/v1/teams", {"slug": "t", "nodes": [{"id": "a", "agent": "writer"}], "output": "a"}),
        ("/v1/calendars", {"slug": "de", "dates": ["2026-12-25"]}),
        ("/v1/keys", {"scopes": ["agents:read"]}),
    ],
)
async def test_a_repeat_gets_the_first_answer_again(
    admin: httpx2.AsyncClient, path: str, written: dict[str, object]
) -> None:
    """IDM-2: status, address, entity tag and body, secrets included; marked as a repeat."""
    await admin.post("/v1/agents", json=AGENT)
    first = await admin.post(path, json=written, headers=KEY)
    again = await admin.post(path, json=dict(reversed(written.items())), headers=KEY)
    assert first.status_code == again.status_code == 201, first.text
    assert again.json() == first.json()
    for name in ("location", "etag"):
        assert again.headers.get(name) == first.headers.get(name)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


async def test_another_spelling_is_the_same_body_and_another_body_is_refused(
    admin: httpx2.AsyncClient,
) -> None:
    """Casebook ide-02."""
    head = {**KEY, "content-type": "application/json"}
    await admin.post("/v1/agents", content=json.dumps(AGENT), headers=head)
    spelled = json.dumps(dict(reversed(AGENT.items())), indent=4)
    assert (await admin.post("/v1/agents", content=spelled, headers=head)).status_code == 201
    other = await admin.post("/v1/agents", json={**AGENT, "name": "Other"}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await admin.get("/v1/agents")).json()["items"]) == 1


async def test_the_key_holds_for_one_route_and_one_caller(api: Api, admin: httpx2.AsyncClient) -> None:
    """Reliability 61."""
    await admin.post("/v1/agents", json=AGENT, headers=KEY)
    calendar = await admin.post("/v1/calendars", json={"slug": "de"}, headers=KEY)
    assert calendar.status_code == 201
    assert "idempotent-replayed" not in calendar.headers
    async with api.client(await api.key()) as other:
        answer = await other.post("/v1/agents", json=AGENT, headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "slug_taken")


async def test_a_refused_request_does_not_use_the_key_up(admin: httpx2.AsyncClient) -> None:
    """Casebook ide-06: a validation failure stores no answer."""
    refused = await admin.post("/v1/agents", json={"slug": "NO"}, headers=KEY)
    assert refused.status_code == 422
    assert (await admin.post("/v1/agents", json=AGENT, headers=KEY)).status_code == 201


async def test_a_day_later_it_is_a_new_request(api: Api, admin: httpx2.AsyncClient) -> None:
    """Casebook ide-06: documented, and the old answer is cleaned up."""
    await admin.post("/v1/agents", json=AGENT, headers=KEY)
    api.clock.advance(dedup.LASTS_SECONDS - 1)
    assert "idempotent-replayed" in (await admin.post("/v1/agents", json=AGENT, headers=KEY)).headers
    api.clock.advance(1)
    assert (await admin.post("/v1/agents", json=AGENT, headers=KEY)).status_code == 409
    await dedup.clean(api.database)
    assert await execute(api.database, "SELECT * FROM idempotency_keys") == []


async def test_effect_and_answer_are_written_together_or_not_at_all(
    api: Api, admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 63: an end between the two leaves neither, so that a retry makes exactly one."""

    async def dies(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr("gnomon.stores.idempotency.keep", dies)
        assert (await admin.post("/v1/agents", json=AGENT, headers=KEY)).status_code == 500
    assert await api.services.agents.page("", 9) == []
    retried = await admin.post("/v1/agents", json=AGENT, headers=KEY)
    assert retried.status_code == 201
    assert "idempotent-replayed" not in retried.headers


async def test_a_kept_answer_can_not_be_read_out_of_the_database(
    admin: httpx2.AsyncClient, database: SqliteDatabase
) -> None:
    """SEC-3: a key is shown once and stored nowhere, not even in the answer kept for a repeat."""
    made = await admin.post("/v1/keys", json={"scopes": ["*"]}, headers=KEY)
    secret = await admin.post("/v1/agents", json=HTTP_AGENT, headers=KEY)
    await database.write(lambda tx: audit.append_many(tx, []))
    raw = b"".join(
        path.read_bytes() for path in database.path.parent.iterdir() if path.name.startswith("gnomon.db")
    )
    assert made.json()["key"].encode() not in raw
    assert made.json()["key"].split("_")[3].encode() not in raw
    assert secret.json()["id"].encode() in raw


@pytest.mark.parametrize("given", ["", " ", "x" * 256, "é"])
async def test_a_key_that_can_not_be_one_is_refused(admin: httpx2.AsyncClient, given: str) -> None:
    answer = await admin.post("/v1/agents", json=AGENT, headers={b"idempotency-key": given.encode("latin-1")})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_header")
