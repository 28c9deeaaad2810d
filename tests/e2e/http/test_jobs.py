"""Jobs over HTTP (CONTRACT, "Job" and "Trigger"; JOB-1)."""

from typing import Any

import httpx2
import pytest

from support.api import Api
from support.job_rows import ACKNOWLEDGED, add_trigger
from support.rows import AT

JOB: dict[str, Any] = {
    "slug": "digest",
    "role": "pm",
    "cadence": {"unit": "day", "at": "12:00", "zone": "Europe/Berlin"},
    "payload": {"repo": "a/b"},
    "dedup_key": "{{job}}-{{date}}",
}


async def test_a_job_is_made_read_listed_edited_and_deleted(admin: httpx2.AsyncClient) -> None:
    made = await admin.post("/v1/jobs", json=JOB)
    assert made.status_code == 201, made.text
    job = made.json()
    assert made.headers["location"] == f"/v1/jobs/{job['id']}"
    assert job["id"].startswith("job_")
    assert (job["slug"], job["role"], job["payload"], job["enabled"]) == (
        "digest",
        "pm",
        {"repo": "a/b"},
        True,
    )
    assert (job["next_fire_at"], job["last_fire_at"]) == ("2026-11-29T11:00:00Z", None)
    assert job["dedup_key"] == "{{job}}-{{date}}"
    for name in (job["id"], "digest"):
        read = await admin.get(f"/v1/jobs/{name}")
        assert read.json() == job
        assert read.headers["etag"] == made.headers["etag"]
    assert (await admin.get("/v1/jobs")).json() == {"items": [job], "next_cursor": None}
    assert (await admin.get("/v1/jobs", params={"role": "dev"})).json()["items"] == []
    edited = await admin.patch("/v1/jobs/digest", json={"cadence": {"unit": "hour", "every": 2}})
    assert edited.status_code == 200, edited.text
    assert edited.json()["next_fire_at"] == "2026-11-29T11:00:00Z"
    assert edited.headers["etag"] != made.headers["etag"]
    assert (await admin.delete("/v1/jobs/digest")).status_code == 204
    for address in ("", "/triggers", "/next"):
        assert (await admin.get(f"/v1/jobs/digest{address}")).status_code == 404
    assert (await admin.post("/v1/jobs", json=JOB)).status_code == 201


async def test_a_job_without_a_dedup_key_is_refused(admin: httpx2.AsyncClient) -> None:
    """IDM-1."""
    answer = await admin.post("/v1/jobs", json={**JOB, "dedup_key": None})
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["field"] == "dedup_key"
    edit = await admin.post("/v1/jobs", json=JOB)
    assert edit.status_code == 201
    assert (await admin.patch("/v1/jobs/digest", json={"dedup_key": None})).status_code == 422


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cadence": {"unit": "minute", "every": 4}}, "cadence.every"),
        ({"cadence": {"unit": "once", "at": "2020-01-01T00:00:00"}}, "cadence.at"),
        ({"cadence": {"unit": "day", "at": "09:00", "calendar": "de"}}, "cadence.calendar"),
        ({"cadence": {"unit": "day", "at": "09:00", "zone": "Europe/Berlinn"}}, "cadence.zone"),
        ({"role": "No Role"}, "role"),
        ({"grace_seconds": 0}, "grace_seconds"),
        ({"next_fire_at": "2026-12-01T00:00:00Z"}, "next_fire_at"),
        ({"dedup_key": "{{payload.tag}}"}, "dedup_key"),
    ],
)
async def test_what_is_wrong_is_told_at_its_field(
    admin: httpx2.AsyncClient, changes: dict[str, Any], field: str
) -> None:
    """CAD-1, OPS-8."""
    answer = await admin.post("/v1/jobs", json={**JOB, **changes})
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [field]


async def test_a_slug_has_one_job_and_keeps_it(admin: httpx2.AsyncClient) -> None:
    await admin.post("/v1/jobs", json=JOB)
    again = await admin.post("/v1/jobs", json=JOB)
    assert (again.status_code, again.json()["code"]) == (409, "slug_taken")
    moved = await admin.patch("/v1/jobs/digest", json={"slug": "other"})
    assert [fault["field"] for fault in moved.json()["errors"]] == ["slug"]


async def test_a_stale_edit_is_refused_and_one_without_a_change_changes_nothing(
    admin: httpx2.AsyncClient,
) -> None:
    made = await admin.post("/v1/jobs", json=JOB)
    same = await admin.patch(
        "/v1/jobs/digest", json={"role": "pm"}, headers={"if-match": made.headers["etag"]}
    )
    assert same.headers["etag"] == made.headers["etag"]
    await admin.patch("/v1/jobs/digest", json={"role": "dev"})
    for verb in ("PATCH", "DELETE"):
        body = {"json": {"role": "qa"}} if verb == "PATCH" else {}
        stale = await admin.request(
            verb,
            "/v1/jobs/digest",
            headers={"if-match": made.headers["etag"]},
            **body,  # type: ignore[arg-type]
        )
        assert (stale.status_code, stale.json()["code"]) == (412, "revision_stale")


