"""``/v1/overview`` and ``/v1/usage`` as a dashboard asks for them (UI-1)."""

import httpx2

from gnomon.domain.caller import system
from gnomon.domain.ids import Kind, make_id
from support.api import Api
from support.rows import AGENT as AGENT_ROW
from support.rows import AT, RUN, SECOND, add, add_many, add_schedule

DAY = 86_400 * SECOND


async def a_house(api: Api) -> None:
    """An agent with four runs that told of usage, one that failed, a schedule that is late, a task."""
    await add(api.database, "agents", AGENT_ROW)
    await add_schedule(api.database, next_fire_at=AT - 90 * SECOND)
    await api.services.tasks.create(system("test"), {"role": "pm", "title": "Look"})
    runs = []
    for number, status in enumerate(("succeeded", "succeeded", "succeeded", "failed")):
        at = AT - number * DAY
        used = {"model_calls": number, "input_tokens": 10, "output_tokens": 1, "cost": 0.5}
        over = {"status": status, "claimable_at": None, "finished_at": at, "invoked_by": "key_1"}
        runs.append({**RUN, "id": make_id(Kind.RUN, at // 1_000, number), **over, **used})
    await add_many(api.database, "runs", runs)


async def test_the_overview_tells_health_queues_and_schedules(api: Api, admin: httpx2.AsyncClient) -> None:
    """UI-1: online instances, completions this week, expired locks today, late and failed, queues, schedules."""
    await a_house(api)
    answer = await admin.get("/v1/overview?zone=Europe/Berlin")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["zone"], found["week_at"]) == ("Europe/Berlin", "2026-11-22T23:00:00Z")
    assert found["completions_this_week"] == {"runs": 3, "tasks": 0, "triggers": 0, "at_least": False}
    assert found["late"] == {"slots": 1, "jobs": 0, "runs": 0}
    assert found["failed_today"] == {"runs": 0, "triggers": 0, "missed_triggers": 0}
    assert found["expired_locks_today"] == {"runs": 0, "tasks": 0}
    assert found["instances"] == {"online": 0, "draining": 0, "offline": 0}
    assert found["schedules"] == {"active": 1, "paused": 0, "completed": 0, "error": 0, "disabled": 0}
    [role] = found["queue"]
    assert (role["role"], role["claimable"], role["in_progress"]) == ("pm", 1, 0)


async def test_usage_is_told_by_day_target_and_principal(api: Api, admin: httpx2.AsyncClient) -> None:
    """UI-1: in pages, with the sum of all."""
    await a_house(api)
    first = (await admin.get("/v1/usage?limit=3")).json()
    rest = (await admin.get(f"/v1/usage?limit=3&cursor={first['next_cursor']}")).json()
    assert [item["day"] for item in first["items"]] == ["2026-11-26", "2026-11-27", "2026-11-28"]
    assert [item["day"] for item in rest["items"]] == ["2026-11-29"]
    assert rest["next_cursor"] is None
    assert first["items"][0] == {
        "day": "2026-11-26",
        "target": {"kind": "agent", "id": AGENT_ROW["id"], "slug": "agent"},
        "principal": "key_1",
        "runs": 1,
        "model_calls": 3,
        "input_tokens": 10,
        "output_tokens": 1,
        "cost": 0.5,
    }
    assert first["total"] == rest["total"]
    assert (first["total"]["runs"], first["total"]["model_calls"], first["total"]["cost"]) == (4, 6, 2.0)
    alone = (await admin.get("/v1/usage?by=target&since=2026-11-28T00:00:00Z")).json()
    assert [(item["day"], item["principal"], item["runs"]) for item in alone["items"]] == [(None, None, 2)]
    assert alone["since"] == "2026-11-28T00:00:00Z"


async def test_what_can_not_be_told_is_refused_at_its_field(admin: httpx2.AsyncClient) -> None:
    """OPS-8."""
    for query, field in (
        ("overview?zone=nowhere", "zone"),
        ("usage?by=month", "by"),
        ("usage?since=yesterday", "since"),
        ("usage?until=2026-11-29", "until"),
        ("usage?since=2026-11-29T00:00:00Z&until=2026-11-28T00:00:00Z", "until"),
    ):
        answer = await admin.get(f"/v1/{query}")
        assert answer.status_code == 422, query
        assert [error["field"] for error in answer.json()["errors"]] == [field], query
    assert (await admin.get("/v1/usage?cursor=x")).json()["code"] == "bad_cursor"


async def test_each_needs_its_own_scope(api: Api) -> None:
    """SEC-1."""
    for scope, path, other in (
        ("overview:read", "/v1/overview", "/v1/usage"),
        ("usage:read", "/v1/usage", "/v1/doctor"),
        ("settings:read", "/v1/doctor", "/v1/overview"),
    ):
        async with api.client(await api.key(scope)) as client:
            assert (await client.get(path)).status_code == 200
            assert (await client.get(other)).status_code == 403
