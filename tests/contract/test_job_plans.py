"""What the hot statements of jobs cost with 100,000 jobs and 300,000 triggers: a search by index (JOB-2, HOUSE rule 5).

Of 100 jobs one is due. Of 1,000 triggers one waits for an instance and two are held by one of a thousand; the rest is
over.
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
JOBS, TRIGGERS, INSTANCES = 100_000, 300_000, 1_000
SCHEMA = "job_plans"
SQLITE = queries.load("sqlite")
POSTGRES = Catalogue(queries.load("postgres"), SCHEMA)


def numbers(engine: str, most: int) -> str:
    if engine == "postgres":
        return f"(SELECT i FROM generate_series(1, {most}) AS i) AS numbers"
    return (
        f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) SELECT i FROM n)"
    )


def fill(engine: str) -> list[str]:
    """The statements that fill the tables; on PostgreSQL the present is the machine's."""
    now = str(AT) if engine == "sqlite" else "now_us()"
    pad = "printf('%020d', {})" if engine == "sqlite" else "lpad(({})::text, 20, '0')"
    own, job, instance = (pad.format(what) for what in ("i", f"i % {JOBS} + 1", f"i % {INSTANCES} + 1"))
    return [
        f"""INSERT INTO jobs (
            id, slug, name, role, cadence, unit, every, anchor_at, payload, dedup_key, enabled, version, next_fire_at,
            created_at, created_by, updated_at, updated_by)
        SELECT 'job_' || {own}, 'job-' || i, 'n', 'role-' || (i % 10), '{{}}', 'hour', 1, 0, '{{}}', 'k', 1, 1,
            {now} + CASE WHEN i % 100 = 0 THEN -i ELSE 3600000000 + i END, 0, 't', 0, 't'
        FROM {numbers(engine, JOBS)}""",
        f"""INSERT INTO triggers (
            id, job_id, nominal_fire_at, dedup_key, payload, status, wait_until, instance_id, epoch, pushes, pushed_at,
            acknowledged_at, finished_at, created_at)
        SELECT 'trg_' || {own}, 'job_' || {job}, i, 'k', '{{}}',
            CASE i % 1000 WHEN 0 THEN 'pending' WHEN 1 THEN 'pushed' WHEN 2 THEN 'acknowledged' ELSE 'succeeded' END,
            {now} + i, CASE WHEN i % 1000 = 0 THEN NULL ELSE 'ins_' || {instance} END,
            CASE WHEN i % 1000 = 0 THEN NULL ELSE 1 END, 1, 0,
            CASE i % 1000 WHEN 0 THEN NULL WHEN 1 THEN NULL ELSE 0 END,
            CASE WHEN i % 1000 > 2 THEN 0 END, 0
        FROM {numbers(engine, TRIGGERS)}""",
        f"""INSERT INTO instances (
            id, role, name, status, epoch, server, connected_at, last_heartbeat_at, created_at)
        SELECT 'ins_' || {own}, 'role-' || (i % 10), 'n' || i, 'online', 1, 'prc_' || (i % 4), 0, 0, 0
        FROM {numbers(engine, INSTANCES)}""",
    ]


# --- SQLite -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    raw = apsw.Connection(str(a_file(tmp_path_factory.mktemp("jobs"))))
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


DUE = "SEARCH jobs USING INDEX jobs_due (next_fire_at<?)"


def test_due_jobs_are_one_search_in_order(file: apsw.Connection) -> None:
    """JOB-2: nothing is scanned, nothing is sorted, analysed or not."""
    assert plan(file, "jobs.due") == [DUE]
    with file:
        file.execute("ANALYZE")
        try:
            assert plan(file, "jobs.due") == [DUE]
        finally:
            file.execute("DELETE FROM sqlite_stat1")
    file.execute("ANALYZE sqlite_schema")


def steps(raw: apsw.Connection, name: str, **parameters: object) -> tuple[int, int]:
    """How many rows a statement returns, and how many steps of SQLite's machine it took."""
    taken = 0

    def step() -> bool:
        nonlocal taken
        taken += 1
        return False

    raw.set_progress_handler(step, 1)
    try:
        rows = raw.execute(SQLITE[name].text, parameters).fetchall()
    finally:
        raw.set_progress_handler(None)
    return len(rows), taken


def test_the_scan_reads_what_it_takes(file: apsw.Connection) -> None:
    """JOB-2: of a hundred thousand, the hundred that have waited longest."""
    found, spent = steps(file, "jobs.due", limit=100)
    assert found == 100
    assert spent < 100 * 120


def test_an_idle_tick_is_a_few_misses(file: apsw.Connection) -> None:
    """DSP-2: it costs the same on empty tables and on these."""
    file.execute("BEGIN")
    try:
        file.execute("DELETE FROM triggers WHERE finished_at IS NULL")
        assert steps(file, "jobs.next_due")[1] < 60
        assert steps(file, "triggers.next_over")[1] < 60
        assert steps(file, "triggers.givable")[1] < 150
        assert steps(file, "triggers.to_push", server="prc_none", limit=200)[1] < 150
        assert steps(file, "triggers.unacknowledged", server="prc_none", limit=200)[1] < 150
        assert steps(file, "triggers.adrift", hello_us=SECOND, lost_us=SECOND, limit=100)[1] < 150
        assert steps(file, "triggers.forlorn", lost_us=SECOND, calm_us=None, limit=100)[1] < 100
    finally:
        file.execute("ROLLBACK")


