"""Holiday calendars over HTTP (CAD-9)."""

import httpx2

from support.api import AGENT, Api
from support.rows import add_schedule

DE = {"slug": "de", "name": "Germany", "dates": ["2026-12-25", "2026-12-26"]}


async def test_a_calendar_is_made_read_edited_and_deleted(admin: httpx2.AsyncClient) -> None:
    made = await admin.post("/v1/calendars", json=DE)
    assert made.status_code == 201, made.text
    calendar = made.json()
    for name in (calendar["id"], "de"):
        assert (await admin.get(f"/v1/calendars/{name}")).json() == calendar
    edited = await admin.patch("/v1/calendars/de", json={"dates": ["2027-01-01"]})
    assert (edited.json()["dates"], edited.json()["version"]) == (["2027-01-01"], 2)
    stale = await admin.delete("/v1/calendars/de", headers={"if-match": made.headers["etag"]})
    assert stale.status_code == 412
    assert (await admin.post("/v1/calendars", json=DE)).json()["code"] == "slug_taken"
    assert (await admin.delete("/v1/calendars/de")).status_code == 204
    assert (await admin.get("/v1/calendars/de")).status_code == 404


async def test_a_calendar_in_use_stays(api: Api, admin: httpx2.AsyncClient) -> None:
    """Without it its schedules would fire on the holidays that it holds back."""
    await admin.post("/v1/calendars", json=DE)
    await add_schedule(api.database, id="sch_user", calendar="de")
    answer = await admin.delete("/v1/calendars/de")
    assert (answer.status_code, answer.json()["code"]) == (409, "calendar_in_use")
    assert answer.json()["schedules"] == ["sch_user"]


async def test_a_changed_calendar_moves_the_next_slots_of_who_uses_it(admin: httpx2.AsyncClient) -> None:
    """CAD-9: in the transaction of the change, and told in the audit."""
    await admin.post("/v1/agents", json=AGENT)
    await admin.post("/v1/calendars", json={"slug": "de"})
    written = {
        "name": "daily",
        "target": {"kind": "agent", "id": "writer"},
        "cadence": {"unit": "day", "at": "12:00", "calendar": "de"},
    }
    made = (await admin.post("/v1/schedules", json=written)).json()
    assert made["next_fire_at"] == "2026-11-29T12:00:00Z"
    for dates, day in ((["2026-11-29", "2026-11-30"], "12-01"), (["2026-11-30"], "11-29")):
        await admin.patch("/v1/calendars/de", json={"dates": dates})
        found = (await admin.get(f"/v1/schedules/{made['id']}")).json()
        assert found["next_fire_at"] == f"2026-{day}T12:00:00Z"
    entries = (await admin.get("/v1/audit", params={"subject": made["id"], "action": "REALIGN"})).json()
    assert len(entries["items"]) == 2


async def test_a_preview_leaves_a_calendar_s_dates_out(admin: httpx2.AsyncClient) -> None:
    """CAD-9."""
    await admin.post("/v1/calendars", json=DE)
    rule = {"unit": "day", "at": "09:00", "calendar": "de"}
    asked = {"cadence": rule, "after": "2026-12-24T00:00:00Z", "count": 2}
    answer = (await admin.post("/v1/preview", json=asked)).json()
    assert [slot["at"] for slot in answer["items"]] == ["2026-12-24T09:00:00Z", "2026-12-27T09:00:00Z"]
    missing = await admin.post("/v1/preview", json={"cadence": {**rule, "calendar": "fr"}})
    assert missing.json()["errors"][0]["field"] == "cadence.calendar"
