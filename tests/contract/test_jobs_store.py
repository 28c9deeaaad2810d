"""Jobs on every engine: written, edited by version, due by the database's clock, moved on once (JOB-1, JOB-2, JOB-3)."""

from dataclasses import replace
from typing import Any

import pytest

from gnomon.cadence import Cadence
from gnomon.domain.instants import from_micros
from gnomon.domain.job import Job, JobDraft
from gnomon.stores import jobs
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from gnomon.testing.clock import FrozenClock
from support.job_rows import JOB, MINUTE, add_job
from support.rows import AT, SECOND, one

pytestmark = pytest.mark.anyio
DRAFT = JobDraft(
    slug="digest",
    name="Dïgest 🙂",
    role="pm",
    cadence=Cadence.parse(
        {"unit": "week", "every": 2, "days": ["mon"], "at": "09:00", "zone": "Europe/Berlin"}
    ),
    payload={"repo": "a/b", "deep": [1, None, "ü"]},
    dedup_key="{{job}}-{{iso_week}}",
    grace_seconds=90,
)


async def insert(database: Database, draft: JobDraft = DRAFT, job_id: str = "job_1", **changes: Any) -> Job:
    given = {"anchor_at": AT, "next_fire_at": AT + MINUTE, "by": "key_1", "now": AT, **changes}
    return await database.write(lambda tx: jobs.insert(tx, job_id, draft, **given))


async def find(database: Database, name: str = "job_1") -> Job | None:
    return await database.read(lambda tx: jobs.find(tx, name))


async def advance(database: Database, **changes: Any) -> set[str]:
    row = {
        "id": JOB["id"],
        "claimed_at": AT,
        "next_fire_at": AT + 5 * MINUTE,
        "recorded_until": AT,
        "seen_version": 1,
        "seen_recorded": None,
        **changes,
    }
    return await database.write(lambda tx: jobs.advance(tx, [row]))


async def test_a_job_comes_back_as_it_went_in_by_id_and_by_slug(database: Database) -> None:
    made = await insert(database)
    assert (made.written, made.version, made.next_fire_at) == (DRAFT, 1, from_micros(AT + MINUTE))
    assert (made.created_by, made.updated_by, made.created_at) == ("key_1", "key_1", from_micros(AT))
    for name in ("job_1", "digest"):
        assert await find(database, name) == made
    assert await find(database, "nobody") is None


async def test_a_slug_is_taken_once_until_its_job_is_deleted(database: Database) -> None:
    await insert(database)
    with pytest.raises(UniqueViolation):
        await insert(database, job_id="job_2")
    assert await database.write(lambda tx: jobs.delete(tx, "job_1", 1, "key_2"))
    assert not await database.write(lambda tx: jobs.delete(tx, "job_1", 1, "key_2"))
    assert await find(database) is None
    assert (await one(database, "jobs", id="job_1"))["next_fire_at"] is None
    await insert(database, job_id="job_2")


async def test_pages_go_on_after_an_id_and_are_narrowed(database: Database) -> None:
    for number, (role, enabled) in enumerate([("pm", True), ("dev", True), ("pm", False)], 1):
        draft = replace(DRAFT, slug=f"job-{number}", role=role, enabled=enabled)
        await insert(database, draft, f"job_{number}", next_fire_at=AT if enabled else None)

    async def ids(after: str = "", **chosen: Any) -> list[str]:
        return [job.id for job in await database.read(lambda tx: jobs.page(tx, after, 10, **chosen))]

    assert await ids() == ["job_1", "job_2", "job_3"]
    assert await ids("job_1") == ["job_2", "job_3"]
    assert await ids(role="pm") == ["job_1", "job_3"]
    assert await ids(enabled=False) == ["job_3"]
    assert await ids(role="dev", enabled=False) == []


async def test_an_edit_lands_on_the_version_it_was_made_from(database: Database) -> None:
    standing = await insert(database)
    wanted = replace(DRAFT, role="dev", enabled=False, grace_seconds=None)
    saved = await database.write(lambda tx: jobs.revise(tx, standing, wanted, None, "key_2", AT + 7))
    assert saved is not None
    assert (saved.written, saved.version, saved.next_fire_at, saved.updated_by) == (wanted, 2, None, "key_2")
    assert await database.write(lambda tx: jobs.revise(tx, standing, wanted, None, "key_2", AT)) is None
    assert await find(database) == saved


async def test_due_is_at_the_database_s_instant_and_not_a_microsecond_before(
    database: Database, clock: FrozenClock
) -> None:
    """JOB-2: the longest waiting first, up to the limit; what is off or deleted never is."""
    await add_job(database, id="job_2", slug="b", next_fire_at=AT + 1)
    await add_job(database, id="job_1", slug="a", next_fire_at=AT)
    await add_job(database, id="job_3", slug="c", enabled=0)
    await add_job(database, id="job_4", slug="d", deleted_at=AT)

    async def due(limit: int = 10) -> list[str]:
        return [row["id"] for row in await database.write(lambda tx: jobs.due(tx, limit))]

    assert await due() == ["job_1"]
    assert await database.read(jobs.next_due) == 0
    clock.advance(1e-6)
    assert await due() == ["job_1", "job_2"]
    assert await due(1) == ["job_1"]
    assert await database.read(jobs.next_due) == -1