SEARCHED = {
    "jobs.next_due": ["SEARCH jobs USING COVERING INDEX jobs_due (next_fire_at>?)"],
    "jobs.advance": ["SEARCH jobs USING PRIMARY KEY (id=?)"],
    "jobs.fired": ["SEARCH jobs USING PRIMARY KEY (id=?)"],
    "jobs.realign": ["SEARCH jobs USING PRIMARY KEY (id=?)"],
    "jobs.far_ahead": ["SEARCH jobs USING INDEX jobs_due (next_fire_at>?)"],
    "triggers.next_over": ["SEARCH triggers USING INDEX triggers_waiting"],
    "triggers.give": ["SEARCH triggers USING PRIMARY KEY (id=?)"],
    "triggers.miss": ["SEARCH triggers USING PRIMARY KEY (id=?)"],
    "triggers.take_back": ["SEARCH triggers USING PRIMARY KEY (id=?)"],
    "triggers.lose": ["SEARCH triggers USING PRIMARY KEY (id=?)"],
    "triggers.held": ["SEARCH t USING INDEX triggers_held (instance_id=?)"],
    "triggers.forlorn": ["SEARCH t USING INDEX triggers_lost (lost_after<?)"],
    "triggers.page": [
        "SEARCH triggers USING INDEX sqlite_autoindex_triggers_2 (job_id=? AND nominal_fire_at<?)"
    ],
}


@pytest.mark.parametrize(("name", "expected"), SEARCHED.items(), ids=SEARCHED)
def test_a_hot_statement_is_one_search(file: apsw.Connection, name: str, expected: list[str]) -> None:
    assert plan(file, name) == expected


# what is read from end to end: an index of what is in flight, or waits
WHOLE = {
    "triggers.adrift": {"SCAN t USING INDEX triggers_held"},
    "triggers.givable": {"SCAN t USING INDEX triggers_waiting", "SCAN waits"},
}


@pytest.mark.parametrize("name", sorted(name for name in SQLITE if name.startswith(("jobs.", "triggers."))))
def test_no_statement_scans_a_table(file: apsw.Connection, name: str) -> None:
    scans = {step for step in plan(file, name) if step.startswith("SCAN")} - {"SCAN CONSTANT ROW"}
    assert scans <= WHOLE.get(name, set())


def test_the_guard_itself_notices_a_scan(file: apsw.Connection) -> None:
    """PRF-4."""
    file.execute("BEGIN")
    try:
        file.execute("DROP INDEX jobs_due")
        assert plan(file, "jobs.due") == ["SCAN jobs", "USE TEMP B-TREE FOR ORDER BY"]
    finally:
        file.execute("ROLLBACK")


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(postgres_url: str) -> Iterator[Address]:
    statements = [
        *fill("postgres"),
        *(f"VACUUM ANALYZE {table}" for table in ("jobs", "triggers", "instances")),
    ]
    with filled(postgres_url, SCHEMA, statements) as address:
        yield address


@pytest.fixture
async def raw(large: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    async with planning(large) as connection:
        yield connection


async def test_the_scan_on_postgresql_reads_what_it_takes(raw: "asyncpg.Connection[asyncpg.Record]") -> None:
    """JOB-2: by the index, in its order, locked and skipped row by row."""
    lines = await explained(raw, POSTGRES.plain["jobs.due"].text, ["100"], analyse=True)
    (index,) = only(lines, "Index Scan")
    assert index.startswith("Index Scan using jobs_due on jobs (actual rows=100.00 loops=1)"), lines
    assert only(lines, "LockRows")
    for wasted in ("Sort", "Seq Scan", "Rows Removed"):
        assert not only(lines, wasted), lines


HOT = {
    "jobs.next_due": "jobs_due",
    "jobs.advance": "jobs_pkey",
    "jobs.fired": "jobs_pkey",
    "jobs.realign": "jobs_pkey",
    "jobs.far_ahead": "jobs_due",
    "triggers.next_over": "triggers_waiting",
    "triggers.waiting": "triggers_waiting",
    "triggers.givable": "triggers_waiting",
    "triggers.give": "triggers_pkey",
    "triggers.miss": "triggers_pkey",
    "triggers.push": "triggers_pkey",
    "triggers.to_push": "triggers_held",
    "triggers.unacknowledged": "triggers_held",
    "triggers.acknowledge": "triggers_pkey",
    "triggers.finish": "triggers_pkey",
    "triggers.take_back": "triggers_pkey",
    "triggers.lose": "triggers_pkey",
    "triggers.held": "triggers_held",
    "triggers.adrift": "triggers_held",
    "triggers.forlorn": "triggers_lost",
    "triggers.page": "triggers_job_id_nominal_fire_at_key",
}


@pytest.mark.parametrize(("name", "index"), HOT.items(), ids=HOT)
async def test_a_hot_statement_is_served_by_an_index_on_postgresql(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str, index: str
) -> None:
    plain = POSTGRES.plain.get(name)
    text = POSTGRES.together([PutOff(POSTGRES.sets[name], [])]) if plain is None else plain.text
    count = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
    lines = await explained(raw, text, ["NULL"] * count)
    assert only(lines, index), lines
    # the instances of a house are few: to read them all is cheaper than to look one up
    assert [line for line in only(lines, "Seq Scan") if " on instances" not in line] == [], lines
