"""Due slots: their claim, the ledger's rows, the schedule moved on. One method per query of ``sql/slots.sql``."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from gnomon.stores.database import Landed, Row, Rows, Tx, Value

Parameters = Mapping[str, Value]


class Due(NamedTuple):
    """A schedule that is due, as ``slots.claim_due`` reads it."""

    id: str
    revision: int
    target_kind: str
    target_id: str
    cadence: str
    calendar: str | None
    anchor_at: int
    query: str
    session_mode: str
    session_id: str | None
    starts_at: int | None
    ends_at: int | None
    max_runs: int | None
    overlap: str
    catch_up: str
    misfire_grace_seconds: int | None
    jitter_seconds: int
    dedup_key: str | None
    next_fire_at: int
    last_fire_at: int | None
    recorded_until: int | None
    run_count: int
    in_flight_run_id: str | None
    waiting_run_id: str | None
    fence: int
    failure_streak: int
    timeout_seconds: int
    max_attempts: int
    backoff_seconds: int
    backoff_max_seconds: int
    on_lost: str
    lease_seconds: int
    unfinished_run_id: str | None
    now: int


class Entry(NamedTuple):
    """The ledger's row of a slot, as ``slots.enter`` writes it."""

    schedule_id: str
    nominal_fire_at: int
    revision: int
    disposition: str
    reason: str | None
    coalesced_first: int | None
    coalesced_last: int | None
    coalesced_count: int | None
    run_id: str | None
    session_id: str | None


class Advance(NamedTuple):
    """A schedule moved on by ``slots.advance``: what changes of it, and what it was seen to be."""

    id: str
    claimed_at: int
    next_fire_at: int
    recorded_until: int | None
    fired_at: int | None
    fired: int
    in_flight_run_id: str | None
    waiting_run_id: str | None
    granted: int
    seen_at: int
    seen_revision: int
    seen_runs: int
    seen_fence: int
    seen_in_flight: str | None
    seen_waiting: str | None


class Stop(NamedTuple):
    """A schedule that leaves ``active``: for which status, who says so, and why."""

    id: str
    status: str
    by: str
    reason: str
    error_code: str | None = None
    error: str | None = None


async def claim_due(tx: Tx, limit: int, skip: int = 0, *, hold: bool = False) -> list[Due]:
    """The schedules that are due by the database's clock, with the length of the lease their runs get (DSP-3).

    The longest waiting first, but for the first ``skip``. With ``hold``, where writers come side by side, nobody else
    gets them until the transaction ends, and those that others hold are passed over.
    """
    found = await tx.tuples("slots.hold_due" if hold else "slots.claim_due", limit=limit, skip=skip)
    return list(map(Due._make, found))


async def next_due(tx: Tx) -> int | None:
    """Microseconds until the next slot of any active schedule; negative where one is due; ``None`` without any."""
    row = await tx.one("slots.next_due")
    return None if row is None else row["wait_us"]


async def record(tx: Tx, occurrences: Rows) -> set[str]:
    """Write the ledger's rows; the schedules whose slot was not recorded before (DSP-6)."""
    return {row[0] for row in await tx.many("slots.record", occurrences)}


async def enter(tx: Tx, occurrences: Rows, landed: Landed, of: Sequence[str]) -> None:
    """Write the ledger's rows of schedules that moved on.

    Raises:
        UniqueViolation: a slot is in the ledger already (DSP-6); nothing may be committed.
    """
    await tx.later("slots.enter", occurrences, landed, of)


async def recorded(tx: Tx, occurrences: Rows) -> set[str]:
    """Of slots as ``record`` takes them, the schedules of those that the ledger holds."""
    return {row[0] for row in await tx.many("slots.recorded", occurrences)}


async def advance(tx: Tx, schedules: Rows) -> Landed:
    """Move schedules to their next slot; those that still were as they had been read."""
    return await tx.guard("slots.advance", schedules)


async def stop(tx: Tx, stops: Sequence[Stop]) -> Landed:
    """Take active schedules out of work, and append to their histories; those that were active."""
    landed = await tx.guard("slots.stop", stops)
    noted = [(one.id, one.status, one.by, one.reason) for one in stops]
    await tx.later("slots.note_status", noted, landed, [one.id for one in stops])
    return landed


async def note_status(tx: Tx, schedule_id: str, status: str, by: str, reason: str | None) -> None:
    """Append to the schedule's history of statuses (DSP-9)."""
    await tx.later("slots.note_status", [(schedule_id, status, by, reason)])


async def far_ahead(tx: Tx, after: int, after_id: str, limit: int) -> list[Row]:
    """Active schedules whose next slot, and then whose id, lies after these: the nearest first."""
    return await tx.all("slots.far_ahead", after=after, after_id=after_id, limit=limit)


async def realign(tx: Tx, schedules: Iterable[Parameters]) -> None:
    """Set next slots anew where they still are what was read."""
    await tx.later("slots.realign", schedules)


async def holidays(tx: Tx, slugs: Iterable[str]) -> dict[str, frozenset[date]]:
    """The dates of the calendars of these slugs; a calendar that is gone has none."""
    rows = await tx.all("slots.calendars", slugs=json.dumps(sorted(slugs)))
    return {
        row["slug"]: frozenset(date.fromisoformat(day) for day in json.loads(row["dates"])) for row in rows
    }
