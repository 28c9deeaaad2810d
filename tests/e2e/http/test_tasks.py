"""The board over HTTP: its forms, its refusals, its repeats (CONTRACT, HTTP; BRD, IDM-2, OPS-8)."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from support.api import Api
from support.rows import execute

PM = {"role": "pm", "instance": "pm-1"}
FIELDS = {
    "id",
    "role",
    "title",
    "body",
    "priority",
    "status",
    "prerequisites",
    "waits_for",
    "dedup_key",
    "fence",
    "possibly_half_done",
    "last_report",
    "held_by",
    "created_at",
    "created_by",
    "updated_at",
}


async def make(admin: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    made = await admin.post("/v1/tasks", json={"role": "pm", "title": "Look at the issues"} | fields)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def claim(admin: httpx2.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    answer = await admin.post("/v1/tasks/claim", json=PM | fields)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_a_task_is_made_claimed_renewed_and_reported(api: Api, admin: httpx2.AsyncClient) -> None:
    """BRD-1, BRD-2, BRD-3: the life of one task, in the words of the contract."""
    task = await make(admin, body="All of\nthem", priority=3)
    assert set(task) == FIELDS
    assert (task["status"], task["held_by"], task["fence"]) == ("backlog", None, 0)
    [granted] = await claim(admin)
    assert set(granted) == {"task", "fence", "expires_at", "verify_first", "claim_id", "renew_seconds"}
    assert (granted["fence"], granted["verify_first"]) == (1, False)
    held = granted["task"]["held_by"]
    assert (held["instance"], held["fence"], held["expires_at"]) == ("pm-1", 1, granted["expires_at"])
    api.clock.advance(60)
    renewed = await admin.post(f"/v1/tasks/{task['id']}/renew", json={"fence": 1, "note": "half way"})
    assert renewed.status_code == 200, renewed.text
    assert renewed.json()["expires_at"] > granted["expires_at"]
    assert renewed.json()["task"]["last_report"]["note"] == "half way"
    report = {"fence": 1, "status": "done", "note": "there was one", "result": {"issues": [7]}}
    done = await admin.post(f"/v1/tasks/{task['id']}/report", json=report)
    assert (done.status_code, done.json()["status"], done.json()["held_by"]) == (200, "done", None)
    assert done.json()["last_report"]["result"] == {"issues": [7]}
    entries = (await admin.get("/v1/audit", params={"subject": task["id"]})).json()["items"]
    assert [(each["action"], each["fence"]) for each in entries] == [
        ("CREATE", None),
        ("CLAIM", 1),
        ("RENEW", 1),
        ("RELEASE", 1),
    ]
    assert await claim(admin) == []


async def test_a_report_by_who_is_not_the_holder_is_refused(api: Api, admin: httpx2.AsyncClient) -> None:
    """BRD-3: an old fence, one that was never granted, another instance, another key: 409, on record, nothing changed."""
    task = await make(admin)
    await claim(admin)
    path = f"/v1/tasks/{task['id']}"
    async with api.client(await api.key("tasks:claim")) as other:
        refused = [
            await admin.post(f"{path}/report", json={"fence": 0, "status": "done"}),
            await admin.post(f"{path}/report", json={"fence": 2, "status": "done"}),
            await admin.post(f"{path}/report", json={"fence": 1, "status": "done", "instance": "pm-2"}),
            await admin.post(f"{path}/renew", json={"fence": 2}),
            await other.post(f"{path}/report", json={"fence": 1, "status": "done"}),
            await other.post(f"{path}/renew", json={"fence": 1}),
        ]
        assert [(each.status_code, each.json()["code"]) for each in refused] == [(409, "fence_stale")] * 6
        assert all(each.json()["holder"] == "pm-1" for each in refused)
        standing = (await admin.get(path)).json()
        assert (standing["status"], standing["held_by"]["fence"]) == ("in_progress", 1)
        fenced = (await admin.get("/v1/audit", params={"subject": task["id"], "action": "FENCED"})).json()
        assert [each["fence"] for each in fenced["items"]] == [0, 2, 1, 2, 1, 1]
        named = {"fence": 1, "status": "done", "instance": "pm-1"}
        assert (await other.post(f"{path}/report", json=named)).status_code == 200


async def test_a_repeated_report_has_one_effect(admin: httpx2.AsyncClient) -> None:
    """BRD-3, BRD-7: the answer was lost, so it is given again; another report under the same fence is refused."""
    task = await make(admin)
    await claim(admin)
    path = f"/v1/tasks/{task['id']}/report"
    report = {"fence": 1, "status": "in_review", "note": "look at it"}
    first, again = [await admin.post(path, json=report) for _ in range(2)]
    assert first.json() == again.json()
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    other = await admin.post(path, json={"fence": 1, "status": "done"})
    assert (other.status_code, other.json()["code"]) == (409, "fence_stale")
    assert "in_review" in other.json()["detail"]
    entries = (await admin.get("/v1/audit", params={"subject": task["id"], "action": "RELEASE"})).json()
    assert len(entries["items"]) == 1
    await admin.patch(f"/v1/tasks/{task['id']}", json={"status": "backlog"})
    await claim(admin)
    for _ in (
        "held",
        "free",
    ):  # somebody may have worked on it since: that it was taken once is of no use any more
        late = await admin.post(path, json=report)
        assert (late.status_code, late.json()["code"]) == (409, "fence_stale")
        await admin.post(f"/v1/tasks/{task['id']}/release")


async def test_a_dedup_key_makes_one_task(api: Api, admin: httpx2.AsyncClient) -> None:
    """IDM-2: a repeat answers with what exists, marked; another body is refused; fifty at once make one."""
    body = {"role": "pm", "title": "Triage", "dedup_key": "triage/2026-W48"}
    answers = await asyncio.gather(*(admin.post("/v1/tasks", json=body) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    marked = [answer.headers.get("idempotent-replayed") for answer in answers if answer.status_code == 200]
    assert set(marked) == {"true"}
    other = await admin.post("/v1/tasks", json=body | {"title": "Other"})
    assert (other.status_code, other.json()["code"]) == (422, "dedup_key_reused")
    assert [fault["field"] for fault in other.json()["errors"]] == ["dedup_key"]
    assert other.json()["task_id"] == answers[0].json()["id"]
    found = (await admin.get("/v1/tasks")).json()["items"]
    assert len(found) == 1
    [granted] = await claim(admin)
    again = await admin.post("/v1/tasks", json=body)
    assert (again.status_code, again.json()["status"]) == (200, "in_progress")
    assert granted["task"]["id"] == again.json()["id"]


async def test_an_idempotency_key_makes_one_task(admin: httpx2.AsyncClient) -> None:
    """IDM-2."""
    body = {"role": "pm", "title": "Triage"}
    headers = {"idempotency-key": "k-1"}
    first, again = [await admin.post("/v1/tasks", json=body, headers=headers) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["idempotent-replayed"] == "true"
    other = await admin.post("/v1/tasks", json=body | {"title": "x"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_cycle_is_refused_by_its_name(admin: httpx2.AsyncClient) -> None:
    """BRD-8: across roles."""
    first = await make(admin)
    second = await make(admin, role="dev", prerequisites=[first["id"]])
    third = await make(admin, role="qa", prerequisites=[second["id"]])
    path = f"/v1/tasks/{first['id']}"
    for needs, cycle in (
        ([third["id"]], [first["id"], third["id"], second["id"], first["id"]]),
        ([first["id"]], [first["id"], first["id"]]),
    ):
        refused = await admin.patch(path, json={"prerequisites": needs})
        assert (refused.status_code, refused.json()["code"]) == (422, "dependency_cycle")
        assert refused.json()["cycle"] == cycle
        assert " needs ".join(cycle) in refused.json()["errors"][0]["message"]
    assert (await admin.get(path)).json()["prerequisites"] == []


async def test_what_waits_says_for_what(admin: httpx2.AsyncClient) -> None:
    """BRD-1: a cancelled prerequisite opens no gate, and the task says so; taken out, it does not wait any more."""
    first = await make(admin, title="first")
    second = await make(admin, title="second", prerequisites=[first["id"]])
    assert second["waits_for"] == [{"id": first["id"], "status": "backlog"}]
    assert [each["task"]["id"] for each in await claim(admin, limit=9)] == [first["id"]]
    cancelled = {"fence": 1, "status": "cancelled"}
    await admin.post(f"/v1/tasks/{first['id']}/report", json=cancelled)
    path = f"/v1/tasks/{second['id']}"
    assert (await admin.get(path)).json()["waits_for"] == [{"id": first["id"], "status": "cancelled"}]
    assert await claim(admin) == []
    needed = await admin.delete(f"/v1/tasks/{first['id']}")
    assert (needed.status_code, needed.json()["code"], needed.json()["tasks"]) == (
        409,
        "task_needed",
        [second["id"]],
    )
    free = await admin.patch(path, json={"prerequisites": []})
    assert (free.status_code, free.json()["waits_for"]) == (200, [])
    assert [each["task"]["id"] for each in await claim(admin)] == [second["id"]]
    assert (await admin.delete(f"/v1/tasks/{first['id']}")).status_code == 204


async def test_a_held_task_is_not_edited_or_deleted(admin: httpx2.AsyncClient) -> None:
    """409 with the holder; a person with the scope takes it back first, and the task says what that leaves (BRD-6)."""
    task = await make(admin)
    await claim(admin)
    path = f"/v1/tasks/{task['id']}"
    for refused in (await admin.patch(path, json={"title": "x"}), await admin.delete(path)):
        assert (refused.status_code, refused.json()["code"], refused.json()["holder"]) == (
            409,
            "task_held",
            "pm-1",
        )
        assert "pm-1" in refused.json()["detail"]
    freed = await admin.post(f"{path}/release", json={"reason": "it hangs"})
    assert (freed.status_code, freed.json()["status"], freed.json()["possibly_half_done"]) == (
        200,
        "backlog",
        True,
    )
    late = await admin.post(f"{path}/report", json={"fence": 1, "status": "done"})
    assert (late.status_code, late.json()["code"]) == (409, "fence_stale")
    [granted] = await claim(admin, instance="pm-2")
    assert (granted["fence"], granted["verify_first"]) == (2, True)
    assert (await admin.post(f"{path}/release")).json()["status"] == "backlog"
    nobody = await admin.post(f"{path}/release")
    assert (nobody.status_code, nobody.json()["code"]) == (409, "task_not_held")
    assert (await admin.delete(path)).status_code == 204
    assert (await admin.get(path)).status_code == 404


async def test_a_task_is_handed_over_to_another_role(admin: httpx2.AsyncClient) -> None:
    """BRD-3: with the role named it waits in that role's backlog, with what was reported."""
    task = await make(admin)
    await claim(admin)
    path = f"/v1/tasks/{task['id']}/report"
    wrong = await admin.post(path, json={"fence": 1, "status": "done", "role": "qa"})
    assert (wrong.status_code, [each["field"] for each in wrong.json()["errors"]]) == (422, ["role"])
    handed = await admin.post(
        path, json={"fence": 1, "status": "backlog", "role": "qa", "note": "please look"}
    )
    assert (handed.json()["role"], handed.json()["status"]) == ("qa", "backlog")
    assert await claim(admin) == []
    [granted] = await claim(admin, role="qa", instance="qa-1")
    assert granted["verify_first"] is False
    last = granted["task"]["last_report"]
    assert (last["instance"], last["note"], last["role"]) == ("pm-1", "please look", "qa")


