"""What the board's hot statements cost with 100,000 tasks: a search by index, never a scan or a sort (BRD-1, HOUSE rule 5).

Of 100 tasks 20 can be claimed, by two roles; 30 wait for others, one is held, the rest is over.
"""

import re
from collections.abc import AsyncIterator, Iterator

import apsw
import asyncpg
import pytest

from gnomon.stores import queries
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.statements import Catalogue, PutOff
from gnomon.stores.sqlite.statements import SetStatement
from support.databases import a_file
from support.postgres_plans import explained, filled, only, planning
from support.rows import AT, SECOND

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
TASKS = 100_000
SCHEMA = "task_plans"
SQLITE = queries.load("sqlite")
POSTGRES = Catalogue(queries.load("postgres"), SCHEMA)
NUMBERS = {
    "sqlite": f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TASKS}) SELECT i FROM n)",
    "postgres": f"(SELECT i FROM generate_series(1, {TASKS}) AS i)",
}
ID = {"sqlite": "printf('tsk_%020d', {})", "postgres": "'tsk_' || lpad(({})::text, 20, '0')"}


def fill(engine: str) -> list[str]:
    """The statements that fill the board."""
    own, needed = ID[engine].format("i"), ID[engine].format("i - 1")
    return [
        f"""INSERT INTO tasks (id, role, title, body, priority, status, unmet, fence, created_at, created_by, updated_at)
        SELECT {own}, CASE WHEN i % 3 = 0 THEN 'pm' ELSE 'dev' END, 't', '', i % 7,
            CASE WHEN i % 100 < 50 THEN 'backlog' WHEN i % 100 = 50 THEN 'in_progress' ELSE 'done' END,
            CASE WHEN i % 100 BETWEEN 20 AND 49 THEN 1 ELSE 0 END, 1, 0, 't', 0
        FROM {NUMBERS[engine]} AS numbers""",
        f"""INSERT INTO task_prerequisites (task_id, prerequisite_id)
        SELECT {own}, {needed} FROM {NUMBERS[engine]} AS numbers WHERE i % 100 BETWEEN 20 AND 49""",
        f"""INSERT INTO task_locks (
            task_id, instance_id, fence, claim_id, claimed_by, claimed_at, renewed_at, expires_at)
        SELECT id, 'ins_1', 1, 'c', 'k', 0, 0, {AT + 3_600 * SECOND} FROM tasks WHERE status = 'in_progress'""",
        """INSERT INTO instances (id, role, name, status, last_heartbeat_at, created_at)
        VALUES ('ins_1', 'pm', 'a', 'online', 0, 0)""",
    ]


# --- SQLite -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    raw = apsw.Connection(str(a_file(tmp_path_factory.mktemp("board"))))
    raw.execute("PRAGMA synchronous=OFF")
    with raw:
        for statement in fill("sqlite"):
            raw.execute(statement)
    raw.create_scalar_function("now_us", lambda *_: AT, 0, deterministic=True)
    yield raw
    raw.close()


