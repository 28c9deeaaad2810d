"""Due jobs get one trigger for each slot, and each trigger one instance (JOB-2, JOB-3)."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gnomon.cadence import Cadence, between
from gnomon.domain.instants import from_micros, to_micros
from gnomon.services.mint import Mint
from gnomon.stores import jobs
from gnomon.stores.database import Database, Row, Tx
from gnomon.testing.clock import FrozenClock
from support.databases import START
from support.house import rows
from support.job_world import CALLER, Server, Worker

pytestmark = pytest.mark.anyio
FIVE = 300


@pytest.fixture
async def server(database: Database, clock: FrozenClock, mint: Mint) -> Server:
    return await Server(database, clock, mint).open()


def slots_of_a_day() -> list[datetime]:
    rule = Cadence.parse({"unit": "minute", "every": 5})
    return list(
        between(rule, START + timedelta(seconds=1), START + timedelta(days=1, seconds=1), anchor=START)
    )


async def live(servers: list[Server], workers: list[Worker], seconds: float) -> None:
    """A stretch of time in which every server ticks at once, and whatever comes is done."""
    servers[0].clock.advance(seconds)
    await asyncio.gather(*(server.engine.dispatcher.tick() for server in servers))
    await asyncio.gather(*(server.engine.delivery.tick() for server in servers))
    for worker in workers:
        await worker.work()


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("processes", [1, 3])
async def test_a_day_of_a_job_is_one_trigger_for_each_slot(
    server: Server, neighbour: Database, count: int, processes: int
) -> None:
    """JOB-3, C1: with one or ten instances and one or three servers; the load is even (JOB-2: least recently used)."""
    servers = [server, await server.neighbour(5, neighbour), await server.neighbour(6)][:processes]
    workers = [await servers[n % processes].connect(f"w{n}", room=1) for n in range(count)]
    await server.job()
    for _ in range(288):
        await live(servers, workers, FIVE)
    done = [push for worker in workers for push in worker.done]
    wanted = [slot.isoformat().replace("+00:00", "Z") for slot in slots_of_a_day()]
    assert len(wanted) == 288
    assert sorted(push["nominal_at"] for push in done) == wanted
    assert not any(push["redelivered"] for push in done)
    shares = [len(worker.done) for worker in workers]
    assert max(shares) - min(shares) <= 1
    found = await server.triggers()
    assert {row["status"] for row in found} == {"succeeded"}
    assert [from_micros(row["nominal_fire_at"]) for row in found] == slots_of_a_day()
    assert len(await server.audit("TRIGGER")) == 288


async def test_a_trigger_says_all_that_an_instance_needs(server: Server) -> None:
    """CONTRACT, job_trigger; IDM-3."""
    worker = await server.connect()
    job = await server.job(dedup_key="{{job}}-{{payload.repo}}-{{date}}")
    server.clock.advance(FIVE)
    assert await server.tick() == FIVE
    (frame,) = worker.frames
    assert frame == {
        "type": "job_trigger",
        "trigger_id": (await server.trigger())["id"],
        "job": "digest",
        "nominal_at": "2026-11-29T09:05:00Z",
        "dedup_key": "digest-a/b-2026-11-29",
        "payload": {"repo": "a/b"},
        "redelivered": False,
    }
    standing = await server.jobs.get(job.id)
    assert standing.last_fire_at == START + timedelta(seconds=FIVE)
    assert standing.next_fire_at == START + timedelta(seconds=2 * FIVE)


async def test_nothing_is_pushed_twice(server: Server) -> None:
    worker = await server.connect()
    await server.job()
    server.clock.advance(FIVE)
    for _ in range(3):
        await server.tick()
    assert len(worker.frames) == 1
    assert (await server.trigger())["pushes"] == 1


async def test_the_server_that_holds_the_connection_sends_it(server: Server) -> None:
    """JOB-3: one makes the trigger, the other sends it."""
    other = await server.neighbour()
    worker = await other.connect()
    await server.job()
    server.clock.advance(FIVE)
    await server.tick()
    assert worker.frames == []
    assert (await server.trigger())["status"] == "pending"
    await other.engine.delivery.tick()
    assert len(worker.pushes) == 1
    assert (await server.trigger())["status"] == "pushed"


async def test_only_the_role_that_drains_not_and_has_room_is_chosen(server: Server) -> None:
    """JOB-2, JOB-5."""
    other = await server.connect("x", role="dev")
    drains = await server.connect("d")
    await rows(server.database, "UPDATE instances SET status = 'draining' WHERE name = 'd'")
    full = await server.connect("f", room=1)
    await server.job()
    server.clock.advance(FIVE)
    await server.tick()
    assert [len(one.pushes) for one in (other, drains, full)] == [0, 0, 1]
    await full.acknowledge()
    server.clock.advance(FIVE)
    await server.tick()
    assert [len(one.pushes) for one in (other, drains, full)] == [0, 0, 1]
    waits = (await server.triggers())[1]
    assert (waits["status"], waits["instance_id"]) == ("pending", None)
    await full.finish()
    await server.tick()
    assert len(full.pushes) == 2


async def test_with_no_instance_a_slot_waits_through_its_grace_and_is_missed(server: Server) -> None:
    """JOB-4: half the distance to the next slot; the reason says that nobody was there, and the audit too."""
    job = await server.job()
    server.clock.advance(FIVE)
    assert await server.tick() == 150
    assert (await server.trigger())["status"] == "pending"
    server.clock.advance(149)
    assert await server.tick() == 1
    assert (await server.trigger())["status"] == "pending"
    server.clock.advance(1)
    await server.tick()
    found = await server.trigger()
    assert (found["status"], found["reason"], found["pushes"]) == ("missed", "no_instance", 0)
    (skip,) = await server.audit("SKIP")
    assert (skip["subject_id"], json.loads(skip["detail"])["reason"]) == (job.id, "no_instance")
    assert (await server.jobs.get("digest")).last_fire_at is None
    await server.connect()
    await server.tick()
    assert (await server.trigger())["status"] == "missed"


async def test_mis_25_a_slot_without_a_host_waits_for_one_and_is_pushed_once(server: Server) -> None:
    """Casebook mis-25: no failure and no streak; held until one comes within the grace; never pushed twice."""
    await server.job(grace_seconds=290)
    server.clock.advance(FIVE)
    await server.tick()
    server.clock.advance(240)
    worker = await server.connect()
    for _ in range(3):
        await server.tick()
    assert len(worker.pushes) == 1
    found = await server.trigger()
    assert (found["status"], found["reason"]) == ("pushed", None)
    (give,) = await server.audit("GIVE")
    assert json.loads(give["detail"])["instance_id"] == worker.speaker.instance_id


async def test_where_all_are_busy_the_reason_says_so(server: Server) -> None:
    worker = await server.connect(room=1)
    await server.job()
    server.clock.advance(FIVE)
    await server.tick()
    await worker.acknowledge()
    server.clock.advance(FIVE)
    await server.tick()
    server.clock.advance(150)
    await server.tick()
    assert [(row["status"], row["reason"]) for row in await server.triggers()] == [
        ("acknowledged", None),
        ("missed", "no_room"),
    ]


async def test_after_a_standstill_the_newest_slot_is_pushed_and_the_others_are_coalesced(
    server: Server,
) -> None:
    """DSP-7: no burst, and every slot is accounted for."""
    worker = await server.connect()
    await server.job()
    server.clock.advance(12 * FIVE + 100)
    await server.tick()
    assert [push["nominal_at"] for push in worker.pushes] == ["2026-11-29T10:00:00Z"]
    found = await server.trigger()
    first, last = to_micros(START + timedelta(minutes=5)), to_micros(START + timedelta(minutes=55))
    assert (found["coalesced_first"], found["coalesced_last"], found["coalesced_count"]) == (first, last, 11)


async def test_a_slot_that_is_seen_later_than_its_grace_is_missed(server: Server) -> None:
    """DSP-7."""
    worker = await server.connect()
    await server.job()
    server.clock.advance(FIVE + 151)
    await server.tick()
    assert worker.pushes == []
    found = await server.trigger()
    assert (found["status"], found["reason"]) == ("missed", "missed")


@pytest.mark.parametrize(
    ("zone", "at", "start", "wanted"),
    [
        # 02:30 is no time on 2027-03-28 in Berlin, and comes twice on 2026-10-25
        (
            "Europe/Berlin",
            "02:30",
            datetime(2027, 3, 26, 12, tzinfo=UTC),
            ["27T01:30", "28T01:00", "29T00:30"],
        ),
        (
            "Europe/Berlin",
            "02:30",
            datetime(2026, 10, 23, 12, tzinfo=UTC),
            ["24T00:30", "25T00:30", "26T01:30"],
        ),
        (
            "America/New_York",
            "02:30",
            datetime(2027, 3, 12, 12, tzinfo=UTC),
            ["13T07:30", "14T07:00", "15T06:30"],
        ),
    ],
)
async def test_a_clock_change_gives_each_day_one_trigger(
    server: Server, zone: str, at: str, start: datetime, wanted: list[str]
) -> None:
    """CAD-4, JOB-2: jobs share the cadence; its key is of the local date."""
    server.clock.jump((start - START).total_seconds())
    worker = await server.connect()
    await server.job(cadence={"unit": "day", "at": at, "zone": zone}, dedup_key="{{job}}-{{date}}")
    for _ in range(3 * 24 * 4):
        server.clock.advance(900)
        await server.tick()
        for push in worker.pushes[-1:]:
            await worker.finish(push["trigger_id"])
    assert [push["nominal_at"][8:16] for push in worker.pushes] == wanted
    assert len({push["dedup_key"] for push in worker.pushes}) == 3


async def test_a_job_of_one_slot_ends(server: Server) -> None:
    worker = await server.connect()
    job = await server.job(cadence={"unit": "once", "at": "2026-11-29T09:05:00"})
    server.clock.advance(FIVE)
    assert await server.tick() is None
    assert len(worker.pushes) == 1
    assert (await server.jobs.get(job.id)).next_fire_at is None


async def test_a_job_that_can_t_be_computed_stops_no_other(server: Server) -> None:
    """DSP-9a."""
    worker = await server.connect()
    broken = await server.job(slug="broken")
    await server.job()
    await rows(
        server.database,
        'UPDATE jobs SET cadence = \'{"unit":"day","every":1,"at":["09:00"],"zone":"Moon/Base"}\' WHERE id = :id',
        id=broken.id,
    )
    server.clock.advance(FIVE)
    await server.tick()
    assert len(worker.pushes) == 1
    standing = await server.jobs.get("broken")
    assert standing.written.enabled is False
    assert "Moon/Base" in (standing.error or "")
    (entry,) = await server.audit("SET_ASIDE")
    assert entry["subject_id"] == broken.id


async def test_a_slot_that_has_a_trigger_gets_no_other_whatever_the_job_says(server: Server) -> None:
    """JOB-3, DSP-6: a restored job, a clock that went back."""
    worker = await server.connect()
    await server.job()
    server.clock.advance(FIVE)
    await server.tick()
    await rows(
        server.database, "UPDATE jobs SET next_fire_at = :at, recorded_until = NULL", at=server.clock.micros()
    )
    await server.tick()
    assert len(worker.pushes) == 1
    assert len(await server.triggers()) == 1
    assert len(await server.audit("TRIGGER")) == 1
    assert (await server.jobs.get("digest")).next_fire_at == START + timedelta(seconds=2 * FIVE)


async def test_what_was_edited_while_it_was_planned_gets_no_trigger(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-3: where writers come side by side, whoever read an older version writes nothing."""
    await server.job()
    real = jobs.due

    async def stale(tx: Tx, limit: int) -> list[Row]:
        return [{**row, "version": row["version"] - 1} for row in await real(tx, limit)]

    monkeypatch.setattr(jobs, "due", stale)
    server.clock.advance(FIVE)
    await server.tick()
    assert await server.triggers() == []


