"""Due slots: their claim, the ledger's rows, the schedule moved on. One method per query of ``sql/slots.sql``."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from gnomon.stores.database import Landed, Row, Tx, Value

Parameters = Mapping[str, Value]


async def claim_due(tx: Tx, limit: int, skip: int = 0, *, hold: bool = False) -> list[Row]:
    """The schedules that are due by the database's clock, with the length of the lease their runs get (DSP-3).

    The longest waiting first, but for the first ``skip``. With ``hold``, where writers come side by side, nobody else
    gets them until the transaction ends, and those that others hold are passed over.
    """
    return await tx.all("slots.hold_due" if hold else "slots.claim_due", limit=limit, skip=skip)


async def next_due(tx: Tx) -> int | None:
    """Microseconds until the next slot of any active schedule; negative where one is due; ``None`` without any."""
    row = await tx.one("slots.next_due")
    return None if row is None else row["wait_us"]


async def record(tx: Tx, occurrences: Iterable[Parameters]) -> set[str]:
    """Write the ledger's rows; the schedules whose slot was not recorded before (DSP-6)."""
    return {row[0] for row in await tx.many("slots.record", occurrences)}


async def enter(tx: Tx, occurrences: Iterable[Parameters], landed: Landed, of: Sequence[str]) -> None:
    """Write the ledger's rows of schedules that moved on.

    Raises:
        UniqueViolation: a slot is in the ledger already (DSP-6); nothing may be committed.
    """
    await tx.later("slots.enter", occurrences, landed, of)


async def recorded(tx: Tx, occurrences: Iterable[Parameters]) -> set[str]:
    """Of slots as ``record`` takes them, the schedules of those that the ledger holds."""
    return {row[0] for row in await tx.many("slots.recorded", occurrences)}


async def advance(tx: Tx, schedules: Iterable[Parameters]) -> Landed:
    """Move schedules to their next slot; those that still were as they had been read."""
    return await tx.guard("slots.advance", schedules)


async def stop(  # noqa: PLR0917 - a status has a who and a why
    tx: Tx,
    schedule_id: str,
    from_status: str,
    status: str,
    by: str,
    reason: str,
    error_code: str | None = None,
    error: str | None = None,
) -> bool:
    """Take a schedule out of ``from_status``; whether it was still in it."""
    row = await tx.one(
        "slots.stop",
        id=schedule_id,
        from_status=from_status,
        status=status,
        by=by,
        reason=reason,
        error_code=error_code,
        error=error,
    )
    if row is None:
        return False
    await note_status(tx, schedule_id, status, by, reason)
    return True


async def note_status(tx: Tx, schedule_id: str, status: str, by: str, reason: str | None) -> None:
    """Append to the schedule's history of statuses (DSP-9)."""
    await tx.run("slots.note_status", id=schedule_id, status=status, by=by, reason=reason)


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
