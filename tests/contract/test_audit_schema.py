"""What the database itself keeps: the slot ledger and the audit can be added to and nothing else (SEC-7, DSP-9a)."""

import itertools
from typing import Any

import pytest

from gnomon.domain.occurrence import Disposition, Reason
from gnomon.stores.database import CheckViolation, Database, UniqueViolation
from support.rows import AT, OCCURRENCE, add, execute, one

pytestmark = pytest.mark.anyio

RUN, SESSION = OCCURRENCE["run_id"], OCCURRENCE["session_id"]
SKIPPED: dict[str, Any] = {
    "disposition": "skipped",
    "reason": "already_running",
    "run_id": None,
    "session_id": None,
}
ENTRY: dict[str, Any] = {
    "at": AT,
    "actor": "prc_1",
    "action": "CLAIM",
    "subject_kind": "run",
    "subject_id": "run_1",
    "fence": 1,
}
STAMP = "UPDATE occurrences SET links_erased_at = :at, run_id = NULL, session_id = NULL"


async def accepts(database: Database, **changes: Any) -> bool:
    """Whether the ledger takes this row; each is a slot of its own, as rows can't be taken out again."""
    (before,) = await execute(database, "SELECT count(*) AS n FROM occurrences")
    changes.setdefault("nominal_fire_at", AT + before["n"])
    try:
        await add(database, "occurrences", OCCURRENCE, **changes)
    except CheckViolation:
        return False
    return True


# --- the ledger's rows ------------------------------------------------------------------------------------------------


async def test_a_slot_is_in_the_ledger_once(database: Database) -> None:
    """DSP-6."""
    await add(database, "occurrences", OCCURRENCE)
    with pytest.raises(UniqueViolation):
        await add(database, "occurrences", OCCURRENCE, **SKIPPED)
    await add(database, "occurrences", OCCURRENCE, nominal_fire_at=AT + 1)
    await add(database, "occurrences", OCCURRENCE, schedule_id="sch_other")


@pytest.mark.parametrize(
    ("disposition", "run", "session", "stamp"),
    list(itertools.product(Disposition, [None, RUN], [None, SESSION], [None, AT])),
)
async def test_both_links_or_neither_with_the_stamp(
    database: Database, disposition: Disposition, run: str | None, session: str | None, stamp: int | None
) -> None:
    """RUN-12: every combination; a slot that did not fire has no link and no stamp."""
    if disposition is Disposition.FIRED:
        allowed = (
            (run is not None and session is not None) if stamp is None else run is None and session is None
        )
    else:
        allowed = run is None and session is None and stamp is None
    changes = {"run_id": run, "session_id": session, "links_erased_at": stamp}
    reason = None if disposition is Disposition.FIRED else Reason.MISSED.value
    assert await accepts(database, disposition=disposition.value, reason=reason, **changes) is allowed


@pytest.mark.parametrize(("disposition", "reason"), list(itertools.product(Disposition, [None, *Reason])))
async def test_a_slot_has_a_reason_exactly_when_it_did_not_fire(
    database: Database, disposition: Disposition, reason: Reason | None
) -> None:
    """DSP-9: every reason of the domain can be stored."""
    fired = disposition is Disposition.FIRED
    row = {**SKIPPED, "disposition": disposition.value, "reason": reason and reason.value}
    if fired:
        row |= {"run_id": RUN, "session_id": SESSION}
    assert await accepts(database, **row) is (fired == (reason is None))


async def test_there_is_no_other_disposition(database: Database) -> None:
    """DSP-9."""
    assert not await accepts(database, **{**SKIPPED, "disposition": "lost"})


@pytest.mark.parametrize(
    ("first", "last", "count", "allowed"),
    [
        (None, None, None, True),
        (AT - 3, AT - 1, 2, True),
        (AT - 1, AT - 1, 1, True),
        (AT - 1, AT - 2, 2, False),  # backwards
        (AT - 1, AT, 2, False),  # the recorded slot is not in its own range
        (AT - 1, AT + 5, 2, False),
        (AT - 3, AT - 1, 0, False),
        (AT - 3, AT - 1, -1, False),
        (None, AT - 1, 2, False),
        (AT - 3, None, 2, False),
        (AT - 3, AT - 1, None, False),
        (None, None, 2, False),
        (AT - 3, None, None, False),
        (None, AT - 1, None, False),
    ],
)
async def test_a_coalesced_range_is_whole_and_lies_before_its_slot(
    database: Database, first: int | None, last: int | None, count: int | None, allowed: bool
) -> None:
    """DSP-7."""
    changes = {"coalesced_first": first, "coalesced_last": last, "coalesced_count": count}
    assert await accepts(database, nominal_fire_at=AT, **changes) is allowed


