"""Schedules over HTTP, to the letter of the contract (SCH-1 … SCH-14, DSP-9)."""

from typing import Any

import httpx2
import pytest

from support.api import AGENT, Api

HOURLY = {"unit": "hour", "every": 1}
WRITTEN: dict[str, Any] = {
    "name": "nightly",
    "target": {"kind": "agent", "id": "writer"},
    "cadence": HOURLY,
    "query": "go",
}
READ = {
    "id", "name", "target", "cadence", "query", "session_mode", "session_id", "starts_at", "ends_at", "max_runs",
    "overlap", "catch_up", "misfire_grace_seconds", "timeout_seconds", "retry", "failure_limit", "on_lost",
    "jitter_seconds", "invoke_as", "scopes", "dedup_key", "status", "status_detail", "revision", "next_fire_at",
    "last_fire_at", "run_count", "failure_streak", "last_error", "in_flight_run_id", "created_at", "created_by",
    "updated_at", "updated_by",
}  # fmt: skip


@pytest.fixture
async def made(admin: httpx2.AsyncClient) -> dict[str, Any]:
    assert (await admin.post("/v1/agents", json=AGENT)).status_code == 201
    answer = await admin.post("/v1/schedules", json=WRITTEN)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def at(schedule: dict[str, Any], path: str = "") -> str:
    return f"/v1/schedules/{schedule['id']}{path}"