async def test_a_process_whose_heartbeat_is_late_makes_nothing(server: Server) -> None:
    """RUN-5."""
    await server.job()
    server.may_claim = False
    server.clock.advance(FIVE)
    assert await server.tick() == 0.2
    assert await server.triggers() == []


async def test_more_due_jobs_than_a_batch_are_all_seen(server: Server) -> None:
    worker = await server.connect(room=1_000)
    for number in range(7):
        await server.job(slug=f"job-{number}")
    server.engine.dispatcher._batch = 3
    server.clock.advance(FIVE)
    await server.tick()
    assert len(worker.pushes) == 7
    assert server.engine.dispatcher.made == Counter(given=7)


async def test_what_waits_for_one_role_does_not_keep_another_from_its_instance(server: Server) -> None:
    for number in range(5):
        await server.job(slug=f"pm-{number}")
    await server.job(slug="dev-1", role="dev", grace_seconds=290)
    server.engine.dispatcher._batch = 2
    server.clock.advance(FIVE)
    await server.tick()
    worker = await server.connect("x", role="dev")
    await server.tick()
    assert [push["job"] for push in worker.pushes] == ["dev-1"]


async def test_an_idle_tick_writes_nothing(server: Server) -> None:
    """DSP-2."""
    await server.job()
    await server.connect()
    before = await rows(server.database, "SELECT count(*) AS n FROM audit_entries")
    assert await server.tick() == FIVE
    assert await rows(server.database, "SELECT count(*) AS n FROM audit_entries") == before
    version = server.signal.version
    await server.tick()
    assert server.signal.version == version


