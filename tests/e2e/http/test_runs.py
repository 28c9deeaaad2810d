"""Runs over HTTP: read, cancelled, completed, watched (RUN-6, RUN-9, RUN-10, RUN-11)."""

import json
from typing import Any

import httpx2
import pytest

from gnomon.domain.instants import to_micros
from support.api import AGENT, Api
from support.house import rows

READ = {
    "id", "trigger", "status", "target", "schedule_id", "nominal_fire_at", "scheduled_for", "started_at", "finished_at",
    "duration_seconds", "attempts", "possibly_half_done", "session_id", "message_id", "trace_id", "usage",
    "response_preview", "error", "invoked_by", "api_key_id", "source", "idempotency_key", "dedup_key",
}  # fmt: skip


@pytest.fixture
async def run(admin: httpx2.AsyncClient) -> dict[str, Any]:
    """A queued run that a person started."""
    assert (await admin.post("/v1/agents", json=AGENT)).status_code == 201
    return await another(admin, "one")


async def another(admin: httpx2.AsyncClient, name: str) -> dict[str, Any]:
    written = {
        "name": name,
        "target": {"kind": "agent", "id": "writer"},
        "cadence": {"unit": "hour", "every": 1},
        "query": "go",
    }
    schedule = (await admin.post("/v1/schedules", json=written)).json()
    started = await admin.post(f"/v1/schedules/{schedule['id']}/run")
    assert started.status_code == 202, started.text
    found: dict[str, Any] = started.json()
    return found


async def claimed(api: Api, run: dict[str, Any], fence: int = 3) -> None:
    """The run as a process holds it."""
    now = api.clock.micros()
    await rows(
        api.database,
        "UPDATE runs SET status = 'running', owner = 'prc_x', fence = :fence, attempt = 1, claimable_at = NULL, "
        "started_at = :now, attempt_at = :now, lease_until = :now + 330000000 WHERE id = :id",
        id=run["id"],
        fence=fence,
        now=now,
    )


