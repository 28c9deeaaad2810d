"""One effect for each Idempotency-Key at every address that makes something, found by walking them all (IDM-2)."""

from typing import Any

import httpx2
import pytest

from gnomon.services import dedup
from support.api import Api
from support.creations import CREATIONS, MAKES_NOTHING, Creation, creations, makes
from support.rows import execute

KEY = {"idempotency-key": "order-1"}


@pytest.fixture
async def made(admin: httpx2.AsyncClient) -> dict[str, str]:
    """What addresses may name: a schedule, over an agent that the later creations name too."""
    for path, body in (("/v1/agents", CREATIONS[0].body), ("/v1/schedules", CREATIONS[4].body)):
        answer = await admin.post(path, json={**body, **({"name": "standing"} if "cadence" in body else {})})
        assert answer.status_code == 201, answer.text
    return {"schedule": answer.json()["id"]}


async def post(
    admin: httpx2.AsyncClient, creation: Creation, made: dict[str, str], body: Any = None
) -> httpx2.Response:
    """Ask for what makes something, or for another body, under the one key."""
    sent = creation.body if body is None else body
    return await admin.post(creation.path.format(**made), json=sent, headers=KEY)


def walked(api: Api) -> list[Creation]:
    """Every creation but that of the agent that stands already."""
    return [creation for creation in creations(api.app) if creation.path != "/v1/agents"]


async def test_every_address_that_makes_something_is_walked(api: Api) -> None:
    """IDM-2: a new one stands in support/creations.py, or says there why it makes nothing."""
    described = api.app.openapi()["paths"]
    assert makes(api.app) - {creation.path for creation in CREATIONS} - MAKES_NOTHING.keys() == set()
    for creation in creations(api.app):
        names = [parameter["name"] for parameter in described[creation.path]["post"]["parameters"]]
        assert "Idempotency-Key" in names, creation.path


async def test_a_repeat_is_answered_as_the_first_was(
    api: Api, admin: httpx2.AsyncClient, made: dict[str, str]
) -> None:
    """IDM-2: status, address, entity tag, body and secrets; marked as a repeat."""
    for creation in walked(api):
        first = await post(admin, creation, made)
        again = await post(admin, creation, made, dict(reversed(creation.body.items())))
        assert first.status_code == again.status_code == creation.status, (creation.path, first.text)
        assert again.json() == first.json(), creation.path
        for name in ("location", "etag"):
            assert again.headers.get(name) == first.headers.get(name), creation.path
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true", creation.path


async def test_another_body_is_refused(api: Api, admin: httpx2.AsyncClient, made: dict[str, str]) -> None:
    """IDM-2: 422, and what was made first stays what it was."""
    for creation in walked(api):
        first = await post(admin, creation, made)
        other = await post(admin, creation, made, creation.other)
        assert other.status_code == 422, creation.path
        if not creation.path.endswith("/run"):  # whose body can only be empty
            assert other.json()["code"] == "idempotency_key_reused", creation.path
        assert (await post(admin, creation, made)).json() == first.json(), creation.path


async def test_while_the_first_is_going_on_the_second_is_told_to_wait(
    api: Api, admin: httpx2.AsyncClient, made: dict[str, str]
) -> None:
    """IDM-2: 409; nothing is made a second time."""
    for creation in walked(api):
        first = await post(admin, creation, made)
        kept = await execute(api.database, "SELECT * FROM idempotency_keys WHERE answer IS NOT NULL")
        await execute(api.database, "UPDATE idempotency_keys SET answer = NULL")
        early = await post(admin, creation, made)
        assert (early.status_code, early.json()["code"]) == (409, "idempotency_key_in_use"), creation.path
        [row] = kept
        await execute(api.database, "UPDATE idempotency_keys SET answer = :answer", answer=row["answer"])
        assert (await post(admin, creation, made)).json() == first.json()
        await execute(api.database, "DELETE FROM idempotency_keys")


async def test_an_answer_is_kept_for_a_day_and_then_cleaned_away(
    api: Api, admin: httpx2.AsyncClient, made: dict[str, str]
) -> None:
    """IDM-2: expired is none, at every address."""
    for creation in walked(api):
        assert (await post(admin, creation, made)).status_code == creation.status
    api.clock.advance(dedup.LASTS_SECONDS - 1)
    for creation in walked(api):
        assert "idempotent-replayed" in (await post(admin, creation, made)).headers, creation.path
    api.clock.advance(1)
    for creation in walked(api):
        assert "idempotent-replayed" not in (await post(admin, creation, made)).headers, creation.path
    api.clock.advance(dedup.LASTS_SECONDS)
    await dedup.clean(api.database)
    assert await execute(api.database, "SELECT * FROM idempotency_keys") == []


async def test_a_plan_takes_no_key(admin: httpx2.AsyncClient) -> None:
    """IDM-2: it makes nothing; the document that follows under the same key does."""
    document = CREATIONS[-1].body
    planned = await admin.post("/v1/apply?dry_run=true", json=document, headers=KEY)
    applied = await admin.post("/v1/apply", json=document, headers=KEY)
    again = await admin.post("/v1/apply", json=document, headers=KEY)
    assert (planned.json()["applied"], applied.json()["applied"]) == (False, True)
    assert "idempotent-replayed" not in applied.headers
    assert applied.json()["items"][0]["secret"].startswith("whsec_")
    assert again.json() == applied.json()