async def test_a_claim_is_asked_for_again_by_its_id(admin: httpx2.AsyncClient) -> None:
    """RUN-5a: the same id gives the same grants while they hold, and takes nothing more."""
    for number in range(4):
        await make(admin, title=f"t{number}")
    first = await claim(admin, limit=2, claim_id="c-1")
    again = await claim(admin, limit=2, claim_id="c-1")
    assert again == first
    assert len(await claim(admin, limit=9, claim_id="c-2")) == 2
    assert await claim(admin, limit=9, claim_id="c-1", instance="pm-2") == []


async def test_urgent_first_then_oldest(admin: httpx2.AsyncClient) -> None:
    """BRD-1: by priority, then by age, over one role."""
    made = [await make(admin, title=str(n), priority=n % 3) for n in range(9)]
    await make(admin, role="dev", priority=99)
    wanted = sorted(made, key=lambda task: (-task["priority"], task["id"]))
    taken = [granted["task"]["id"] for granted in await claim(admin, limit=4)]
    taken += [granted["task"]["id"] for granted in await claim(admin, limit=100, instance="pm-2")]
    assert taken == [task["id"] for task in wanted]


async def test_lists_are_filtered_and_paged(api: Api, admin: httpx2.AsyncClient) -> None:
    for number in range(5):
        api.clock.advance(1)
        await make(admin, title=f"t{number}", role="pm" if number % 2 else "dev")
    [held] = await claim(admin)

    async def titles(**chosen: Any) -> list[str]:
        answer = await admin.get("/v1/tasks", params=chosen)
        assert answer.status_code == 200, answer.text
        found = [task["title"] for task in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        return found + (await titles(**{**chosen, "cursor": cursor}) if cursor else [])

    assert await titles(limit=2) == ["t0", "t1", "t2", "t3", "t4"]
    assert await titles(role="pm") == ["t1", "t3"]
    assert await titles(status="in_progress") == await titles(holder="pm-1") == ["t1"]
    assert await titles(holder=held["task"]["held_by"]["instance_id"]) == ["t1"]
    assert await titles(holder="pm-1", role="dev") == await titles(holder="nobody") == []
    bad = await admin.get("/v1/tasks", params={"status": "doing"})
    assert bad.status_code == 422


async def test_only_a_claim_begins_a_task(admin: httpx2.AsyncClient) -> None:
    """BRD-3: the workflow is a table; what it does not allow is told with what it does."""
    task = await make(admin)
    path = f"/v1/tasks/{task['id']}"
    for status, words in (("in_progress", "claim"), ("in_review", "blocked, cancelled, done")):
        refused = await admin.patch(path, json={"status": status})
        assert refused.status_code == 422
        [fault] = refused.json()["errors"]
        assert fault["field"] == "status"
        assert words in fault["message"]
    assert (await admin.patch(path, json={"status": "done"})).json()["status"] == "done"
    assert (await admin.patch(path, json={"status": "blocked"})).status_code == 422
    assert (await admin.patch(path, json={"status": "backlog"})).json()["status"] == "backlog"


async def test_a_prerequisite_that_is_reopened_closes_the_gate_again(admin: httpx2.AsyncClient) -> None:
    """BRD-1: every prerequisite is done, not was."""
    first = await make(admin)
    second = await make(admin, prerequisites=[first["id"]], priority=9)
    await admin.patch(f"/v1/tasks/{first['id']}", json={"status": "done"})
    await admin.patch(f"/v1/tasks/{first['id']}", json={"status": "backlog"})
    assert [each["task"]["id"] for each in await claim(admin, limit=9)] == [first["id"]]
    assert (await admin.get(f"/v1/tasks/{second['id']}")).json()["waits_for"] == [
        {"id": first["id"], "status": "in_progress"}
    ]


BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("", {}, ["role", "title"]),
    (
        "",
        {"role": "Not A Slug", "title": "", "body": 3, "priority": "high"},
        ["role", "title", "body", "priority"],
    ),
    ("", {"role": "pm", "title": "t", "status": "done", "held_by": {}}, ["status", "held_by"]),
    ("", {"role": "pm", "title": "t", "prerequisites": ["tsk_none"], "dedup_key": "k"}, ["prerequisites"]),
    ("", {"role": "pm", "title": "t", "priority": 10**7, "dedup_key": ""}, ["priority", "dedup_key"]),
    ("/claim", {}, ["role", "instance"]),
    ("/claim", {**PM, "limit": 0, "wait_seconds": 31, "roles": 1}, ["roles", "limit", "wait_seconds"]),
    ("/tsk_1/renew", {}, ["fence"]),
    ("/tsk_1/renew", {"fence": "1", "note": 1, "instance": ""}, ["fence", "instance", "note"]),
    ("/tsk_1/report", {"fence": -1, "status": "in_progress"}, ["fence", "status"]),
    ("/tsk_1/report", {"fence": 1, "status": "done", "result": "x" * 100_001}, ["result"]),
    ("/tsk_1/release", {"status": "in_progress", "why": 1}, ["why", "status"]),
]