async def test_a_run_reads_as_the_contract_says(admin: httpx2.AsyncClient, run: dict[str, Any]) -> None:
    """RUN-9."""
    assert set(run) >= READ
    assert (run["trigger"], run["nominal_fire_at"], run["source"]) == ("manual", None, "api")
    assert run["idempotency_key"] == run["id"]
    assert run["usage"] == {"model_calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}
    read = (await admin.get(f"/v1/runs/{run['id']}")).json()
    assert read == {**run, "output": None}
    assert (await admin.get("/v1/runs")).json() == {"items": [run], "next_cursor": None}
    assert (await admin.get("/v1/runs/run_00000000000000000000")).status_code == 404


async def test_lists_page_and_filter(admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]) -> None:
    made = [run]
    for name in ("two", "three"):
        api.clock.advance(1)
        made.append(await another(admin, name))
    first = (await admin.get("/v1/runs?limit=2")).json()
    rest = (await admin.get("/v1/runs", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == [item["id"] for item in reversed(made)]
    assert len((await admin.get("/v1/runs?target=writer&trigger=manual&status=queued")).json()["items"]) == 3
    assert (await admin.get("/v1/runs?status=lost")).json()["items"] == []
    assert (await admin.get("/v1/runs?status=dreaming")).status_code == 422
    own = (await admin.get(f"/v1/schedules/{run['schedule_id']}/runs")).json()
    assert [item["id"] for item in own["items"]] == [run["id"]]


async def test_a_queued_run_is_cancelled_at_once_and_its_schedule_is_free(
    admin: httpx2.AsyncClient, run: dict[str, Any]
) -> None:
    """RUN-10."""
    answer = await admin.post(f"/v1/runs/{run['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    schedule = (await admin.get(f"/v1/schedules/{run['schedule_id']}")).json()
    assert (schedule["in_flight_run_id"], schedule["failure_streak"]) == (None, 0)
    again = await admin.post(f"/v1/runs/{run['id']}/cancel")
    assert again.status_code == 202


async def test_a_running_run_is_asked_to_stop(
    admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]
) -> None:
    """RUN-10: cooperative first; the run says who asked."""
    await claimed(api, run)
    answer = await admin.post(f"/v1/runs/{run['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert answer.json()["cancel_requested_at"] == "2026-11-29T09:00:00Z"
    [entry] = await rows(api.database, "SELECT * FROM audit_entries WHERE action = 'CANCEL'")
    assert entry["subject_id"] == run["id"]


async def test_a_run_that_is_over_can_not_be_cancelled(
    admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]
) -> None:
    await claimed(api, run)
    await admin.post(
        f"/v1/runs/{run['id']}/complete", json={"fence": 3, "status": "succeeded", "output": "x"}
    )
    answer = await admin.post(f"/v1/runs/{run['id']}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "run_over")


async def test_a_target_completes_its_run_with_its_fence(
    admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]
) -> None:
    """RUN-6, RUN-11: the answer is there in full, whoever asks, whenever."""
    await claimed(api, run)
    stale = await admin.post(
        f"/v1/runs/{run['id']}/complete", json={"fence": 2, "status": "succeeded", "output": "no"}
    )
    assert (stale.status_code, stale.json()["code"]) == (409, "fence_stale")
    assert (await admin.get(f"/v1/runs/{run['id']}")).json()["status"] == "running"
    [fenced] = await rows(api.database, "SELECT * FROM audit_entries WHERE action = 'FENCED'")
    assert (fenced["subject_id"], fenced["fence"]) == (run["id"], 2)
    api.clock.advance(5)
    output = "a long answer\n" * 100
    done = await admin.post(
        f"/v1/runs/{run['id']}/complete",
        json={
            "fence": 3,
            "status": "succeeded",
            "output": output,
            "usage": {"model_calls": 2, "input_tokens": 10, "output_tokens": 20, "cost": 0.5},
        },
    )
    assert done.status_code == 200, done.text
    api.clock.advance(86_400 * 30)
    read = (await admin.get(f"/v1/runs/{run['id']}")).json()
    assert (read["status"], read["output"], read["duration_seconds"]) == ("succeeded", output, 5.0)
    assert read["usage"] == {"model_calls": 2, "input_tokens": 10, "output_tokens": 20, "cost": 0.5}
    assert len(read["response_preview"]) == 500
    assert [(a["number"], a["fence"], a["outcome"]) for a in read["attempts"]] == [(1, 3, "succeeded")]
    again = await admin.post(f"/v1/runs/{run['id']}/complete", json={"fence": 3, "status": "failed"})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "succeeded"}, "fence"),
        ({"fence": 1}, "status"),
        ({"fence": 1, "status": "running"}, "status"),
        ({"fence": -1, "status": "failed"}, "fence"),
        ({"fence": 1, "status": "failed", "usage": {"cost": -1}}, "usage.cost"),
        ({"fence": 1, "status": "failed", "usage": {"calls": 1}}, "usage.calls"),
        ({"fence": 1, "status": "failed", "why": "x"}, "why"),
    ],
)
async def test_a_bad_completion_names_its_field(
    admin: httpx2.AsyncClient, run: dict[str, Any], body: dict[str, Any], field: str
) -> None:
    """OPS-8."""
    answer = await admin.post(f"/v1/runs/{run['id']}/complete", json=body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def events(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


async def test_the_event_stream_ends_with_the_run_and_is_resumable(
    admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]
) -> None:
    """TGT-2, RUN-11."""
    await claimed(api, run)
    for seq, text in ((1, "half"), (2, "whole")):
        await rows(
            api.database,
            "INSERT INTO run_events VALUES (:run, :seq, :at, 'progress', :data)",
            run=run["id"],
            seq=seq,
            at=to_micros(api.clock.now()),
            data=json.dumps({"text": text}),
        )
    await admin.post(
        f"/v1/runs/{run['id']}/complete", json={"fence": 3, "status": "succeeded", "output": "done"}
    )
    answer = await admin.get(f"/v1/runs/{run['id']}/events", headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert [(kind, data.get("text") or data.get("status")) for _, kind, data in told] == [
        ("progress", "half"),
        ("progress", "whole"),
        ("status", "succeeded"),
    ]
    assert told[-1][2]["output"] == "done"
    for index, (event_id, _, _) in enumerate(told):
        rest = await admin.get(f"/v1/runs/{run['id']}/events", headers={"Last-Event-ID": event_id})
        assert rest.text.strip() == "" if index == 2 else events(rest.text) == told[index + 1 :]
    odd = await admin.get(f"/v1/runs/{run['id']}/events", headers={"Last-Event-ID": "nonsense"})
    assert events(odd.text) == told
    assert (await admin.get("/v1/runs/run_none/events")).status_code == 404


async def test_a_list_reads_no_full_answer(admin: httpx2.AsyncClient, api: Api, run: dict[str, Any]) -> None:
    """Casebook pay-05: a list of runs with answers of a megabyte stays small."""
    await claimed(api, run)
    await admin.post(
        f"/v1/runs/{run['id']}/complete", json={"fence": 3, "status": "succeeded", "output": "x" * 900_000}
    )
    listed = await admin.get("/v1/runs")
    assert len(listed.content) < 5_000
    assert len(listed.json()["items"][0]["response_preview"]) == 500


@pytest.mark.parametrize(
    ("scope", "verb", "path"),
    [
        ("runs:read", "POST", "/cancel"),
        ("runs:read", "POST", "/complete"),
        ("runs:cancel", "POST", "/complete"),
        ("runs:complete", "POST", "/cancel"),
        ("runs:cancel", "GET", ""),
        ("schedules:write", "POST", "/cancel"),
    ],
)
async def test_each_path_asks_for_its_scope(
    api: Api, run: dict[str, Any], scope: str, verb: str, path: str
) -> None:
    """SEC-1, SCH-10: cancelling a run is another call with another scope."""
    async with api.client(await api.key(scope)) as client:
        answer = await client.request(
            verb, f"/v1/runs/{run['id']}{path}", json={} if verb == "POST" else None
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
