"""Schedules: their rows as records and back, edits guarded by revision, changes of status guarded by status.

One method per query of ``sql/schedules.sql``. How a schedule comes due is in ``slots.py``.
"""

from dataclasses import dataclass

from gnomon.domain import definition as definitions
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.instants import to_micros
from gnomon.domain.schedule import Definition, Revision, Schedule, ScheduleStatus
from gnomon.domain.target import Target, TargetKind
from gnomon.stores import slots
from gnomon.stores.database import Landed, Tx
from gnomon.stores.schedule_rows import columns, revision_from_row, schedule_from_row


@dataclass(frozen=True, slots=True)
class Move:
    """A change of status: from which to which, by whom and why; instants in microseconds."""

    from_status: ScheduleStatus
    status: ScheduleStatus
    by: str
    reason: str | None
    until: int | None = None
    next_fire_at: int | None = None
    clears_streak: bool = False


async def insert(
    tx: Tx, schedule_id: str, definition: Definition, *, anchor_at: int, next_fire_at: int, by: str, now: int
) -> None:
    """Insert a new, active schedule at revision 1."""
    await tx.run(
        "schedules.insert",
        **columns(definition),
        id=schedule_id,
        anchor_at=anchor_at,
        next_fire_at=next_fire_at,
        by=by,
        now=now,
    )


async def get(tx: Tx, schedule_id: str) -> Schedule | None:
    """The schedule of this id, unless it was deleted."""
    row = await tx.one("schedules.get", id=schedule_id)
    return None if row is None else schedule_from_row(row)


async def page(tx: Tx, chosen: ScheduleFilter, after: str, limit: int) -> list[Schedule]:
    """Schedules in the order of their making, those after the id ``after``."""
    rows = await tx.all(
        "schedules.page",
        after=after,
        status=chosen.status,
        target_kind=chosen.target_kind,
        target_id=chosen.target,
        name=chosen.name,
        limit=limit,
    )
    return [schedule_from_row(row) for row in rows]


async def of_target(tx: Tx, target: Target, name: str) -> list[Schedule]:
    """The schedules of this target and name: the natural key under which they are applied (SCH-13)."""
    rows = await tx.all("schedules.of_target", target_kind=target.kind, target_id=target.id, name=name)
    return [schedule_from_row(row) for row in rows]


async def of_calendar(tx: Tx, slug: str, after: str, limit: int) -> list[Schedule]:
    """Active schedules that name a calendar, those after the id ``after``."""
    rows = await tx.all("schedules.of_calendar", slug=slug, after=after, limit=limit)
    return [schedule_from_row(row) for row in rows]


async def set_next(tx: Tx, schedule_id: str, next_fire_at: int) -> None:
    """Set the next slot of an active schedule anew."""
    await tx.run("schedules.set_next", id=schedule_id, next_fire_at=next_fire_at)


async def revise(  # noqa: PLR0917 - what stands, what comes, and who did it when
    tx: Tx,
    standing: Schedule,
    definition: Definition,
    status: ScheduleStatus,
    next_fire_at: int | None,
    by: str,
    now: int,
) -> bool:
    """Replace the definition and keep the old one as a revision; ``False``: newer, in flight, or gone (SCH-4)."""
    reason = "an edit gave it slots again" if status is not standing.status else None
    row = await tx.one(
        "schedules.revise",
        **columns(definition),
        id=standing.id,
        revision=standing.revision,
        status=status,
        status_reason=reason,
        next_fire_at=next_fire_at,
        by=by,
        now=now,
    )
    if row is None:
        return False
    await tx.run(
        "schedules.keep_revision",
        schedule_id=standing.id,
        revision=standing.revision,
        definition=definitions.canonical(standing.definition),
        author=standing.updated_by,
        created_at=to_micros(standing.updated_at),
    )
    if status is not standing.status:
        await slots.note_status(tx, standing.id, status, by, reason)
    return True


async def revisions(tx: Tx, schedule: Schedule, before: int, limit: int) -> list[Revision]:
    """Revisions below ``before``, the newest first; the present definition is the newest of all."""
    found = [present_revision(schedule)] if schedule.revision < before else []
    rows = await tx.all(
        "schedules.replaced_revisions", schedule_id=schedule.id, before=before, limit=limit - len(found)
    )
    return found + [revision_from_row(row) for row in rows]


