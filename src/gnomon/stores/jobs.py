"""Jobs: written, found by id or slug, due, moved on. One method per query of ``sql/jobs.sql``.

What becomes of their slots is in ``triggers.py``.
"""

import json
from collections.abc import Iterable, Mapping

from gnomon.cadence import Cadence, Unit
from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.domain.job import Job, JobDraft
from gnomon.stores.database import Row, Tx, Value

Parameters = Mapping[str, Value]


async def insert(  # noqa: PLR0917 - a record, and who made it when
    tx: Tx, job_id: str, draft: JobDraft, anchor_at: int, next_fire_at: int | None, by: str, now: int
) -> Job:
    """Insert a new job; the record as it stands.

    Raises:
        UniqueViolation: its slug is taken.
    """
    row = await tx.one(
        "jobs.insert",
        **columns(draft),
        id=job_id,
        anchor_at=anchor_at,
        next_fire_at=next_fire_at,
        by=by,
        now=now,
    )
    assert row is not None
    return job_from_row(row)


async def find(tx: Tx, name: str) -> Job | None:
    """The job of this id or slug, unless it was deleted."""
    row = await tx.one("jobs.find", name=name)
    return None if row is None else job_from_row(row)


async def page(
    tx: Tx, after: str, limit: int, *, role: str | None = None, enabled: bool | None = None
) -> list[Job]:
    """Jobs in the order of their making, after an id."""
    chosen = None if enabled is None else int(enabled)
    rows = await tx.all("jobs.page", after=after, limit=limit, role=role, enabled=chosen)
    return [job_from_row(row) for row in rows]


async def revise(  # noqa: PLR0917 - what stands, what comes, and who did it when
    tx: Tx, standing: Job, draft: JobDraft, next_fire_at: int | None, by: str, now: int
) -> Job | None:
    """Replace what was written, all but the slug, if the version is still the record's; the job as it stands then."""
    row = await tx.one(
        "jobs.revise",
        **columns(draft),
        id=standing.id,
        version=standing.version,
        next_fire_at=next_fire_at,
        by=by,
        now=now,
    )
    return None if row is None else job_from_row(row)


async def delete(tx: Tx, job_id: str, version: int, by: str) -> bool:
    """Mark a job as deleted; whether it still was at this version."""
    return await tx.one("jobs.delete", id=job_id, version=version, by=by) is not None


async def due(tx: Tx, limit: int) -> list[Row]:
    """Jobs that are due by the database's clock, the longest waiting first; nobody else gets them meanwhile."""
    return await tx.all("jobs.due", limit=limit)


async def next_due(tx: Tx) -> int | None:
    """Microseconds until the next slot of any job; negative where one is due; ``None`` without any."""
    row = await tx.one("jobs.next_due")
    return None if row is None else row["wait_us"]


async def advance(tx: Tx, jobs: Iterable[Parameters]) -> set[str]:
    """Move jobs to their next slot; those that still were as they had been read (JOB-3)."""
    return {row[0] for row in await tx.many("jobs.advance", jobs)}


async def fired(tx: Tx, jobs: Iterable[Parameters]) -> None:
    """A slot of these jobs was given to an instance."""
    await tx.later("jobs.fired", jobs)


async def recorded(tx: Tx, job_id: str, at: int) -> None:
    """A slot of this job has its trigger, whatever becomes of the rows."""
    await tx.run("jobs.recorded", id=job_id, at=at)


async def set_aside(tx: Tx, job_id: str, version: int, by: str, error: str) -> bool:
    """Disable a job whose next slot can't be computed; whether it still was at this version (DSP-9a)."""
    return await tx.one("jobs.set_aside", id=job_id, version=version, by=by, error=error) is not None


async def of_calendar(tx: Tx, slug: str, after: str, limit: int) -> list[Job]:
    """Jobs with a slot to come that name a calendar, those after the id ``after``."""
    rows = await tx.all("jobs.of_calendar", slug=slug, after=after, limit=limit)
    return [job_from_row(row) for row in rows]


async def far_ahead(tx: Tx, after: int, after_id: str, limit: int) -> list[Row]:
    """Jobs whose next slot, and then whose id, lies after these: the nearest first."""
    return await tx.all("jobs.far_ahead", after=after, after_id=after_id, limit=limit)


async def realign(tx: Tx, jobs: Iterable[Parameters]) -> None:
    """Set next slots anew where they still are what was read."""
    await tx.later("jobs.realign", jobs)


def columns(draft: JobDraft) -> dict[str, Value]:
    """What was written as the columns of its row."""
    cadence = draft.cadence
    uncounted = cadence.unit in {Unit.ONCE, Unit.CRON, Unit.RRULE}
    return {
        "slug": draft.slug,
        "name": draft.name,
        "role": draft.role,
        "cadence": json.dumps(cadence.to_json(), separators=(",", ":")),
        "unit": cadence.unit.value,
        "every": None if uncounted else cadence.every,
        "calendar": cadence.calendar,
        "payload": json.dumps(draft.payload, separators=(",", ":")),
        "dedup_key": draft.dedup_key,
        "grace_seconds": draft.grace_seconds,
        "enabled": int(draft.enabled),
    }


def job_from_row(row: Row) -> Job:
    """The record of a row."""
    written = JobDraft(
        slug=row["slug"],
        name=row["name"],
        role=row["role"],
        cadence=Cadence.from_stored(row["cadence"]),
        payload=json.loads(row["payload"]),
        dedup_key=row["dedup_key"],
        grace_seconds=row["grace_seconds"],
        enabled=bool(row["enabled"]),
    )
    return Job(
        id=row["id"],
        written=written,
        anchor_at=from_micros(row["anchor_at"]),
        version=row["version"],
        next_fire_at=maybe_instant(row["next_fire_at"]),
        last_fire_at=maybe_instant(row["last_fire_at"]),
        error=row["error"],
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
        updated_by=row["updated_by"],
    )
