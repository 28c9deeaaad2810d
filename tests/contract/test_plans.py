"""How SQLite goes about the hot statements, on large tables: by index, never through the table (SCH-3, HOUSE rule 5)."""

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from gnomon.stores import queries
from gnomon.stores.sqlite.statements import SetStatement
from support.databases import a_file
from support.rows import AT, RUN, RUNNING, SCHEDULE, SECOND

QUERIES = queries.load("sqlite")
SCHEDULES = 100_000
DUE = 1_000
RUNS = 100_000
NOW = AT + 3_600 * SECOND
THE_ROWS = "SCAN jsonb_each VIRTUAL TABLE INDEX 1:"  # what a set statement is given


def fill(raw: apsw.Connection, table: str, rows: Iterator[dict[str, object]]) -> None:
    first = next(rows)
    names, values = ", ".join(first), ", ".join(f":{name}" for name in first)
    with raw:
        raw.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({values})",
            (row for rest in ([first], rows) for row in rest),
        )


def schedules() -> Iterator[dict[str, object]]:
    """One in a hundred is due, and one in ten is not active at all."""
    for number in range(SCHEDULES):
        idle = number % 10 == 5
        due = number % (SCHEDULES // DUE) == 0
        yield dict(
            SCHEDULE,
            id=f"sch_{number:020d}",
            status="paused" if idle else "active",
            next_fire_at=None if idle else NOW - number * SECOND if due else NOW + (1 + number) * SECOND,
        )


def runs() -> Iterator[dict[str, object]]:
    """Most are over; one in ten is queued, one in a hundred is running, a few are to be cancelled; one in two is alone
    in its session, the others share one."""
    over = {
        "status": "succeeded",
        "claimable_at": None,
        "finished_at": AT,
        "cancel_at": None,
        "cancel_by": None,
    }
    for number in range(RUNS):
        row = {**RUN, **RUNNING, **over, "id": f"run_{number:020d}", "lease_until": None, "output": "said"}
        row["session_id"] = None if number % 2 else "ses_shared"
        if number % 10 == 0:
            row |= {
                "status": "queued",
                "owner": None,
                "finished_at": None,
                "claimable_at": AT + number * SECOND,
            }
            row["priority"] = 0 if number % 20 else 10
        elif number % 100 == 1:
            row |= {"status": "running", "lease_until": AT + number * SECOND, "finished_at": None}
            row["cancel_at"] = AT if number % 1_000 == 1 else None
        yield row


def batches() -> Iterator[dict[str, object]]:
    """Of a hundred entries each."""
    row = {
        "at": AT,
        "actor": "prc_1",
        "action": "CLAIM",
        "subject_kind": "run",
        "subject_id": "",
        "how_many": 100,
    }
    for number in range(1_000):
        entries = [(f"run_{number:06d}{n:014d}", 1, {"attempt": 1}) for n in range(100)]
        yield {**row, "seq": 100 * (number + 1), "entries": json.dumps(entries)}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path: Path = a_file(tmp_path_factory.mktemp("large"))
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA synchronous=OFF")
    raw.create_scalar_function("now_us", lambda *_: NOW, 0, deterministic=True)
    fill(raw, "schedules", schedules())
    fill(raw, "runs", runs())
    fill(raw, "audit", batches())
    yield raw
    raw.close()


def plan(raw: apsw.Connection, name: str) -> list[str]:
    query = QUERIES[name]
    if query.rows:
        found: list[str] = []
        for text, count in SetStatement(query).texts(query.shared):  # what is shared finds no row
            given = ("[]", NOW, *[None] * len(query.shared))[:count]
            found += [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {text}", given)]
        return [step for step in found if step != THE_ROWS]
    nothing = dict.fromkeys(query.parameters)
    return [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query.text}", nothing)]


def test_the_claim_is_one_search_by_status_and_instant(large: apsw.Connection) -> None:
    """SCH-3: both columns of the index are bound, nothing is scanned, nothing is sorted."""
    assert plan(large, "slots.claim_due") == [
        "SEARCH schedules USING INDEX schedules_due (status=? AND next_fire_at<?)",
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH runs USING PRIMARY KEY (id=?)",
    ]


def test_the_claim_stays_a_search_once_the_table_is_analysed(large: apsw.Connection) -> None:
    """SCH-3: statistics that say how few statuses there are don't talk the planner out of it."""
    with large:
        large.execute("ANALYZE")
        try:
            test_the_claim_is_one_search_by_status_and_instant(large)
        finally:
            large.execute("DELETE FROM sqlite_stat1")
    large.execute("ANALYZE sqlite_schema")


def steps(raw: apsw.Connection, name: str, **parameters: int | str | None) -> tuple[list[object], int]:
    """What a statement returns, and how many steps of SQLite's machine it took."""
    taken = 0

    def step() -> bool:
        nonlocal taken
        taken += 1
        return False

    raw.set_progress_handler(step, 1)
    try:
        rows = [row[0] for row in raw.execute(QUERIES[name].text, parameters)]
    finally:
        raw.set_progress_handler(None)
    return rows, taken


def test_the_claim_reads_what_it_returns(large: apsw.Connection) -> None:
    """SCH-3, casebook pg-11: of a hundred thousand, the hundred that have waited longest; the rest costs nothing."""
    few, for_few = steps(large, "slots.claim_due", limit=100, skip=0)
    every, for_all = steps(large, "slots.claim_due", limit=SCHEDULES, skip=0)
    assert (len(few), len(every)) == (100, DUE)
    assert few == every[:100]
    assert (
        few
        == [f"sch_{number:020d}" for number in range(SCHEDULES - SCHEDULES // DUE, -1, -SCHEDULES // DUE)][
            :100
        ]
    )
    assert for_few < 100 * 250
    assert for_all < DUE * 250


def test_a_tick_with_nothing_due_is_one_miss(large: apsw.Connection) -> None:
    """DSP-2, casebook pg-12: an idle tick costs the same on an empty table and on this one."""
    large.execute("BEGIN")
    try:
        large.execute(
            "UPDATE schedules SET next_fire_at = next_fire_at + :by WHERE next_fire_at <= :now",
            {"by": 10**12, "now": NOW},
        )
        assert steps(large, "slots.claim_due", limit=100, skip=0)[1] < 150
        assert steps(large, "slots.next_due")[1] < 60
        assert steps(large, "runs.next_claimable")[1] < 120
        assert steps(large, "agenda.ahead", process_id=0)[1] < 400
    finally:
        large.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "slots.next_due",
            "SEARCH schedules USING COVERING INDEX schedules_due (status=? AND next_fire_at>?)",
        ),
        ("slots.far_ahead", "SEARCH schedules USING INDEX schedules_due (status=? AND next_fire_at>?)"),
        ("slots.advance", "SEARCH schedules USING PRIMARY KEY (id=?)"),
        ("slots.realign", "SEARCH schedules USING PRIMARY KEY (id=?)"),
        ("slots.stop", "SEARCH schedules USING PRIMARY KEY (id=?)"),
        ("runs.claim", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.renew", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.close", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.close_by_fence", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.requeue", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.give_back", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.lose", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.insert_attempt", "SEARCH runs USING PRIMARY KEY (id=?)"),
        ("runs.settle", "SEARCH schedules USING PRIMARY KEY (id=?)"),
        ("runs.cancels", "SEARCH runs USING INDEX runs_cancels (owner=?)"),
        ("processes.beat", "SEARCH processes USING PRIMARY KEY (id=?)"),
    ],
)
def test_a_hot_statement_is_one_search(large: apsw.Connection, name: str, expected: str) -> None:
    """HOUSE rule 5."""
    assert plan(large, name) == [expected]


@pytest.mark.parametrize("name", ["audit.after", "verify.audit"])
def test_a_page_of_the_audit_is_one_search_from_its_cursor_on(large: apsw.Connection, name: str) -> None:
    """SEC-7: only the entries of one row are ever sorted, and only the rows of the page taken apart."""
    found = [step for step in plan(large, name) if not step.startswith(("CO-ROUTINE", "SCAN audit_entries"))]
    assert found[:3] == [
        "SEARCH a USING INTEGER PRIMARY KEY (rowid>?)",
        "SCAN e VIRTUAL TABLE INDEX 1: LEFT-JOIN",
        "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
    ]


def test_a_page_of_the_audit_costs_the_same_wherever_it_lies(large: apsw.Connection) -> None:
    costs = [
        steps(large, "audit.after", seq=seq, until=2**62, limit=50, action=None, subject_id=None)[1]
        for seq in (0, 49_950, 99_900)
    ]
    assert max(costs) < 2 * min(costs) + 1_000
    assert max(costs) < 20_000


def test_the_common_end_looks_up_its_run(large: apsw.Connection) -> None:
    """RUN-3: and reads nothing else."""
    assert plan(large, "runs.close_plain") == ["SEARCH runs USING PRIMARY KEY (id=?)"]


def test_the_claim_of_runs_searches_each_queue_in_order(large: apsw.Connection) -> None:
    """RUN-1: the one sort is over what both searches gave, twice the limit at most."""
    found = plan(large, "runs.claimable")
    search = "SEARCH runs USING INDEX runs_queue (priority=? AND claimable_at<?)"
    assert found.count(search) == 2
    assert found.count("USE TEMP B-TREE FOR ORDER BY") == 1
    assert found.index("USE TEMP B-TREE FOR ORDER BY") == len(found) - 1
    assert not [step for step in found if step.startswith("SCAN runs")]


def test_the_next_claimable_run_is_two_searches(large: apsw.Connection) -> None:
    """RUN-1, DSP-1: a long queue does not make the wait for it dearer."""
    found = plan(large, "runs.next_claimable")
    search = "SEARCH runs USING COVERING INDEX runs_queue (priority=? AND claimable_at>?)"
    assert found.count(search) == 2
    assert not [step for step in found if "SCAN" in step or "TEMP" in step]


def test_the_sweep_walks_the_running_runs_alone_and_in_order(large: apsw.Connection) -> None:
    """RUN-7: finished runs, however many there are, are not looked at."""
    assert plan(large, "runs.expired") == [
        "SEARCH r USING INDEX runs_leases (lease_until>?)",
        "SEARCH s USING PRIMARY KEY (id=?) LEFT-JOIN",
        "SEARCH p USING PRIMARY KEY (id=?) LEFT-JOIN",
    ]


def test_what_others_hold_is_counted_among_the_running_runs_alone(large: apsw.Connection) -> None:
    """RUN-7: at the start of a process, however much history there is."""
    assert plan(large, "runs.elsewhere") == [
        "SEARCH r USING INDEX runs_leases (lease_until>?)",
        "SEARCH p USING PRIMARY KEY (id=?) LEFT-JOIN",
    ]


def test_those_who_wait_are_found_by_whom_they_wait_for(large: apsw.Connection) -> None:
    """DSP-8."""
    assert "SEARCH runs USING INDEX runs_waiting (waits_for=?)" in plan(large, "runs.free_waiting")
    assert "SEARCH runs USING INDEX runs_parallel (schedule_id=?)" in plan(large, "runs.settle_parallel")


OWN, LATE = "ses_00000000000000050003", "run_00000000000000099999"


@pytest.mark.parametrize(
    ("name", "given", "rows"),
    [
        ("sessions.turns", {"id": "ses_shared", "after": "", "limit": 50}, 50),
        ("sessions.turns", {"id": "ses_shared", "after": "run_00000000000000050000", "limit": 50}, 50),
        ("sessions.turns", {"id": OWN, "after": "", "limit": 50}, 1),
        ("sessions.find", {"id": OWN}, 1),
        ("sessions.unfinished", {"id": OWN}, 0),
        ("runs.history_of_session", {"session_id": "ses_shared", "run_id": LATE, "limit": 50}, 50),
        ("runs.history_of_session", {"session_id": OWN, "run_id": LATE, "limit": 50}, 1),
    ],
)
def test_what_was_said_costs_what_is_read(
    large: apsw.Connection, name: str, given: dict[str, int | str], rows: int
) -> None:
    """RUN-9, SCH-7: of 100,000 runs, half of them in one session, no more than a page asks for is looked at."""
    found, taken = steps(large, name, **given)
    assert len(found) == rows
    assert taken < 150 + rows * 60


@pytest.mark.parametrize("table", ["schedules", "runs", "occurrences", "sessions", "checkpoints"])
def test_no_statement_of_the_hot_path_scans_a_table(large: apsw.Connection, table: str) -> None:
    """HOUSE rule 5."""
    hot = [name for name in QUERIES if name.split(".")[0] in {"slots", "runs"}]
    scans = {name: [step for step in plan(large, name) if step.startswith(f"SCAN {table}")] for name in hot}
    assert not {name: found for name, found in scans.items() if found}


def test_the_guard_itself_notices_a_scan(large: apsw.Connection) -> None:
    """PRF-4: without the index the same statement reads the whole table."""
    large.execute("BEGIN")
    try:
        large.execute("DROP INDEX schedules_due")
        assert plan(large, "slots.claim_due")[0] == "SCAN schedules"
        assert "USE TEMP B-TREE FOR ORDER BY" in plan(large, "slots.claim_due")
    finally:
        large.execute("ROLLBACK")
    assert plan(large, "slots.claim_due")[0].startswith("SEARCH")