async def revision(tx: Tx, schedule: Schedule, number: int) -> Revision | None:
    """One revision by its number."""
    if number == schedule.revision:
        return present_revision(schedule)
    row = await tx.one("schedules.revision", schedule_id=schedule.id, revision=number)
    return None if row is None else revision_from_row(row)


async def revision_at(tx: Tx, schedule: Schedule, at: int) -> Revision | None:
    """The revision under which an instant lies: the newest one made before it; ``None`` before the first."""
    if to_micros(schedule.updated_at) < at:
        return present_revision(schedule)
    row = await tx.one("schedules.revision_at", schedule_id=schedule.id, at=at)
    return None if row is None else revision_from_row(row)


async def set_status(tx: Tx, schedule_id: str, move: Move) -> bool:
    """Change the status if it is still what it was, and append to its history; whether it was."""
    row = await tx.one(
        "schedules.set_status",
        id=schedule_id,
        from_status=move.from_status,
        status=move.status,
        by=move.by,
        reason=move.reason,
        until=move.until,
        next_fire_at=move.next_fire_at,
        clears=int(move.clears_streak),
    )
    if row is None:
        return False
    await slots.note_status(tx, schedule_id, move.status, move.by, move.reason)
    return True


async def delete(tx: Tx, schedule_id: str, by: str) -> bool:
    """Stop all future slots for good; ``False`` where a run is in flight or the schedule is gone (SCH-10)."""
    return await tx.one("schedules.delete", id=schedule_id, by=by) is not None


async def pauses_over(tx: Tx, limit: int) -> list[Schedule]:
    """Paused schedules whose ``until`` has passed."""
    return [schedule_from_row(row) for row in await tx.all("schedules.pauses_over", limit=limit)]


async def next_pause_end(tx: Tx) -> int | None:
    """Microseconds until the first end of a pause; ``None`` where none ends by itself."""
    row = await tx.one("schedules.next_pause_end")
    return None if row is None else row["left_us"]


async def lock(tx: Tx, schedule_id: str, run_id: str) -> Landed:
    """Take the lock that the dispatcher takes, for a run that a person starts (SCH-11): it lands if it was free."""
    return await tx.guard("schedules.lock", [(schedule_id, run_id)])


async def recorded_until(tx: Tx, schedule_id: str) -> int | None:
    """The newest slot that the ledger holds of a schedule."""
    row = await tx.one("schedules.recorded_until", id=schedule_id)
    return None if row is None else row["recorded_until"]


async def set_recorded(tx: Tx, schedule_id: str, nominal: int) -> None:
    """Note the newest slot that the ledger holds."""
    await tx.run("schedules.recorded", id=schedule_id, recorded_until=nominal)


async def target_named(tx: Tx, target: Target) -> tuple[str, str] | None:
    """Id and slug of the living target that an id or a slug names."""
    query = "schedules.agent_named" if target.kind is TargetKind.AGENT else "schedules.team_named"
    row = await tx.one(query, name=target.id)
    return None if row is None else (row["id"], row["slug"])


async def calendar_changed_at(tx: Tx, slug: str) -> int | None:
    """When the calendar of this slug was last changed; ``None`` where there is none."""
    row = await tx.one("schedules.calendar_named", slug=slug)
    return None if row is None else row["updated_at"]


async def begin_session(tx: Tx, session_id: str) -> bool:
    """Make the session that all runs share, if it is new; ``False`` where it was erased (SCH-7)."""
    row = await tx.one("schedules.session", id=session_id)
    if row is None:
        await tx.run("schedules.begin_session", id=session_id)
    return row is None or row["erased_at"] is None


def present_revision(schedule: Schedule) -> Revision:
    """The definition that stands, as a revision."""
    return Revision(
        schedule_id=schedule.id,
        revision=schedule.revision,
        definition=definitions.to_json(schedule.definition),
        author=schedule.updated_by,
        created_at=schedule.updated_at,
    )
