"""Answers that other systems gave wrongly: phases that flipped, zones that were guessed, previews that lied."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from gnomon.cadence import Cadence
from gnomon.domain.instants import rfc3339
from gnomon.edges.server import Server, listen
from gnomon.services.mint import Mint
from gnomon.services.runs import Streamed
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.api import Api
from support.house import House

pytestmark = pytest.mark.anyio
BOUND = 10.0


@pytest.fixture(autouse=True)
async def agent(admin: httpx2.AsyncClient) -> None:
    body = {"slug": "writer", "runtime": {"kind": "python", "path": "work:write"}}
    assert (await admin.post("/v1/agents", json=body)).status_code == 201


async def created(admin: httpx2.AsyncClient, cadence: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await admin.post("/v1/schedules", json=written(cadence, **fields))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def written(cadence: dict[str, Any], **fields: Any) -> dict[str, Any]:
    target = {"kind": "agent", "id": "writer"}
    return {"name": "brief", "target": target, "cadence": cadence, "query": "go"} | fields


async def preview(admin: httpx2.AsyncClient, cadence: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    answer = await admin.post("/v1/preview", json={"cadence": cadence} | fields)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_a_rule_without_any_slot_is_refused_and_previews_as_nothing_mon_09(
    admin: httpx2.AsyncClient,
) -> None:
    """SCH-14, CAD-7: 30 February, skipped where it is missing."""
    rule = {
        "unit": "month",
        "every": 12,
        "day": 30,
        "short_month": "skip",
        "at": "00:00",
        "anchor": "2027-02-01T00:00:00Z",
    }
    assert await preview(admin, rule) == []
    answer = await admin.post("/v1/schedules", json=written(rule))
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == ["cadence"]
    assert (await admin.get("/v1/schedules")).json()["items"] == []


@pytest.mark.parametrize(
    "rule",
    [
        {"unit": "month", "day": "last", "at": "12:00"},
        {"unit": "month", "weekday": "fri", "nth": -1, "at": ["09:00", "18:30:15"], "zone": "Europe/Kiev"},
        {"unit": "week", "every": 2, "days": ["wed", "mon"], "at": "09:00", "exclude": ["2026-12-28"]},
        {"cron": "0 9 1,15 * *", "zone": "EST5EDT"},
        {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "at": "09:00"},
    ],
    ids=lambda rule: str(rule.get("day") or rule.get("nth") or rule.get("unit") or next(iter(rule))),
)
async def test_what_was_sent_reads_back_the_same_mon_15(
    admin: httpx2.AsyncClient, rule: dict[str, Any]
) -> None:
    """SCH-4, SCH-13: no part of a rule is lost or bent on its way into the database and out again."""
    made = await created(admin, rule)
    read = (await admin.get(f"/v1/schedules/{made['id']}")).json()["cadence"]
    stored = {name: value for name, value in read.items() if name != "anchor"}
    assert Cadence.parse(stored) == Cadence.parse(rule)
    # word by word too: what the reading of a rule lost, it would lose on both sides
    assert {name: _listed(stored[name]) for name in rule} == {name: _listed(rule[name]) for name in rule}


def _listed(value: object) -> list[object]:
    return sorted(value, key=str) if isinstance(value, list) else [value]


async def test_saving_it_again_flips_no_fortnight_int_01(
    admin: httpx2.AsyncClient, clock: FrozenClock
) -> None:
    """CAD-5, SCH-12a: the week it was made in is week 0, however often and however late it is saved, changed or not."""
    rule = {"unit": "week", "every": 2, "days": ["sun"], "at": "09:00"}
    clock.advance(2 * 86_400)  # a Tuesday
    made = await created(admin, rule)
    sundays = ["2026-12-06T09:00:00Z", "2026-12-20T09:00:00Z", "2027-01-03T09:00:00Z"]
    address = f"/v1/schedules/{made['id']}"
    for days in (0, 1, 6):
        clock.advance(days * 86_400)
        for changed in ({}, {"query": f"after {days} days"}):
            before = (await admin.get(address)).json()["revision"]
            saved = await admin.patch(address, json={"cadence": rule, **changed})
            assert (saved.status_code, saved.json()["revision"]) == (200, before + len(changed))
            assert saved.json()["next_fire_at"] in sundays
            following = (await admin.get(f"{address}/next?count=2")).json()["items"]
            assert [item["at"] for item in following] == sundays[-2 if days == 6 else 0 :][:2]


async def test_the_first_date_says_which_fortnight_int_12(admin: httpx2.AsyncClient) -> None:
    """CAD-5, CAD-8: a first date in the other week is the anchor, and the preview shows it before saving."""
    rule = {"unit": "week", "every": 2, "days": ["fri"], "at": "09:00", "zone": "America/New_York"}
    plain = [item["at"] for item in await preview(admin, rule, count=2)]
    anchored = rule | {"anchor": "2026-12-18T14:00:00Z"}
    moved = [item["at"] for item in await preview(admin, anchored, count=2)]
    assert plain == ["2026-12-11T14:00:00Z", "2026-12-25T14:00:00Z"]
    assert moved == ["2026-12-18T14:00:00Z", "2027-01-01T14:00:00Z"]
    assert (await created(admin, anchored))["next_fire_at"] == moved[0]


async def test_a_slot_that_moved_to_the_next_day_says_so_dst_46(admin: httpx2.AsyncClient) -> None:
    """CAD-4, CAD-8: in Nuuk the gap swallows the end of a date."""
    rule = {"unit": "day", "at": "23:30", "zone": "America/Nuuk"}
    found = await preview(admin, rule, after="2027-03-27T12:00:00Z", count=2)
    assert found[0]["at"] == "2027-03-28T01:00:00Z"
    assert found[0]["local_time"].startswith("2027-03-28T00:00")
    assert found[0]["note"]
    assert found[1]["note"] is None


@pytest.mark.parametrize("after", ["2027-03-27T00:00:00Z", "2027-10-30T00:00:00Z"])
async def test_the_preview_is_what_the_dispatcher_records_ui_05(
    admin: httpx2.AsyncClient, database: SqliteDatabase, clock: FrozenClock, after: str
) -> None:
    """CAD-8, DSP-5: over both changes of a year, instant by instant, with the zone's own wall time."""
    rule = {"unit": "day", "at": ["02:30", "06:00", "20:00"], "zone": "Europe/Berlin"}
    made = await created(admin, rule, starts_at=after)
    shown = await preview(admin, rule, after=after, count=9)
    following = (await admin.get(f"/v1/schedules/{made['id']}/next?count=9")).json()["items"]
    assert following == shown
    house = await House(database, clock, Mint(clock, SeededEntropy(3))).open()
    for item in shown:
        clock.set(datetime.fromisoformat(item["at"]))
        await house.dispatch()
        await house.idle()
    ledger = (await admin.get(f"/v1/schedules/{made['id']}/occurrences?limit=50")).json()["items"]
    told = [(entry["nominal_fire_at"], entry["local_time"]) for entry in reversed(ledger)]
    assert told == [(item["at"], item["local_time"]) for item in shown]
    assert {item["offset"] for item in shown} == {"+01:00", "+02:00"}
    assert [rfc3339(i.nominal_fire_at) for i in house.runtime.invocations if i.nominal_fire_at] == [
        item["at"] for item in shown
    ]
    house.direct.close()