@pytest.mark.parametrize(
    ("path", "body", "fields"), BAD, ids=[f"{path} {n}" for n, (path, _, _) in enumerate(BAD)]
)
async def test_every_fault_is_told_at_its_field(
    admin: httpx2.AsyncClient, path: str, body: dict[str, Any], fields: list[str]
) -> None:
    """OPS-8."""
    answer = await admin.post(f"/v1/tasks{path}", json=body)
    assert answer.status_code == 422, answer.text
    assert sorted(fault["field"] for fault in answer.json()["errors"]) == sorted(fields)
    assert (await admin.get("/v1/tasks")).json()["items"] == []


async def test_what_is_not_there_is_not_found(admin: httpx2.AsyncClient) -> None:
    """OPS-8."""
    asked = [
        await admin.get("/v1/tasks/tsk_none"),
        await admin.patch("/v1/tasks/tsk_none", json={"title": "x"}),
        await admin.delete("/v1/tasks/tsk_none"),
        await admin.post("/v1/tasks/tsk_none/renew", json={"fence": 1}),
        await admin.post("/v1/tasks/tsk_none/report", json={"fence": 1, "status": "done"}),
        await admin.post("/v1/tasks/tsk_none/release"),
    ]
    assert [(each.status_code, each.json()["code"]) for each in asked] == [(404, "not_found")] * 6


