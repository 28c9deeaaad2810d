"""A whole database in pages, row by row, with what belongs to each beside it. One method per query of ``sql/verify.sql``.

Writes nothing, judges nothing, and holds one page at a time.
"""

from collections.abc import AsyncIterator, Callable, Mapping

from gnomon.stores.database import Row, Tx, Value

PAGE = 500
Place = Mapping[str, Value]


async def facts(tx: Tx) -> Row:
    """The database's clock, how far things were cleaned, and whether the clock or the zone data ever changed."""
    row = await tx.one("verify.facts")
    assert row is not None  # the floor's one row can't be deleted
    return row


async def counts(tx: Tx) -> Row:
    """How many rows there are, by table; of the audit, how many entries."""
    row = await tx.one("verify.counts")
    assert row is not None
    return row


def schedules(tx: Tx) -> AsyncIterator[Row]:
    """Schedules, deleted ones too, each with its target, its locks' runs and what is kept of its past."""
    return _pages(tx, "verify.schedules", {"after": ""}, lambda row: {"after": row["id"]})


def occurrences(tx: Tx, schedule_id: str) -> AsyncIterator[Row]:
    """The ledger of one schedule, the oldest slot first, each with the run that it names."""
    fixed: Place = {"schedule_id": schedule_id}
    return _pages(
        tx,
        "verify.occurrences",
        {**fixed, "after": -(2**62)},
        lambda row: {**fixed, "after": row["nominal_fire_at"]},
    )


async def status_changes(tx: Tx, schedule_id: str) -> list[Row]:
    """Every change of a schedule's status, in order."""
    return await tx.all("verify.status_changes", schedule_id=schedule_id)


async def revisions(tx: Tx, schedule_id: str) -> list[Row]:
    """Number and instant of each revision that was replaced, in order."""
    return await tx.all("verify.revisions", schedule_id=schedule_id)


def runs(tx: Tx) -> AsyncIterator[Row]:
    """Runs in the order of their making, each with its schedule, record, process and attempts."""
    return _pages(tx, "verify.runs", {"after": ""}, lambda row: {"after": row["id"]})


def audit(tx: Tx) -> AsyncIterator[Row]:
    """The audit from its first entry on, each with the run that it is about."""
    return _pages(tx, "verify.audit", {"after": -1}, lambda row: {"after": row["seq"]})


def ownerless(tx: Tx) -> AsyncIterator[Row]:
    """Records of the ledger whose schedule is not there."""
    return _pages(tx, "verify.ownerless", _FIRST_SLOT, _slot)


def twice_erased(tx: Tx) -> AsyncIterator[Row]:
    """Slots whose record was stamped and names no run, and of which there are several."""
    return _pages(tx, "verify.twice_erased", _FIRST_SLOT, _slot)


def strays(tx: Tx, noun: str) -> AsyncIterator[Row]:
    """``run_id`` and ``how_many`` of the ``attempts``, ``checkpoints`` or ``events`` whose run is not there."""
    return _pages(tx, _STRAYS[noun], {"after": ""}, lambda row: {"after": row["run_id"]})


def tasks(tx: Tx) -> AsyncIterator[Row]:
    """Tasks in the order of their making, each with its lock, its holder and how many of its needs are not met."""
    return _pages(tx, "verify.tasks", {"after": ""}, lambda row: {"after": row["id"]})


def jobs(tx: Tx) -> AsyncIterator[Row]:
    """Jobs, deleted ones too, each with the newest slot that has a trigger."""
    return _pages(tx, "verify.jobs", {"after": ""}, lambda row: {"after": row["id"]})


def triggers(tx: Tx) -> AsyncIterator[Row]:
    """Triggers by job and slot, each with its job and its instance."""
    return _pages(
        tx,
        "verify.triggers",
        {"after": "", "after_slot": -(2**62)},
        lambda row: {"after": row["job_id"], "after_slot": row["nominal_fire_at"]},
    )


def needs(tx: Tx) -> AsyncIterator[Row]:
    """Needs of which neither end is done, and those of which one is not there."""
    return _pages(
        tx,
        "verify.needs",
        {"after": "", "after_need": ""},
        lambda row: {"after": row["task_id"], "after_need": row["prerequisite_id"]},
    )


def stray_locks(tx: Tx) -> AsyncIterator[Row]:
    """Locks without their task."""
    return _pages(tx, "verify.stray_locks", {"after": ""}, lambda row: {"after": row["task_id"]})


def keys_of_nothing(tx: Tx) -> AsyncIterator[Row]:
    """Keys that are not revoked, bound to a target that is gone."""
    return _pages(tx, "verify.keys_of_nothing", {"after": ""}, lambda row: {"after": row["id"]})


_STRAYS = {
    "attempts": "verify.stray_attempts",
    "checkpoints": "verify.stray_checkpoints",
    "events": "verify.stray_events",
}
_FIRST_SLOT: Place = {"after_id": "", "after": 0}


def _slot(row: Row) -> Place:
    return {"after_id": row["schedule_id"], "after": row["nominal_fire_at"]}


async def _pages(tx: Tx, name: str, first: Place, following: Callable[[Row], Place]) -> AsyncIterator[Row]:
    place = first
    while True:
        rows = await tx.all(name, limit=PAGE, **place)
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        place = following(rows[-1])