@pytest.mark.parametrize("zone", ["EST5EDT", "Europe/Kiev", "Etc/GMT+2", "UTC"])
async def test_a_link_is_a_zone_and_stays_as_it_was_typed_tzd_03(
    admin: httpx2.AsyncClient, zone: str
) -> None:
    """CAD-11."""
    made = await created(admin, {"unit": "day", "at": "09:00", "zone": zone})
    assert made["cadence"]["zone"] == zone


@pytest.mark.parametrize("zone", ["GMT+2", "+02:00", "utc", "", "../../etc/passwd", "Europe/../UTC", " UTC"])
async def test_what_only_looks_like_a_zone_is_refused_tzd_03(admin: httpx2.AsyncClient, zone: str) -> None:
    """CAD-11: with the field, and nothing is stored."""
    answer = await admin.post("/v1/schedules", json=written({"unit": "day", "at": "09:00", "zone": zone}))
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == ["cadence.zone"]
    assert (await admin.get("/v1/schedules")).json()["items"] == []


async def test_without_a_zone_it_is_utc_and_says_so_tzd_03(admin: httpx2.AsyncClient) -> None:
    """CAD-3: nobody has to find out later which zone was meant."""
    made = await created(admin, {"unit": "day", "at": "09:00"})
    assert made["cadence"]["zone"] == "UTC"
    [item] = await preview(admin, {"unit": "day", "at": "09:00"}, count=1)
    assert item["offset"] == "+00:00"


async def test_a_target_made_anew_under_its_slug_revives_nothing_tar_01(
    admin: httpx2.AsyncClient, clock: FrozenClock
) -> None:
    """SCH-12: who gave it the old one has to say that the new one is meant."""
    made = await created(admin, {"unit": "hour", "every": 1})
    assert (await admin.delete("/v1/agents/writer")).status_code == 204
    body = {"slug": "writer", "runtime": {"kind": "python", "path": "work:write"}}
    assert (await admin.post("/v1/agents", json=body)).status_code == 201
    clock.advance(timedelta(hours=2).total_seconds())
    found = (await admin.get(f"/v1/schedules/{made['id']}")).json()
    assert (found["status"], found["next_fire_at"]) == ("disabled", None)
    refused = await admin.post(f"/v1/schedules/{made['id']}/resume")
    assert (refused.status_code, refused.json()["code"]) == (409, "target_gone")


async def test_who_watches_a_run_and_hangs_up_is_noticed_inv_02(
    api: Api, admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TGT-2: through every layer, over a real socket of our own server; the run itself goes on."""
    made = await created(admin, {"unit": "hour", "every": 1})
    run = (await admin.post(f"/v1/schedules/{made['id']}/run")).json()
    watched, left = api.services.runs.events, asyncio.Event()

    async def events(run_id: str, last_event_id: str | None = None) -> AsyncIterator[Streamed | None]:
        try:
            async for event in watched(run_id, last_event_id):
                yield event
        finally:
            left.set()

    async def nothing() -> None:
        """There is no work behind this server."""

    monkeypatch.setattr(api.services.runs, "events", events)
    sockets = listen("127.0.0.1", 0)
    server = Server(api.app, started=nothing, drain=nothing, stopped=nothing)
    serving = asyncio.create_task(server.serve(sockets=sockets))
    try:
        reader, writer = await asyncio.open_connection(*sockets[0].getsockname())
        head = f"GET /v1/runs/{run['id']}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {await api.key()}\r\n"
        writer.write(f"{head}\r\n".encode())
        await asyncio.wait_for(reader.readuntil(b"event: status"), BOUND)
        assert not left.is_set()
        writer.close()
        await asyncio.wait_for(left.wait(), BOUND)
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, BOUND)
    assert (await admin.get(f"/v1/runs/{run['id']}")).json()["status"] == "queued"