async def test_each_route_needs_its_scope(api: Api, admin: httpx2.AsyncClient) -> None:
    """SEC-1."""
    task = await make(admin)
    path = f"/v1/tasks/{task['id']}"

    async def codes(scope: str) -> list[int]:
        async with api.client(await api.key(scope)) as client:
            asked = [
                await client.get(path),
                await client.post("/v1/tasks", json={"role": "pm", "title": "t"}),
                await client.post(f"{path}/release"),
                await client.post("/v1/tasks/claim", json={"role": "none", "instance": "i"}),
                await client.post(f"{path}/report", json={"fence": 3, "status": "done"}),
            ]
        return [answer.status_code for answer in asked]

    assert await codes("tasks:read") == [200, 403, 403, 403, 403]
    assert await codes("tasks:write") == [403, 201, 409, 403, 403]
    assert await codes("tasks:claim") == [403, 403, 403, 200, 409]


async def test_a_key_that_serves_a_role_works_for_that_role_alone(
    api: Api, admin: httpx2.AsyncClient
) -> None:
    """SEC-3: and a hand-over whose answer was lost is still answered as the first."""
    theirs, mine = await make(admin, role="dev"), await make(admin)
    await claim(admin, role="dev", instance="dev-1")
    key = await api.key(name="pm", scopes=["tasks:claim"], role="pm")
    async with api.client(key) as pm:
        path = f"/v1/tasks/{theirs['id']}"
        held = {"fence": 1, "instance": "dev-1"}
        refused = [
            await pm.post("/v1/tasks/claim", json={"role": "dev", "instance": "pm-1"}),
            await pm.post(f"{path}/renew", json=held),
            await pm.post(f"{path}/report", json=held | {"status": "done"}),
        ]
        assert [(each.status_code, each.json()["code"]) for each in refused] == [
            (403, "key_bound_to_role")
        ] * 3
        assert (await admin.get(path)).json()["held_by"]["instance"] == "dev-1"
        [granted] = (await pm.post("/v1/tasks/claim", json=PM)).json()["items"]
        assert granted["task"]["id"] == mine["id"]
        handed = {"fence": 1, "status": "backlog", "role": "dev"}
        answers = [await pm.post(f"/v1/tasks/{mine['id']}/report", json=handed) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[1].headers["idempotent-replayed"] == "true"
        await claim(admin, role="dev", instance="dev-1")
        late = await pm.post(f"/v1/tasks/{mine['id']}/report", json=handed)
        assert (late.status_code, late.json()["code"]) == (409, "fence_stale")


async def test_a_claim_that_waits_hears_of_a_new_task(api: Api, admin: httpx2.AsyncClient) -> None:
    """BRD-1: bounded, and woken by the signal."""
    asked = asyncio.create_task(claim(admin, wait_seconds=30))
    for _ in range(100):
        if await execute(api.database, "SELECT 1 FROM instances"):
            break
        await asyncio.sleep(0)
    task = await make(admin)
    [granted] = await asyncio.wait_for(asked, 10)
    assert granted["task"]["id"] == task["id"]


async def test_a_claim_that_waits_ends_in_time(api: Api, admin: httpx2.AsyncClient) -> None:
    asked = asyncio.create_task(claim(admin, wait_seconds=30))
    for _ in range(100):
        if await execute(api.database, "SELECT 1 FROM instances"):
            break
        await asyncio.sleep(0)
    api.clock.advance(31)
    await make(admin, role="dev")  # whatever wakes it, it sees the time
    assert await asyncio.wait_for(asked, 10) == []


async def test_a_holder_whose_window_is_over_goes_on_until_somebody_took_it(
    api: Api, admin: httpx2.AsyncClient
) -> None:
    """BRD-2: late by less than a sweep costs nobody anything, so nothing is thrown away."""
    task = await make(admin)
    await claim(admin)
    api.clock.advance(timedelta(seconds=150).total_seconds())
    renewed = await admin.post(f"/v1/tasks/{task['id']}/renew", json={"fence": 1})
    assert renewed.status_code == 200
    assert (
        await admin.post(f"/v1/tasks/{task['id']}/report", json={"fence": 1, "status": "done"})
    ).status_code == 200