async def test_the_same_request_makes_one_job(admin: httpx2.AsyncClient) -> None:
    """IDM-2."""
    headers = {"idempotency-key": "once"}
    first = await admin.post("/v1/jobs", json=JOB, headers=headers)
    again = await admin.post("/v1/jobs", json=JOB, headers=headers)
    assert again.status_code == 201
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    other = await admin.post("/v1/jobs", json={**JOB, "role": "dev"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_disabled_job_has_no_next_slot_until_it_is_enabled(
    api: Api, admin: httpx2.AsyncClient
) -> None:
    """No burst: it goes on from now."""
    await admin.post("/v1/jobs", json={**JOB, "cadence": {"unit": "minute", "every": 5}})
    off = (await admin.patch("/v1/jobs/digest", json={"enabled": False})).json()
    assert (off["enabled"], off["next_fire_at"]) == (False, None)
    assert (await admin.get("/v1/jobs/digest/next")).json() == {"items": []}
    assert [job["slug"] for job in (await admin.get("/v1/jobs?enabled=false")).json()["items"]] == ["digest"]
    api.clock.advance(3_600)
    on = (await admin.patch("/v1/jobs/digest", json={"enabled": True})).json()
    assert on["next_fire_at"] == "2026-11-29T10:05:00Z"
    assert (await admin.get("/v1/jobs/digest/triggers")).json()["items"] == []


@pytest.mark.parametrize(
    ("done", "reason"), [({"payload": 1}, "missed"), ({"enabled": False}, "job_disabled")]
)
async def test_an_edit_accounts_for_slots_that_came_and_fires_none_of_them(
    api: Api, admin: httpx2.AsyncClient, done: dict[str, Any], reason: str
) -> None:
    """SCH-12a, DSP-9: nobody has dispatched meanwhile."""
    await admin.post("/v1/jobs", json={**JOB, "cadence": {"unit": "minute", "every": 5}})
    api.clock.advance(1_000)
    edited = (await admin.patch("/v1/jobs/digest", json=done)).json()
    assert edited["next_fire_at"] == (None if "enabled" in done else "2026-11-29T09:20:00Z")
    (found,) = (await admin.get("/v1/jobs/digest/triggers")).json()["items"]
    assert (found["status"], found["reason"], found["nominal_fire_at"]) == (
        "missed",
        reason,
        "2026-11-29T09:15:00Z",
    )
    assert found["coalesced"] == {
        "first": "2026-11-29T09:05:00Z",
        "last": "2026-11-29T09:10:00Z",
        "count": 2,
    }


async def test_triggers_are_read_by_pages_and_status(api: Api, admin: httpx2.AsyncClient) -> None:
    """CONTRACT, "Trigger"."""
    job = (await admin.post("/v1/jobs", json=JOB)).json()
    for number in range(3):
        await add_trigger(
            api.database, id=f"trg_{number}", job_id=job["id"], nominal_fire_at=AT + number, **ACKNOWLEDGED
        )
    first = (await admin.get("/v1/jobs/digest/triggers", params={"limit": 2})).json()
    assert [trigger["id"] for trigger in first["items"]] == ["trg_2", "trg_1"]
    rest = await admin.get("/v1/jobs/digest/triggers", params={"cursor": first["next_cursor"]})
    assert rest.json() == {
        "items": [
            {
                "id": "trg_0",
                "job_id": job["id"],
                "nominal_fire_at": "2026-11-29T09:00:00Z",
                "dedup_key": "digest-1",
                "instance_id": "ins_pm_a",
                "status": "acknowledged",
                "reason": None,
                "note": None,
                "coalesced": None,
                "pushes": 1,
                "pushed_at": "2026-11-29T09:00:00Z",
                "acknowledged_at": "2026-11-29T09:00:00Z",
                "finished_at": None,
                "created_at": "2026-11-29T09:00:00Z",
            }
        ],
        "next_cursor": None,
    }
    none = await admin.get("/v1/jobs/digest/triggers", params={"status": "missed"})
    assert none.json()["items"] == []
    assert (await admin.get("/v1/jobs/digest/triggers", params={"status": "gone"})).status_code == 422


async def test_the_next_slots_are_those_of_the_preview(admin: httpx2.AsyncClient) -> None:
    """CAD-8."""
    await admin.post("/v1/jobs", json=JOB)
    found = (await admin.get("/v1/jobs/digest/next", params={"count": 2})).json()["items"]
    assert [slot["at"] for slot in found] == ["2026-11-29T11:00:00Z", "2026-11-30T11:00:00Z"]
    assert found[0]["local_time"].startswith("2026-11-29T12:00")


async def test_each_verb_asks_for_its_scope(api: Api) -> None:
    """SEC-1."""
    async with api.client(await api.key("jobs:read")) as reader:
        assert (await reader.get("/v1/jobs")).status_code == 200
        refused = await reader.post("/v1/jobs", json=JOB)
        assert (refused.status_code, refused.json()["scope"]) == (403, "jobs:write")


async def test_a_calendar_that_a_job_uses_stays_and_moves_it(admin: httpx2.AsyncClient) -> None:
    """CAD-9."""
    await admin.post("/v1/calendars", json={"slug": "de"})
    job = (await admin.post("/v1/jobs", json={**JOB, "cadence": {**JOB["cadence"], "calendar": "de"}})).json()
    answer = await admin.delete("/v1/calendars/de")
    assert (answer.status_code, answer.json()["jobs"]) == (409, [job["id"]])
    for dates, day in ((["2026-11-29", "2026-11-30"], "12-01"), (["2026-11-30"], "11-29")):
        await admin.patch("/v1/calendars/de", json={"dates": dates})
        found = (await admin.get("/v1/jobs/digest")).json()
        assert found["next_fire_at"] == f"2026-{day}T11:00:00Z"
    entries = (await admin.get("/v1/audit", params={"subject": job["id"], "action": "REALIGN"})).json()
    assert len(entries["items"]) == 2
