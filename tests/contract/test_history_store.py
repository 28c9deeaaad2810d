"""What became of slots and runs, read back on every engine (DSP-9, RUN-9, RUN-11)."""

from functools import partial
from typing import Any

import pytest

from gnomon.domain.filters import RunFilter, RunPlace
from gnomon.domain.instants import from_micros
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.run import RunStatus, Trigger
from gnomon.stores import history, runs, slots
from gnomon.stores.database import Database, Row, Tx, Value
from support.rows import AT, OCCURRENCE, RUN, SECOND, add, add_run, add_running, add_schedule, execute

SCHEDULE = OCCURRENCE["schedule_id"]
RUN_ID = RUN["id"]


class Reading:
    """A transaction that notes which columns it was given."""

    def __init__(self, tx: Tx) -> None:
        self.columns: set[str] = set()
        self._tx = tx

    async def all(self, name: str, /, **parameters: Value) -> list[Row]:
        rows = await self._tx.all(name, **parameters)
        self.columns |= {column for row in rows for column in row}
        return rows


async def test_a_list_of_runs_reads_neither_questions_nor_answers(database: Database) -> None:
    """Casebook pay-05: a hundred answers of a megabyte are not fetched for a page that shows none of them."""
    await add(database, "occurrences", OCCURRENCE)
    await add_run(database, schedule_id=SCHEDULE, nominal_fire_at=AT)
    await add_run(database, id="run_by_hand", session_id="ses_2", schedule_id=SCHEDULE, trigger_kind="manual")

    async def work(tx: Tx) -> set[str]:
        reading: Any = Reading(tx)
        assert len(await history.runs(reading, RunFilter(), "run_z", 9)) == 2
        page = await history.runs_of_schedule(reading, SCHEDULE, None, RunPlace(AT + 1, "run_z"), 9)
        assert len(page.runs) == 2
        return set(reading.columns)

    columns = await database.read(work)
    assert "response_preview" in columns
    assert not columns & {"output", "query"}


async def add_slots(database: Database) -> None:
    """Fired at AT, missed a second later with three older ones before it, skipped two seconds later."""
    skipped = {"run_id": None, "session_id": None, "disposition": "skipped", "reason": "paused"}
    older = {"coalesced_first": AT + 1, "coalesced_last": AT + 3, "coalesced_count": 3}
    await add(database, "occurrences", OCCURRENCE)
    await add(
        database,
        "occurrences",
        {**OCCURRENCE, **skipped, **older, "disposition": "missed", "reason": "missed"},
        nominal_fire_at=AT + SECOND,
    )
    await add(database, "occurrences", {**OCCURRENCE, **skipped}, nominal_fire_at=AT + 2 * SECOND)
    await add(database, "occurrences", {**OCCURRENCE, **skipped}, schedule_id="sch_other")


@pytest.mark.parametrize(
    ("before", "since", "disposition", "limit", "found"),
    [
        (AT + 9 * SECOND, AT, None, 9, [2, 1, 0]),
        (AT + 2 * SECOND, AT, None, 9, [1, 0]),
        (AT + 9 * SECOND, AT + 1, None, 9, [2, 1]),
        (AT + 9 * SECOND, AT, Disposition.SKIPPED, 9, [2]),
        (AT + 9 * SECOND, AT, None, 2, [2, 1]),
        (AT, 0, None, 9, []),
    ],
)
async def test_the_ledger_is_read_from_the_newest_slot_back(  # noqa: PLR0917 - the columns of the table above
    database: Database, before: int, since: int, disposition: Disposition | None, limit: int, found: list[int]
) -> None:
    await add_slots(database)
    read = await database.read(
        lambda tx: history.occurrences(tx, SCHEDULE, before, since, disposition, limit)
    )
    assert [record.nominal_fire_at for record in read] == [from_micros(AT + n * SECOND) for n in found]


async def test_a_slot_and_the_one_that_holds_it_are_found(database: Database) -> None:
    """DSP-7: a coalesced slot lies in the range of the first record after it."""
    await add_slots(database)
    fired = await database.read(lambda tx: history.occurrence(tx, SCHEDULE, AT))
    assert fired is not None
    assert (fired.disposition, fired.run_id, fired.coalesced) == (Disposition.FIRED, RUN_ID, None)
    assert await database.read(lambda tx: history.occurrence(tx, SCHEDULE, AT + 2)) is None
    holder = await database.read(lambda tx: history.occurrence_after(tx, SCHEDULE, AT + 2))
    assert holder is not None
    assert holder.coalesced is not None
    assert (holder.disposition, holder.coalesced.count) == (Disposition.MISSED, 3)
    assert await database.read(lambda tx: history.covering(tx, SCHEDULE, AT + 2)) == holder
    assert await database.read(lambda tx: history.covering(tx, SCHEDULE, AT)) is None
    last = AT + 2 * SECOND
    assert await database.read(lambda tx: history.occurrence_after(tx, SCHEDULE, last)) is None