# --- the ledger only grows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        "schedule_id",
        "nominal_fire_at",
        "revision",
        "disposition",
        "reason",
        "created_at",
        "coalesced_first",
        "coalesced_last",
        "coalesced_count",
    ],
)
async def test_a_column_of_the_ledger_never_changes_not_even_together_with_the_stamp(
    database: Database, column: str
) -> None:
    """DSP-9, DSP-9a."""
    await add(
        database, "occurrences", OCCURRENCE, coalesced_first=AT - 9, coalesced_last=AT - 5, coalesced_count=2
    )
    before = await one(database, "occurrences", nominal_fire_at=AT)
    for statement in (f"UPDATE occurrences SET {column} = :value", f"{STAMP}, {column} = :value"):
        values = {"disposition": "skipped", "reason": "missed", "schedule_id": "sch_x", "coalesced_count": 3}
        value = values.get(column, AT - 7)
        with pytest.raises(CheckViolation):
            await execute(database, statement, value=value, at=AT)
    assert await one(database, "occurrences", nominal_fire_at=AT) == before


async def test_the_links_can_not_be_taken_off_or_changed_without_the_stamp(database: Database) -> None:
    """RUN-12."""
    await add(database, "occurrences", OCCURRENCE)
    for change in (
        "run_id = NULL, session_id = NULL",
        "run_id = 'run_x'",
        "session_id = 'ses_x'",
        "run_id = run_id",
    ):
        with pytest.raises(CheckViolation):
            await execute(database, f"UPDATE occurrences SET {change}")


async def test_the_stamp_is_set_once_and_for_good(database: Database) -> None:
    """RUN-12."""
    await add(database, "occurrences", OCCURRENCE)
    await execute(database, STAMP, at=AT + 5)
    row = await one(database, "occurrences", nominal_fire_at=AT)
    assert (row["links_erased_at"], row["run_id"], row["session_id"]) == (AT + 5, None, None)
    for change in (
        "links_erased_at = 1",
        "links_erased_at = NULL",
        f"links_erased_at = NULL, run_id = '{RUN}'",
    ):
        with pytest.raises(CheckViolation):
            await execute(database, f"UPDATE occurrences SET {change}")
    with pytest.raises(CheckViolation):
        await execute(database, STAMP, at=AT + 6)


async def test_a_slot_that_did_not_fire_takes_no_stamp(database: Database) -> None:
    """RUN-12."""
    await add(database, "occurrences", OCCURRENCE, **SKIPPED)
    with pytest.raises(CheckViolation):
        await execute(database, STAMP, at=AT)


# --- deleting, below the floor alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "row", "key", "column"),
    [
        ("occurrences", OCCURRENCE, "nominal_fire_at", "occurrences_before"),
        ("audit", ENTRY, "at", "audit_before"),
    ],
)
async def test_only_what_lies_below_the_floor_can_be_deleted(
    database: Database, table: str, row: dict[str, Any], key: str, column: str
) -> None:
    """DSP-9a, SEC-7: cleaning up never makes a slot fire again."""
    for at in (AT, AT + 1, AT + 2):
        await add(database, table, row, **{key: at})
    with pytest.raises(CheckViolation):
        await execute(database, f"DELETE FROM {table}")
    await execute(database, f"UPDATE retention_floor SET {column} = :at", at=AT + 1)
    with pytest.raises(CheckViolation):
        await execute(database, f"DELETE FROM {table} WHERE {key} = :at", at=AT + 1)
    await execute(database, f"DELETE FROM {table} WHERE {key} < :at", at=AT + 1)
    left = await execute(database, f"SELECT {key} AS at FROM {table} ORDER BY 1")
    assert [found["at"] for found in left] == [AT + 1, AT + 2]