async def test_without_a_slot_to_come_there_is_no_next(database: Database) -> None:
    await add_job(database, enabled=0)
    assert await database.read(jobs.next_due) is None


async def test_a_job_moves_on_once(database: Database) -> None:
    """JOB-3: of two who saw the same, one moves it."""
    await add_job(database)
    assert await advance(database) == {JOB["id"]}
    assert await advance(database) == set()
    row = await one(database, "jobs", id=JOB["id"])
    assert (row["next_fire_at"], row["recorded_until"], row["version"]) == (AT + 5 * MINUTE, AT, 1)


@pytest.mark.parametrize(
    "changes", [{"claimed_at": AT - 1}, {"seen_version": 2}, {"seen_recorded": AT - 5 * MINUTE}]
)
async def test_what_was_decided_over_another_state_is_not_written(
    database: Database, changes: dict[str, Any]
) -> None:
    """JOB-3: an edit, another slot on record, another instant."""
    await add_job(database)
    assert await advance(database, **changes) == set()


async def test_a_scan_without_a_slot_leaves_what_is_on_record(database: Database) -> None:
    await add_job(database, recorded_until=AT - 5 * MINUTE)
    assert await advance(database, recorded_until=None, seen_recorded=AT - 5 * MINUTE) == {JOB["id"]}
    assert (await one(database, "jobs", id=JOB["id"]))["recorded_until"] == AT - 5 * MINUTE


async def test_the_last_slot_that_was_given_only_goes_forward(database: Database) -> None:
    await add_job(database)
    for at, last in ((AT, AT), (AT - MINUTE, AT), (AT + MINUTE, AT + MINUTE)):
        await database.write(lambda tx, at=at: jobs.fired(tx, [{"id": JOB["id"], "at": at}]))  # type: ignore[misc]
        assert (await one(database, "jobs", id=JOB["id"]))["last_fire_at"] == last


async def test_what_is_on_record_only_goes_forward(database: Database) -> None:
    """DSP-9a."""
    await add_job(database)
    for at, stands in ((AT, AT), (AT - MINUTE, AT), (AT + MINUTE, AT + MINUTE)):
        await database.write(lambda tx, at=at: jobs.recorded(tx, JOB["id"], at))  # type: ignore[misc]
        assert (await one(database, "jobs", id=JOB["id"]))["recorded_until"] == stands


async def test_a_job_that_can_t_be_computed_is_disabled_with_the_reason_until_it_is_edited(
    database: Database,
) -> None:
    """DSP-9a."""
    await add_job(database)
    assert not await database.write(lambda tx: jobs.set_aside(tx, JOB["id"], 2, "dispatcher", "no"))
    assert await database.write(lambda tx: jobs.set_aside(tx, JOB["id"], 1, "dispatcher", "no zone"))
    standing = await find(database, JOB["id"])
    assert standing is not None
    assert (standing.error, standing.written.enabled, standing.next_fire_at) == ("no zone", False, None)
    saved = await database.write(lambda tx: jobs.revise(tx, standing, DRAFT, AT, "key_1", AT))
    assert saved is not None
    assert saved.error is None


async def test_jobs_of_a_calendar_and_those_ahead(database: Database) -> None:
    await add_job(database, id="job_1", slug="a", calendar="de")
    await add_job(database, id="job_2", slug="b", calendar="de", next_fire_at=AT + 1)
    await add_job(database, id="job_3", slug="c", calendar="de", enabled=0)
    await add_job(database, id="job_4", slug="d", next_fire_at=AT)
    found = await database.read(lambda tx: jobs.of_calendar(tx, "de", "", 10))
    assert [job.id for job in found] == ["job_1", "job_2"]
    assert [job.id for job in await database.read(lambda tx: jobs.of_calendar(tx, "de", "job_1", 10))] == [
        "job_2"
    ]
    rows = await database.read(lambda tx: jobs.far_ahead(tx, AT, "job_1", 10))
    assert [row["id"] for row in rows] == ["job_4", "job_2"]


async def test_realigning_leaves_alone_what_has_moved_since(database: Database) -> None:
    await add_job(database)
    for claimed_at, next_fire_at in ((AT - 1, AT), (AT, AT + MINUTE)):
        row = {"id": JOB["id"], "claimed_at": claimed_at, "next_fire_at": AT + MINUTE}
        await database.write(lambda tx, row=row: jobs.realign(tx, [row]))  # type: ignore[misc]
        assert (await one(database, "jobs", id=JOB["id"]))["next_fire_at"] == next_fire_at


@pytest.mark.parametrize(
    "changes",
    [
        {"every": 4},
        {"unit": "hour", "every": 169},
        {"unit": "once", "every": 1},
        {"unit": "second", "every": 5},
        {"grace_seconds": 0},
        {"grace_seconds": 86_401},
        {"dedup_key": ""},
        {"dedup_key": "x" * 501},
        {"payload": "x" * 100_001},
        {"role": ""},
        {"enabled": 2},
        {"enabled": 0, "next_fire_at": AT},
        {"deleted_at": AT, "next_fire_at": AT},
        {"error": "x"},
        {"anchor_at": AT + SECOND},
    ],
    ids=str,
)
async def test_the_schema_refuses_what_the_form_refuses(database: Database, changes: dict[str, Any]) -> None:
    """CAD-1, IDM-1: each by a CHECK of its own."""
    with pytest.raises(CheckViolation):
        await add_job(database, **changes)