async def test_the_reason_of_a_slot_comes_back(database: Database) -> None:
    skipped = {**OCCURRENCE, "run_id": None, "session_id": None, "disposition": "skipped"}
    for number, reason in enumerate(Reason):
        await add(database, "occurrences", skipped, reason=reason, nominal_fire_at=AT + number)
    read = await database.read(lambda tx: history.occurrences(tx, SCHEDULE, AT + 99, 0, None, 99))
    assert [record.reason for record in reversed(read)] == list(Reason)


async def test_the_status_before_and_from_an_instant(database: Database) -> None:
    """DSP-9: why a slot inside a pause has no record."""
    await add_schedule(database)
    before = partial(history.status_before, schedule_id=SCHEDULE, at=AT + 1)
    since = partial(history.status_from, schedule_id=SCHEDULE, at=AT)
    assert await database.read(since) is None
    await database.write(lambda tx: slots.note_status(tx, SCHEDULE, "paused", "anna", "holiday"))
    await database.write(lambda tx: slots.note_status(tx, SCHEDULE, "active", "anna", None))
    first = await database.read(since)
    assert first == history.StatusChange(AT, "paused", "anna", "holiday")
    assert await database.read(before) == history.StatusChange(AT, "active", "anna", None)
    assert await database.read(lambda tx: history.status_before(tx, SCHEDULE, AT)) is None


async def test_the_floor_of_the_ledger(database: Database) -> None:
    """DSP-9a."""
    assert await database.read(history.ledger_floor) == 0
    await execute(database, "UPDATE retention_floor SET occurrences_before = :at", at=AT)
    assert await database.read(history.ledger_floor) == AT


async def test_a_run_comes_with_its_attempts_and_its_answer(database: Database) -> None:
    """RUN-9: all attempts of a run, the answer in full."""
    await add_running(database, attempt=2, fence=8)
    earlier = {
        "run_id": RUN_ID,
        "number": 1,
        "fence": 7,
        "worker": "prc_a",
        "started_at": AT,
        "outcome": "failed",
    }
    await add(database, "attempts", earlier, error_code="exception", error="It said: no.", finished_at=AT + 1)
    await execute(database, "UPDATE runs SET output = 'said in full'")
    found = await database.read(lambda tx: history.run(tx, RUN_ID))
    assert found is not None
    run, output = found
    assert (run.id, run.trigger, run.status, output) == (
        RUN_ID,
        Trigger.SCHEDULE,
        RunStatus.RUNNING,
        "said in full",
    )
    assert [(attempt.number, attempt.outcome) for attempt in run.attempts] == [
        (1, RunStatus.FAILED),
        (2, None),
    ]
    assert await database.read(lambda tx: history.run(tx, "run_nobody")) is None


async def test_what_decides_over_a_run(database: Database) -> None:
    await add_running(database, schedule_id=SCHEDULE)
    row = await database.read(lambda tx: history.run_status(tx, RUN_ID))
    assert row == {
        "id": RUN_ID,
        "status": "running",
        "fence": 7,
        "schedule_id": SCHEDULE,
        "trigger_kind": "schedule",
        "cancel_at": None,
    }
    assert await database.read(lambda tx: history.run_status(tx, "run_nobody")) is None


async def test_the_stream_of_a_run_is_read_after_a_place_in_it(database: Database) -> None:
    """TGT-2."""
    await add_running(database)
    lines = [
        {"run_id": RUN_ID, "fence": 7, "kind": "log", "data": f'{{"line":{number}}}', "most": 9}
        for number in (1, 2, 3)
    ]
    for line in lines:
        await database.write(partial(runs.events, rows=[line]))
    read = await database.read(lambda tx: history.run_events(tx, RUN_ID, 1, 9))
    assert read == [history.RunEvent(number, AT, "log", {"line": number}) for number in (2, 3)]
    assert len(await database.read(lambda tx: history.run_events(tx, RUN_ID, 0, 2))) == 2


async def test_a_queued_run_has_no_attempt_of_its_own(database: Database) -> None:
    await add_run(database)
    found = await database.read(lambda tx: history.run(tx, RUN_ID))
    assert found is not None
    assert (found[0].attempts, found[1]) == ((), None)