@pytest.mark.parametrize("column", ["occurrences_before", "audit_before"])
async def test_the_floor_only_rises(database: Database, column: str) -> None:
    """DSP-9a, SEC-7."""
    await execute(database, f"UPDATE retention_floor SET {column} = 500")
    await execute(database, f"UPDATE retention_floor SET {column} = 500")
    with pytest.raises(CheckViolation):
        await execute(database, f"UPDATE retention_floor SET {column} = 499")
    assert (await one(database, "retention_floor", id=1))[column] == 500


async def test_the_floor_is_one_row_that_stays(database: Database) -> None:
    """DSP-9a: without its floor nothing could ever be deleted, with a second one anything."""
    with pytest.raises(CheckViolation):
        await execute(database, "DELETE FROM retention_floor")
    with pytest.raises(CheckViolation):
        await add(
            database, "retention_floor", {"id": 2, "occurrences_before": 10**18, "audit_before": 10**18}
        )
    assert len(await execute(database, "SELECT id FROM retention_floor")) == 1


# --- the audit --------------------------------------------------------------------------------------------------------


BATCH = {
    **ENTRY,
    "subject_id": "",
    "fence": None,
    "how_many": 2,
    "entries": '[["run_1",1,{}],["run_2",2,{}]]',
}


@pytest.mark.parametrize("row", [ENTRY, BATCH], ids=["one", "many"])
@pytest.mark.parametrize("column", ["seq", *BATCH, "detail"])
async def test_an_entry_of_the_audit_never_changes(
    database: Database, column: str, row: dict[str, Any]
) -> None:
    """SEC-7: not even to the value it has."""
    await add(database, "audit", row)
    before = await execute(database, "SELECT * FROM audit")
    for value in (column, "'[]'" if column == "entries" else "99"):
        with pytest.raises(CheckViolation, match=r"append-only|only be updated to DEFAULT"):
            await execute(database, f"UPDATE audit SET {column} = {value}")
    assert await execute(database, "SELECT * FROM audit") == before


async def test_numbers_of_entries_are_never_used_again(database: Database) -> None:
    """SEC-7; CONTRACT, "Audit entry": a reader that follows ``seq`` misses nothing after a clean-up."""
    for _ in range(3):
        await add(database, "audit", ENTRY)
    given = [row["seq"] for row in await execute(database, "SELECT seq FROM audit ORDER BY seq")]
    await execute(database, "UPDATE retention_floor SET audit_before = :at", at=AT + 1)
    await execute(database, "DELETE FROM audit")
    await add(database, "audit", ENTRY, at=AT + 2)
    (after,) = await execute(database, "SELECT seq FROM audit")
    assert after["seq"] - given[2] == given[2] - given[1] == given[1] - given[0] >= 1


@pytest.mark.parametrize(
    ("how_many", "entries"), [(0, None), (2, None), (1, "[]"), (0, "[]"), (1_001, "[]"), (None, None)]
)
async def test_a_row_is_one_entry_or_says_how_many(
    database: Database, how_many: int | None, entries: str | None
) -> None:
    """SEC-7: it reaches over as many numbers as it has entries, and on one engine there are a thousand to each row."""
    with pytest.raises(CheckViolation):
        await add(database, "audit", ENTRY, how_many=how_many, entries=entries)
    await add(database, "audit", ENTRY, how_many=1_000, entries="[]")


async def test_replacing_is_no_way_past_the_triggers(database: Database, engine: str) -> None:
    """SEC-7, DSP-6: SQLite's REPLACE deletes before it inserts, and only recursive triggers see it.

    What comes nearest to it elsewhere is an insert that updates.
    """
    await add(database, "audit", ENTRY)
    (written,) = await execute(database, "SELECT seq FROM audit")
    await add(database, "occurrences", OCCURRENCE)
    for table, key, row in (
        ("audit", "seq", {**ENTRY, **written, "actor": "forger"}),
        ("occurrences", "schedule_id, nominal_fire_at", {**OCCURRENCE, **SKIPPED}),
    ):
        before = await execute(database, f"SELECT * FROM {table}")
        names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        statement = f"REPLACE INTO {table} ({names}) VALUES ({values})"
        if engine == "postgres":
            changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
            statement = (
                f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({values}) "
                f"ON CONFLICT ({key}) DO UPDATE SET {changes}"
            )
        with pytest.raises(CheckViolation):
            await execute(database, statement, **row)
        assert await execute(database, f"SELECT * FROM {table}") == before
