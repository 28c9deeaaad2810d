"""Deleting what is too old, in bounded batches. One method per query of ``sql/retention.sql``."""

from gnomon.stores.database import Tx


async def old_runs(tx: Tx, before_id: str, limit: int) -> int:
    """Delete finished runs whose id is below ``before_id`` with all that hangs on them; how many there were."""
    gone = await tx.tuples("retention.old_runs", before_id=before_id, limit=limit)
    ids = [{"id": run_id} for run_id, _, _ in gone]
    for name in ("attempts", "checkpoints", "events"):
        await tx.later(f"retention.{name}", ids)
    await tx.later("retention.session", [{"session_id": session_id} for _, _, session_id in gone])
    await tx.later(
        "retention.last_run",
        [{"schedule_id": of, "run_id": run_id} for run_id, of, _ in gone if of is not None],
    )
    return len(gone)


async def old_triggers(tx: Tx, before_id: str, limit: int) -> int:
    """Delete triggers that are over and whose id is below ``before_id``; how many there were."""
    return len(await tx.tuples("retention.old_triggers", before_id=before_id, limit=limit))


async def raise_floor(tx: Tx, occurrences_before: int, audit_before: int, runs_before: int) -> None:
    """Let what is older be deleted, and keep in mind that it may have been; the floor never sinks."""
    await tx.run(
        "retention.raise_floor",
        occurrences_before=occurrences_before,
        audit_before=audit_before,
        runs_before=runs_before,
    )


async def next_ledger(tx: Tx, after: str) -> str | None:
    """The next schedule, by id, that has any slot in the ledger."""
    row = await tx.one("retention.next_ledger", after=after)
    return None if row is None else row["schedule_id"]


async def old_occurrences(tx: Tx, schedule_id: str, before: int, limit: int) -> int:
    """Delete a schedule's slots before an instant, all but its two newest; how many there were."""
    rows = await tx.tuples("retention.old_occurrences", schedule_id=schedule_id, before=before, limit=limit)
    return len(rows)


async def old_audit(tx: Tx, before: int, limit: int) -> int:
    """Delete rows of the audit before an instant, with all their entries; how many rows there were."""
    return len(await tx.tuples("retention.old_audit", before=before, limit=limit))