def fields(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return {error["field"] for error in answer.json()["errors"]}


async def test_a_schedule_is_made_with_every_default_and_read_again(
    admin: httpx2.AsyncClient, made: dict[str, Any]
) -> None:
    """SCH-14."""
    assert set(made) == READ
    agent = (await admin.get("/v1/agents/writer")).json()
    assert made["target"] == {"kind": "agent", "id": agent["id"]}
    assert made["cadence"] == {"unit": "hour", "every": 1, "zone": "UTC"}
    assert (made["session_mode"], made["overlap"], made["catch_up"]) == ("fresh", "skip", "latest")
    assert (made["misfire_grace_seconds"], made["timeout_seconds"], made["failure_limit"]) == (None, 300, 5)
    assert made["retry"] == {"max_attempts": 1, "backoff_seconds": 10, "backoff_max_seconds": 600}
    assert (made["on_lost"], made["jitter_seconds"], made["revision"]) == ("fail", 0, 1)
    assert (made["status"], made["next_fire_at"]) == ("active", "2026-11-29T10:00:00Z")
    assert set(made["status_detail"]) == {"by", "at", "reason", "until"}
    read = await admin.get(at(made))
    assert read.json() == made
    assert read.headers["etag"] == f'"{made["id"]}.1"'
    listed = await admin.get("/v1/schedules")
    assert listed.json() == {"items": [made], "next_cursor": None}


async def test_bad_input_names_every_field(admin: httpx2.AsyncClient, made: dict[str, Any]) -> None:
    """SCH-14, OPS-8: all faults at once, each at its field."""
    answer = await admin.post(
        "/v1/schedules",
        json={
            "name": "",
            "target": {"kind": "robot", "id": "x y"},
            "cadence": {"unit": "minute", "every": 4, "zone": "Europe/Berln"},
            "query": "{{nope}}",
            "retry": {"max_attempts": 11},
            "timeout_seconds": 0,
            "starts_at": "2026-12-02T00:00:00Z",
            "ends_at": "2026-12-01T00:00:00Z",
            "colour": "red",
            "status": "paused",
        },
    )
    assert fields(answer) >= {
        "name",
        "target.kind",
        "target.id",
        "cadence.every",
        "cadence.zone",
        "query",
        "retry.max_attempts",
        "timeout_seconds",
        "ends_at",
        "colour",
        "status",
    }


async def test_a_one_time_schedule_in_the_past_is_refused(
    admin: httpx2.AsyncClient, made: dict[str, Any]
) -> None:
    """SCH-14, casebook win-08."""
    for moment in ("2026-11-29T08:59:59", "2026-11-29T09:00:00"):
        answer = await admin.post(
            "/v1/schedules", json={**WRITTEN, "cadence": {"unit": "once", "at": moment}}
        )
        assert fields(answer) == {"cadence.at"}
    later = {**WRITTEN, "cadence": {"unit": "once", "at": "2026-11-29T09:00:01"}}
    assert (await admin.post("/v1/schedules", json=later)).status_code == 201
    assert len((await admin.get("/v1/schedules")).json()["items"]) == 2


async def test_a_repeated_create_is_one_schedule(admin: httpx2.AsyncClient, made: dict[str, Any]) -> None:
    """IDM-2."""
    headers = {"Idempotency-Key": "k1"}
    first = await admin.post("/v1/schedules", json=WRITTEN, headers=headers)
    again = await admin.post("/v1/schedules", json=WRITTEN, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["etag"] == first.headers["etag"]
    other = await admin.post("/v1/schedules", json={**WRITTEN, "name": "b"}, headers=headers)
    assert other.status_code == 422
    assert len((await admin.get("/v1/schedules")).json()["items"]) == 2


async def test_an_edit_is_guarded_by_its_tag_and_makes_a_revision(
    admin: httpx2.AsyncClient, api: Api, made: dict[str, Any]
) -> None:
    """SCH-4, SCH-12a."""
    tag = (await admin.get(at(made))).headers["etag"]
    api.clock.advance(60)
    saved = await admin.patch(
        at(made), json={"cadence": {"unit": "minute", "every": 15}}, headers={"If-Match": tag}
    )
    assert saved.status_code == 200
    assert saved.json()["next_fire_at"] == "2026-11-29T09:15:00Z"
    stale = await admin.patch(at(made), json={"query": "x"}, headers={"If-Match": tag})
    assert (stale.status_code, stale.json()["code"]) == (412, "revision_stale")
    same = await admin.patch(at(made), json={"query": "go"}, headers={"If-Match": saved.headers["etag"]})
    assert same.headers["etag"] == saved.headers["etag"]
    revisions = (await admin.get(at(made, "/revisions?limit=1"))).json()
    assert [item["revision"] for item in revisions["items"]] == [2]
    rest = await admin.get(at(made, "/revisions"), params={"cursor": revisions["next_cursor"], "limit": 1})
    assert [item["revision"] for item in rest.json()["items"]] == [1]
    assert rest.json()["items"][0]["definition"]["cadence"] == {"unit": "hour", "every": 1, "zone": "UTC"}
    assert fields(await admin.patch(at(made), json={"cadence": {"unit": "minute", "every": 1}})) == {
        "cadence.every"
    }
    assert fields(await admin.patch(at(made), json={"next_fire_at": "2026-11-29T09:15:00Z"})) == {
        "next_fire_at"
    }


async def test_pause_and_resume(admin: httpx2.AsyncClient, api: Api, made: dict[str, Any]) -> None:
    """SCH-2, SCH-8, casebook pau-04: an unknown field is refused, an accepted one has its effect."""
    paused = await admin.post(
        at(made, "/pause"), json={"reason": "holiday", "until": "2026-11-29T12:30:00+01:00"}
    )
    assert paused.status_code == 200
    body = paused.json()
    assert (body["status"], body["next_fire_at"]) == ("paused", None)
    assert body["status_detail"]["reason"] == "holiday"
    assert body["status_detail"]["until"] == "2026-11-29T11:30:00Z"
    assert fields(await admin.post(at(made, "/pause"), json={"catch_up": True})) == {"catch_up"}
    assert fields(await admin.post(at(made, "/resume"), json={"catch_up": "all"})) == {"catch_up"}
    assert fields(await admin.post(at(made, "/pause"), json={"until": "2026-11-29T08:00:00Z"})) == {"until"}
    api.clock.advance(7200)
    resumed = await admin.post(at(made, "/resume"))
    assert (resumed.json()["status"], resumed.json()["next_fire_at"]) == ("active", "2026-11-29T12:00:00Z")
    bare = await admin.post(at(made, "/pause"))
    assert bare.json()["status_detail"]["reason"] is None


async def test_run_now_answers_with_the_address_of_the_run(
    admin: httpx2.AsyncClient, made: dict[str, Any]
) -> None:
    """SCH-10, SCH-11, casebook edt-05 and run-03."""
    headers = {"Idempotency-Key": "click"}
    started = await admin.post(at(made, "/run"), headers=headers)
    assert started.status_code == 202
    run = started.json()
    assert started.headers["location"] == f"/v1/runs/{run['id']}"
    assert (run["trigger"], run["status"], run["schedule_id"]) == ("manual", "queued", made["id"])
    again = await admin.post(at(made, "/run"), headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, run["id"])
    assert again.headers["idempotent-replayed"] == "true"
    assert (await admin.get(started.headers["location"])).json()["id"] == run["id"]
    for answer in (
        await admin.post(at(made, "/run")),
        await admin.patch(at(made), json={"query": "new"}),
        await admin.delete(at(made)),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "run_in_flight")
        assert answer.json()["run_id"] == run["id"]
    assert (await admin.post(at(made, "/pause"))).status_code == 200
    assert (await admin.get(at(made))).json()["in_flight_run_id"] == run["id"]
    await admin.post(f"/v1/runs/{run['id']}/cancel")
    assert (await admin.delete(at(made))).status_code == 204
    assert (await admin.get(at(made))).status_code == 404
    assert (await admin.get(f"/v1/runs/{run['id']}")).json()["status"] == "cancelled"


async def test_run_now_keeps_the_trace_of_its_caller(admin: httpx2.AsyncClient, made: dict[str, Any]) -> None:
    """OPS-6: ``traceparent`` is taken, and passed on to the target; one that names no trace is left alone."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    run = await admin.post(at(made, "/run"), headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert run.json()["trace_id"] == trace
    await admin.post(f"/v1/runs/{run.json()['id']}/cancel")
    other = await admin.post(at(made, "/run"), headers={"traceparent": "nonsense"})
    assert (other.status_code, len(other.json()["trace_id"])) == (202, 32)


async def test_next_shows_what_will_fire(admin: httpx2.AsyncClient, made: dict[str, Any]) -> None:
    """CAD-8, UI-2."""
    berlin = {"unit": "day", "at": "02:30", "zone": "Europe/Berlin"}
    await admin.patch(at(made), json={"cadence": berlin, "starts_at": "2027-03-27T00:00:00Z"})
    items = (await admin.get(at(made, "/next?count=3"))).json()["items"]
    assert [item["local_time"] for item in items] == [
        "2027-03-27T02:30:00",
        "2027-03-28T03:00:00",
        "2027-03-29T02:30:00",
    ]
    assert [item["offset"] for item in items] == ["+01:00", "+02:00", "+02:00"]
    assert "gap" in items[1]["note"]
    assert (await admin.get(at(made))).json()["next_fire_at"] == items[0]["at"]
    assert (await admin.get(at(made, "/next?count=0"))).status_code == 422


async def test_explain_answers_for_any_instant(
    admin: httpx2.AsyncClient, api: Api, made: dict[str, Any]
) -> None:
    """DSP-9."""
    await admin.post(at(made, "/pause"), json={"reason": "quiet"})
    api.clock.advance(7200)
    found = (await admin.get(at(made, "/explain?at=2026-11-29T11:00:00+01:00"))).json()
    assert (found["verdict"], found["at"]) == ("paused", "2026-11-29T10:00:00Z")
    assert found["status"]["reason"] == "quiet"
    off = (await admin.get(at(made, "/explain?at=2026-11-29T10:30:00Z"))).json()
    assert (off["verdict"], off["before"], off["after"]) == (
        "not_a_slot",
        "2026-11-29T10:00:00Z",
        "2026-11-29T11:00:00Z",
    )
    assert fields(await admin.get(at(made, "/explain?at=yesterday"))) == {"at"}
    assert (await admin.get(at(made, "/explain"))).status_code == 422


async def test_the_ledger_is_paged_and_filtered(
    admin: httpx2.AsyncClient, api: Api, made: dict[str, Any]
) -> None:
    """DSP-9: a due slot that a pause overtakes is in it."""
    for _ in range(3):
        api.clock.advance(3600)
        await admin.post(at(made, "/pause"))
        await admin.post(at(made, "/resume"))
    first = (await admin.get(at(made, "/occurrences?limit=2"))).json()
    assert [item["nominal_fire_at"][11:13] for item in first["items"]] == ["12", "11"]
    record = first["items"][0]
    assert (record["disposition"], record["reason"], record["local_time"]) == (
        "skipped",
        "paused",
        "2026-11-29T12:00:00",
    )
    rest = await admin.get(at(made, "/occurrences"), params={"limit": 2, "cursor": first["next_cursor"]})
    assert [item["nominal_fire_at"][11:13] for item in rest.json()["items"]] == ["10"]
    assert rest.json()["next_cursor"] is None
    window = {"since": "2026-11-29T11:00:00Z", "until": "2026-11-29T12:00:00Z", "disposition": "skipped"}
    assert len((await admin.get(at(made, "/occurrences"), params=window)).json()["items"]) == 1
    assert (await admin.get(at(made, "/occurrences?disposition=fired"))).json()["items"] == []
    assert (await admin.get(at(made, "/occurrences?cursor=xx"))).status_code == 400


@pytest.mark.parametrize(
    ("scope", "verb", "path"),
    [
        ("schedules:read", "POST", ""),
        ("schedules:read", "PATCH", "/{id}"),
        ("schedules:read", "DELETE", "/{id}"),
        ("schedules:read", "POST", "/{id}/pause"),
        ("schedules:read", "POST", "/{id}/resume"),
        ("schedules:write", "POST", "/{id}/run"),
        ("schedules:run", "GET", "/{id}"),
        ("schedules:run", "GET", "/{id}/explain?at=2026-11-29T10:00:00Z"),
        ("schedules:read", "GET", "/{id}/runs"),
    ],
)
async def test_each_path_asks_for_its_scope(
    api: Api, made: dict[str, Any], scope: str, verb: str, path: str
) -> None:
    """SEC-1."""
    async with api.client(await api.key(scope)) as client:
        answer = await client.request(
            verb, "/v1/schedules" + path.format(id=made["id"]), json={} if verb != "GET" else None
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


async def test_who_may_not_delete_is_told_so(
    admin: httpx2.AsyncClient, api: Api, made: dict[str, Any]
) -> None:
    """Casebook tar-06: a refused delete never answers 2xx, and deletes nothing."""
    async with api.client(await api.key("schedules:read", "schedules:run")) as client:
        assert (await client.delete(at(made))).status_code == 403
    assert (await admin.get(at(made))).status_code == 200


async def test_a_deleted_agent_disables_its_schedules(
    admin: httpx2.AsyncClient, made: dict[str, Any]
) -> None:
    """SCH-12, casebook tar-01."""
    assert (await admin.delete("/v1/agents/writer")).status_code == 204
    stands = (await admin.get(at(made))).json()
    assert (stands["status"], stands["next_fire_at"]) == ("disabled", None)
    run = await admin.post(at(made, "/run"))
    assert (run.status_code, run.json()["code"]) == (409, "schedule_disabled")
    resume = await admin.post(at(made, "/resume"))
    assert (resume.status_code, resume.json()["code"]) == (409, "target_gone")


async def test_apply_is_safe_to_repeat_and_export_says_the_same(admin: httpx2.AsyncClient) -> None:
    """SCH-13, casebook dbl-15."""
    document = {"agents": [AGENT], "schedules": [WRITTEN]}
    planned = await admin.post("/v1/apply?dry_run=true", json=document)
    assert planned.status_code == 200, planned.text
    assert [item["step"] for item in planned.json()["items"]] == ["create", "create"]
    assert (await admin.get("/v1/schedules")).json()["items"] == []
    for step in ("create", "unchanged", "unchanged"):
        applied = await admin.post("/v1/apply", json=document)
        assert [item["step"] for item in applied.json()["items"]] == [step, step]
    assert len((await admin.get("/v1/schedules")).json()["items"]) == 1
    exported = (await admin.get("/v1/export")).json()
    assert [s["name"] for s in exported["schedules"]] == ["nightly"]
    again = await admin.post("/v1/apply", json=exported)
    assert {item["step"] for item in again.json()["items"]} == {"unchanged"}
    assert fields(await admin.post("/v1/apply", json={"agents": [AGENT, AGENT]})) == {"agents.1"}
