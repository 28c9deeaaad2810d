"""Sessions on every engine: read in turns, erased with every trace and with a stamp in the ledger (RUN-12)."""

import pytest

from gnomon.domain.instants import from_micros
from gnomon.domain.session import Session
from gnomon.stores import sessions
from gnomon.stores.database import CheckViolation, Database
from support.databases import START
from support.plans import plan, scanned
from support.rows import AT, OCCURRENCE, RUN, add, add_run, add_schedule, execute, one

SESSION = RUN["session_id"]
DONE = {"status": "succeeded", "claimable_at": None, "finished_at": AT, "response_preview": "said"}


async def add_session(database: Database, session_id: str = SESSION) -> None:
    await add(database, "sessions", {"id": session_id, "created_at": AT})


async def add_answered(database: Database, number: int, session_id: str = SESSION, **changes: object) -> str:
    """A finished run of a schedule with its slot, its answer and everything it left behind."""
    run_id, nominal = f"run_{number}", AT + number
    await add_run(
        database,
        id=run_id,
        session_id=session_id,
        schedule_id=OCCURRENCE["schedule_id"],
        nominal_fire_at=nominal,
        error="said in an error",
        **{**DONE, "finished_at": AT + number, "query": "asked", "output": "said", **changes},
    )
    await add(
        database, "occurrences", OCCURRENCE, nominal_fire_at=nominal, run_id=run_id, session_id=session_id
    )
    await add(
        database, "run_events", {"run_id": run_id, "seq": 1, "at": AT, "kind": "progress", "data": "said"}
    )
    point = {"run_id": run_id, "node": "a", "fence": 1, "output": "said", "created_at": AT}
    await add(database, "checkpoints", point)
    attempt = {"run_id": run_id, "fence": 1, "number": 1, "outcome": "failed", "error": "said"}
    await add(database, "attempts", attempt)
    return run_id


async def test_a_session_counts_its_turns_and_gives_them_in_order(database: Database) -> None:
    await add_session(database)
    for number in (2, 1, 3):
        await add_answered(database, number)
    found = await database.read(lambda tx: sessions.find(tx, SESSION))
    assert found == Session(SESSION, START, 3, from_micros(AT + 3))
    first = await database.read(lambda tx: sessions.turns(tx, SESSION, "", 2))
    rest = await database.read(lambda tx: sessions.turns(tx, SESSION, first[-1].run_id, 2))
    assert [turn.run_id for turn in (*first, *rest)] == ["run_1", "run_2", "run_3"]
    assert await database.read(lambda tx: sessions.find(tx, "ses_none")) is None


async def test_erasing_leaves_nothing_of_what_was_said(database: Database) -> None:
    """RUN-12: both links are cleared under the stamp, in one transaction, and the slots stay."""
    await add_session(database)
    await add_answered(database, 1)
    await add_answered(database, 2)
    assert await database.write(lambda tx: sessions.erase(tx, SESSION))
    for number in (1, 2):
        slot = await one(database, "occurrences", nominal_fire_at=AT + number)
        assert (slot["run_id"], slot["session_id"], slot["links_erased_at"]) == (None, None, AT)
        assert slot["disposition"] == "fired"
        run = await one(database, "runs", id=f"run_{number}")
        assert (run["session_id"], run["response_preview"], run["error"]) == ("", None, None)
        assert (run["query"], run["output"]) == ("", None)
        assert run["status"] == "succeeded"
    for table in ("run_events", "checkpoints", "sessions"):
        assert await execute(database, f"SELECT * FROM {table}") == []
    assert await execute(database, "SELECT * FROM attempts WHERE error IS NOT NULL") == []
    assert not await database.write(lambda tx: sessions.erase(tx, SESSION))


async def test_what_a_schedule_says_of_its_last_failure_goes_with_the_session(database: Database) -> None:
    """RUN-12: an error may quote what was said. That of another run stays, and so does the code."""
    await add_session(database)
    await add_answered(database, 1)
    other = "sch_" + "1" * 20
    for schedule_id, error in ((OCCURRENCE["schedule_id"], "It said: no."), (other, "It said: no.")):
        await add_schedule(database, id=schedule_id, last_error_code="exception", last_error=error)
    await execute(database, "UPDATE runs SET error = 'It said: no.'")
    await database.write(lambda tx: sessions.erase(tx, SESSION))
    left = await execute(database, "SELECT last_error_code, last_error FROM schedules ORDER BY id")
    assert left == [
        {"last_error_code": "exception", "last_error": None},
        {"last_error_code": "exception", "last_error": "It said: no."},
    ]


async def test_erasing_one_session_touches_no_other(database: Database) -> None:
    await add_session(database)
    await add_session(database, "ses_other")
    await add_answered(database, 1)
    await add_answered(database, 2, "ses_other")
    await database.write(lambda tx: sessions.erase(tx, SESSION))
    slot = await one(database, "occurrences", nominal_fire_at=AT + 2)
    assert (slot["run_id"], slot["links_erased_at"]) == ("run_2", None)
    assert len(await database.read(lambda tx: sessions.turns(tx, "ses_other", "", 9))) == 1


async def test_the_ledger_allows_both_links_or_the_stamp(database: Database) -> None:
    """RUN-12: the constraint, alone."""
    await add_session(database)
    await add_answered(database, 1)
    for change in (
        "run_id = NULL",
        "session_id = NULL",
        "run_id = NULL, session_id = NULL",
        f"links_erased_at = {AT}",
    ):
        with pytest.raises(CheckViolation):
            await execute(database, f"UPDATE occurrences SET {change}")


@pytest.mark.parametrize(
    "words", ["find", "turns", "unfinished", "erase_links", "erase_last_errors", "erase_runs"]
)
async def test_no_statement_reads_a_whole_table(database: Database, words: str) -> None:
    """A session is erased through its own runs, however long the ledger is."""
    lines = await plan(database, f"sessions.{words}", {"id": SESSION, "after": "", "limit": 9})
    assert lines
    assert scanned(lines) <= {"shared"}, lines  # a page's own runs, found by the index


async def test_an_unfinished_run_of_the_session_is_found(database: Database) -> None:
    await add_session(database)
    await add_answered(database, 1)
    assert await database.read(lambda tx: sessions.unfinished(tx, SESSION)) is None
    await add_run(database, id="run_2")
    assert await database.read(lambda tx: sessions.unfinished(tx, SESSION)) == "run_2"