@pytest.mark.parametrize("off", ["disabled", "deleted"])
async def test_what_waits_is_missed_with_its_job(server: Server, off: str) -> None:
    """What was pushed goes on; what waits for an instance does not."""
    worker = await server.connect(room=1)
    await server.job()
    for _ in range(2):
        server.clock.advance(FIVE)
        await server.tick()
        await worker.acknowledge()
    if off == "disabled":
        await server.jobs.edit(CALLER, "digest", {"enabled": False})
    else:
        await server.jobs.delete(CALLER, "digest")
    await server.tick()
    found = await server.triggers()
    assert [(row["status"], row["reason"]) for row in found] == [
        ("acknowledged", None),
        ("missed", f"job_{off}"),
    ]
    await worker.finish()
    assert (await server.triggers())[0]["status"] == "succeeded"


async def test_a_trigger_is_what_its_job_was_when_the_slot_came(server: Server) -> None:
    """JOB-4: an edit does not change what is already on its way."""
    await server.job()
    server.clock.advance(FIVE)
    await server.tick()
    edit: dict[str, Any] = {"payload": {"repo": "c/d"}, "dedup_key": "other-{{now}}"}
    await server.jobs.edit(CALLER, "digest", edit)
    worker = await server.connect()
    await server.tick()
    assert worker.pushes[0]["payload"] == {"repo": "a/b"}
    assert worker.pushes[0]["dedup_key"] == "digest-2026-11-29T09:05:00Z"