def plan(raw: apsw.Connection, name: str) -> list[str]:
    query = SQLITE[name]
    if query.rows:
        found = []
        for text, count in SetStatement(query).texts(query.shared):  # what is shared finds no row
            given = ("[]", AT, *[None] * len(query.shared))[:count]
            found += [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {text}", given)]
        return [step for step in found if "jsonb_each" not in step]
    given_ = dict.fromkeys(query.parameters)
    return [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query.text}", given_)]


CLAIM = "SEARCH tasks USING INDEX tasks_claimable (role=?)"


def test_the_claim_is_one_search_in_order(file: apsw.Connection) -> None:
    """BRD-1: nothing is scanned, nothing is sorted, analysed or not."""
    assert plan(file, "tasks.claim") == [CLAIM]
    with file:
        file.execute("ANALYZE")
        try:
            assert plan(file, "tasks.claim") == [CLAIM]
        finally:
            file.execute("DELETE FROM sqlite_stat1")
    file.execute("ANALYZE sqlite_schema")


def test_the_claim_reads_what_it_takes(file: apsw.Connection) -> None:
    """BRD-1: neither what is gated nor what is over, however many; and an empty role costs one miss."""
    taken = 0

    def step() -> bool:
        nonlocal taken
        taken += 1
        return False

    asked = {"instance_id": "i", "claim_id": "c", "claimed_by": "k", "lock_us": SECOND}

    def steps(role: str, limit: int) -> tuple[int, int]:
        nonlocal taken
        taken = 0
        file.execute("BEGIN")
        file.set_progress_handler(step, 1)
        try:
            rows = file.execute(
                SQLITE["tasks.claim"].text, {**asked, "role": role, "limit": limit}
            ).fetchall()
        finally:
            file.set_progress_handler(None)
            file.execute("ROLLBACK")
        return len(rows), taken

    assert steps("nobody", 100)[0] == 0
    assert steps("nobody", 100)[1] < 100
    for limit in (1, 10, 100):
        found, spent = steps("pm", limit)
        assert found == limit
        assert spent < 100 + 90 * limit


SEARCHED = {
    "tasks.waiting": ["SEARCH tasks USING COVERING INDEX tasks_claimable (role=?)"],
    "tasks.begin": ["SEARCH tasks USING PRIMARY KEY (id=?)"],
    "tasks.put_back": ["SEARCH tasks USING PRIMARY KEY (id=?)"],
    "tasks.move": ["SEARCH tasks USING PRIMARY KEY (id=?)"],
    "tasks.under_key": ["SEARCH tasks USING INDEX tasks_dedup (dedup_key=?)"],
    "tasks.under_claim": ["SEARCH task_locks USING INDEX task_locks_instance (instance_id=? AND claim_id=?)"],
    "tasks.next_end": ["SEARCH task_locks USING COVERING INDEX task_locks_expiry (expires_at>?)"],
    "tasks.dependants": [
        "SEARCH task_prerequisites USING COVERING INDEX task_prerequisites_of (prerequisite_id=?)"
    ],
}


@pytest.mark.parametrize(("name", "expected"), SEARCHED.items(), ids=SEARCHED)
def test_a_hot_statement_is_one_search(file: apsw.Connection, name: str, expected: list[str]) -> None:
    assert plan(file, name) == expected


# what lists, counts and sweeps may read from end to end: the locks, which are as many as tasks are held
WHOLE = {"tasks.depths": "tasks", "tasks.expired": "l", "tasks.page_held": "l"}


@pytest.mark.parametrize("name", sorted(name for name in SQLITE if name.startswith("tasks.")))
def test_no_statement_scans_the_board(file: apsw.Connection, name: str) -> None:
    scans = [step for step in plan(file, name) if step.startswith("SCAN") and "json_each" not in step]
    scans = [step for step in scans if step not in {"SCAN CONSTANT ROW", "SCAN above", "SCAN 1"}]
    if name in WHOLE:
        assert all(step.startswith(f"SCAN {WHOLE[name]} ") or step == f"SCAN {WHOLE[name]}" for step in scans)
        assert name != "tasks.depths" or scans == ["SCAN tasks USING COVERING INDEX tasks_claimable"]
    else:
        assert scans == []


def test_the_guard_itself_notices_a_scan(file: apsw.Connection) -> None:
    """PRF-4."""
    file.execute("BEGIN")
    try:
        file.execute("DROP INDEX tasks_claimable")
        assert plan(file, "tasks.claim") == ["SCAN tasks", "USE TEMP B-TREE FOR ORDER BY"]
    finally:
        file.execute("ROLLBACK")


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(postgres_url: str) -> Iterator[Address]:
    statements = [
        *fill("postgres"),
        *(f"VACUUM ANALYZE {table}" for table in ("tasks", "task_prerequisites", "task_locks")),
    ]
    with filled(postgres_url, SCHEMA, statements) as address:
        yield address


@pytest.fixture
async def raw(large: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    async with planning(large) as connection:
        yield connection


@pytest.mark.parametrize("limit", [1, 10, 100])
async def test_the_claim_on_postgresql_reads_what_it_takes(
    raw: "asyncpg.Connection[asyncpg.Record]", limit: int
) -> None:
    """BRD-1: by the index, in its order, locked and skipped row by row, nothing looked at for nothing."""
    statement = POSTGRES.plain["tasks.claim"]
    given = {"role": "'pm'", "limit": str(limit), "lock_us": "1000000"}
    names = queries.load("postgres")["tasks.claim"].parameters
    lines = await explained(raw, statement.text, [given.get(name, "'x'") for name in names], analyse=True)
    (index,) = only(lines, "Index Scan")
    assert index.startswith(f"Index Scan using tasks_claimable on tasks (actual rows={limit}.00 loops=1)"), (
        lines
    )
    (condition,) = only(lines, "Index Cond")
    assert "role = " in condition
    assert only(lines, "LockRows")
    for wasted in ("Sort", "Seq Scan", "Rows Removed"):
        assert not only(lines, wasted), lines


async def test_a_look_for_work_searches_where_there_is_none(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """BRD-1: a claim that waits looks again and again, and must not read the board for it."""
    lines = await explained(raw, POSTGRES.plain["tasks.waiting"].text, ["'nobody'"], analyse=True)
    (index,) = only(lines, "tasks_claimable")
    assert "(actual rows=0.00 loops=1)" in index
    assert not only(lines, "Seq Scan")


HOT = {
    "tasks.begin": "tasks_pkey",
    "tasks.put_back": "tasks_pkey",
    "tasks.move": "tasks_pkey",
    "tasks.renew": "task_locks_pkey",
    "tasks.release": "task_locks_pkey",
    "tasks.open_gates": "tasks_pkey",
    "tasks.close_gates": "tasks_pkey",
    "tasks.under_key": "tasks_dedup",
    "tasks.under_claim": "task_locks_instance",
    "tasks.next_end": "task_locks_expiry",
    "tasks.dependants": "task_prerequisites_of",
    "tasks.records": "tasks_pkey",
    "tasks.statuses": "tasks_pkey",
    "tasks.depths": "tasks_claimable",
}


@pytest.mark.parametrize(("name", "index"), HOT.items(), ids=HOT)
async def test_a_hot_statement_is_served_by_an_index_on_postgresql(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str, index: str
) -> None:
    plain = POSTGRES.plain.get(name)
    text = POSTGRES.together([PutOff(POSTGRES.sets[name], [])]) if plain is None else plain.text
    count = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
    # of few locks all are read sooner than one is looked up; what is left then are those that no index serves
    await raw.execute("SET LOCAL enable_seqscan TO off")
    lines = await explained(raw, text, ["NULL"] * count)
    assert only(lines, index), lines
    # the instances of a house are few: to read them all is cheaper than to look one up
    assert [line for line in only(lines, "Seq Scan") if " on instances" not in line] == [], lines
