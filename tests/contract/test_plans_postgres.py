"""What the hot statements cost on PostgreSQL with 1,000,000 schedules, of which 1 % are due, and a long history of runs.

Plans are asked for as a held connection comes to use them: prepared, without a look at the values.
"""

import re
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from gnomon.stores import queries
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.statements import Catalogue, Part, PutOff
from support.postgres_plans import explained, filled, only, planning

# filling takes ten seconds, and more where much runs beside: one worker does it, not each
pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("plans")]
SCHEMA = "plans"
QUERIES = queries.load("postgres")
CATALOGUE = Catalogue(QUERIES, SCHEMA)
SCHEDULES, DUE, RUNS = 1_000_000, 10_000, 200_000
BATCH = 100
FILL = (
    f"""INSERT INTO schedules (
        id, name, target_kind, target_id, cadence, unit, every, anchor_at, query, session_mode, overlap, catch_up,
        timeout_seconds, max_attempts, backoff_seconds, backoff_max_seconds, failure_limit, on_lost, jitter_seconds,
        status, status_by, status_at, revision, next_fire_at, created_at, created_by, updated_at, updated_by)
    SELECT 'sch_' || lpad(n::text, 20, '0'), 'n', 'agent', 'agt_1', '{{}}', 'hour', 1, 0, 'go', 'fresh', 'skip', 'latest',
        300, 1, 10, 600, 5, 'fail', 0, 'active', 't', 0, 1,
        now_us() + CASE WHEN n % {SCHEDULES // DUE} = 0 THEN -n ELSE 3600000000 + n END, 0, 't', 0, 't'
    FROM generate_series(1, {SCHEDULES}) AS n""",
    # of 100 runs one is queued and one is being worked on; the others are over. Half of all are in one of a hundred sessions
    f"""INSERT INTO runs (
        id, trigger_kind, status, priority, target_kind, target_id, schedule_id, scheduled_for, claimable_at,
        session_id, query, output, lease_seconds, lease_until, owner, finished_at)
    SELECT 'run_' || lpad(n::text, 20, '0'), 'schedule', status, 10, 'agent', 'agt_1', 'sch_' || lpad(n::text, 20, '0'), 0,
        CASE status WHEN 'queued' THEN now_us() - n END,
        CASE n % 2 WHEN 0 THEN 'ses_' || n % 200 END, 'go', CASE status WHEN 'succeeded' THEN 'gone' END, 330,
        CASE status WHEN 'running' THEN now_us() + 330000000 END,
        CASE status WHEN 'queued' THEN NULL ELSE 'prc_' || n % 8 END,
        CASE status WHEN 'succeeded' THEN now_us() END
    FROM generate_series(1, {RUNS}) AS n,
        LATERAL (SELECT CASE n % 100 WHEN 0 THEN 'queued' WHEN 1 THEN 'running' ELSE 'succeeded' END AS status) AS s""",
    "VACUUM ANALYZE schedules",
    "VACUUM ANALYZE runs",
    # a thousand rows of a hundred entries, and as many entries that are rows of their own
    """INSERT INTO audit (at, actor, action, subject_kind, subject_id, how_many, entries)
    SELECT 0, 'prc_1', 'CLAIM', 'run', '', 100,
        (SELECT '[' || string_agg('["run_' || lpad((n * 100 + m)::text, 20, '0') || '",1,{"attempt":1}]', ',') || ']'
         FROM generate_series(0, 99) AS m)
    FROM generate_series(0, 999) AS n""",
    """INSERT INTO audit (at, actor, action, subject_kind, subject_id)
    SELECT 0, 'ana', 'UPDATE', 'schedule', 'sch_' || lpad(n::text, 20, '0') FROM generate_series(1, 100000) AS n""",
    "VACUUM ANALYZE audit",
)


@pytest.fixture(scope="module")
def large(postgres_url: str) -> Iterator[Address]:
    # unlogged: a third faster to fill, and no other plan
    statements = ["ALTER TABLE schedules SET UNLOGGED", *FILL]
    with filled(postgres_url, SCHEMA, statements) as address:
        yield address


@pytest.fixture
async def raw(large: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    async with planning(large) as connection:
        yield connection


async def test_the_claim_reads_what_it_takes(raw: "asyncpg.Connection[asyncpg.Record]") -> None:
    """DSP-3: an index condition on what is due, nothing sorted, no row looked at for nothing."""
    lines = await explained(raw, CATALOGUE.plain["slots.claim_due"].text, [str(BATCH), "0"], analyse=True)
    index, lock = only(lines, "Index Scan")
    assert index.startswith("Index Scan using schedules_due on schedules (actual rows=100.00 loops=1)")
    assert lock.startswith("Index Scan using runs_pkey on runs")
    condition, key = only(lines, "Index Cond")
    assert "status = 'active'" in condition
    assert "next_fire_at <=" in condition
    assert key == "Index Cond: (id = schedules.in_flight_run_id)"
    assert only(lines, "Filter") == ["Filter: (finished_at IS NULL)"]
    assert not only(lines, "Sort")


async def test_a_crowd_s_claim_reads_the_same_and_holds_it(raw: "asyncpg.Connection[asyncpg.Record]") -> None:
    lines = await explained(raw, CATALOGUE.plain["slots.hold_due"].text, [str(BATCH), "0"], analyse=True)
    index, _ = only(lines, "Index Scan")
    assert index.startswith("Index Scan using schedules_due on schedules (actual rows=100.00 loops=1)")
    assert only(lines, "LockRows")


async def test_what_was_planned_is_written_by_one_statement(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """DSP-5: each row of it is found by its key, and nothing is read from end to end."""
    named = ["slots.advance", "runs.insert", "audit.append", "slots.enter"]
    parts = [Part.GUARD, *[Part.GUARDED] * 3]
    text = CATALOGUE.together(
        [
            PutOff(CATALOGUE.sets[name], [], part, QUERIES[name].shared)
            for name, part in zip(named, parts, strict=True)
        ]
    )
    count = max(int(number) for number in re.findall(r"\$(\d+)", text))
    lines = await explained(raw, text, ["NULL"] * count)
    assert only(lines, "schedules_pkey"), lines
    assert not only(lines, "Seq Scan"), lines
    assert not only(lines, "JIT"), lines
    assert not only(lines, "Join Filter"), lines  # a hundred rows with each of a hundred ids


@pytest.mark.parametrize(
    # what reads over a snapshot is planned as the server likes it best
    ("name", "mode"),
    [("audit.after", "auto"), ("audit.after", "force_generic_plan"), ("verify.audit", "auto")],
)
@pytest.mark.parametrize("place", ["0", "(SELECT max(seq) / 4 FROM audit)"], ids=["begin", "middle"])
async def test_a_page_of_the_audit_takes_apart_what_it_reads(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str, mode: str, place: str
) -> None:
    """SEC-7: the rows after the cursor by their key, as many as the page needs; only entries of one row are sorted."""
    query = QUERIES[name]
    after = await raw.fetchval(f"SELECT {place}::bigint")
    given = {"seq": str(after), "after": str(after), "until": str(2**62), "limit": "500"}
    values = [given.get(word, "NULL") for word in query.parameters]
    await raw.execute(f"SET LOCAL plan_cache_mode TO {mode}")
    lines = await explained(raw, CATALOGUE.plain[name].text, values, analyse=True)
    assert only(lines, "Incremental Sort"), lines
    (read,) = only(lines, "using audit_pkey")
    assert float(read.partition("rows=")[2].split()[0]) <= 600, lines
    assert not only(lines, "Seq Scan on runs"), lines


async def test_a_search_for_a_subject_takes_only_rows_apart_that_hold_it(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """SEC-7: every row is looked at, as they always were."""
    query = QUERIES["audit.after"]
    subject = f"'run_{'99950':0>20}'"
    given = {"seq": "0", "until": str(2**62), "limit": "50", "subject_id": subject}
    values = [given.get(word, "NULL") for word in query.parameters]
    lines = await explained(raw, CATALOGUE.plain[query.name].text, values, analyse=True)
    (entries,) = only(lines, "Function Scan on regexp_match")
    assert int(entries.partition("loops=")[2].rstrip(")")) == 100_000 + 100, lines
    assert len(await raw.fetch("SELECT 1 FROM audit_entries WHERE subject_id = " + subject)) == 1


async def test_each_statement_names_the_schema_of_all_that_is_ours(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """A pooler forgets a search path, so no statement relies on one."""
    await raw.execute("SET LOCAL search_path TO pg_catalog")
    for name in QUERIES:
        plain = CATALOGUE.plain.get(name)
        text = plain.text if plain else CATALOGUE.together([PutOff(CATALOGUE.sets[name], [])])
        if not text.startswith("LOCK"):  # nothing to prepare
            await raw.execute(f"PREPARE hot AS {text}")
            await raw.execute("DEALLOCATE hot")


async def test_rows_that_are_claimed_are_not_looked_at_again(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """DSP-3: what moved on lies no longer in the range of the index."""
    advance = CATALOGUE.sets["slots.advance"]
    claimed = await raw.fetch(CATALOGUE.plain["slots.claim_due"].text, BATCH, 0)
    rows = [
        {
            "id": row["id"],
            "claimed_at": row["next_fire_at"],
            "next_fire_at": row["next_fire_at"] + 7_200_000_000,
            "recorded_until": None,
            "fired_at": row["next_fire_at"],
            "fired": 1,
            "in_flight_run_id": "run_x",
            "waiting_run_id": None,
            "granted": 1,
            "seen_at": row["now"],
            "seen_revision": row["revision"],
            "seen_runs": row["run_count"],
            "seen_fence": row["fence"],
            "seen_in_flight": row["in_flight_run_id"],
            "seen_waiting": row["waiting_run_id"],
        }
        for row in claimed
    ]
    put_off = advance.put_off(rows, Part.WHOLE)
    assert put_off is not None
    await raw.fetch(CATALOGUE.together([put_off]), *put_off.values)
    again = await raw.fetch(CATALOGUE.plain["slots.claim_due"].text, BATCH, 0)
    assert len(again) == BATCH
    assert not {row["id"] for row in again} & {row["id"] for row in claimed}
    lines = await explained(raw, CATALOGUE.plain["slots.claim_due"].text, [str(BATCH), "0"], analyse=True)
    assert not only(lines, "Rows Removed")


async def test_a_look_at_what_is_due_next_reads_one_row(raw: "asyncpg.Connection[asyncpg.Record]") -> None:
    lines = await explained(raw, CATALOGUE.plain["slots.next_due"].text, [], analyse=True)
    (scan,) = only(lines, "Scan")
    assert scan == "Index Only Scan using schedules_due on schedules (actual rows=1.00 loops=1)"


async def test_a_look_ahead_reads_one_row_of_each_index(raw: "asyncpg.Connection[asyncpg.Record]") -> None:
    """DSP-2: what an idle process asks costs the same beside a million schedules."""
    lines = await explained(raw, CATALOGUE.plain["agenda.ahead"].text, ["'prc_1'"], analyse=True)
    read = [line for line in only(lines, "Scan using") if " on schedules " in line or " on runs " in line]
    assert len(read) == 6, lines
    assert all("(actual rows=1.00 loops=1)" in line or "(actual rows=0.00 loops=1)" in line for line in read)
    assert not [line for line in only(lines, "Seq Scan") if " on schedules" in line or " on runs" in line]
    assert not only(lines, "Rows Removed")


async def test_the_claim_of_runs_searches_each_queue_in_order(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """RUN-1: neither the runs that are over nor those that are held are looked at."""
    claim = CATALOGUE.plain["runs.claim_at_once"].text
    await raw.execute("BEGIN")
    lines = await explained(raw, claim, [str(BATCH), "'prc_1'", "'clm_1'"], analyse=True)
    await raw.execute("ROLLBACK")
    queues = [line for line in only(lines, "Index Scan") if "runs_queue" in line]
    assert len(queues) == 2
    assert sorted(re.findall(r"rows=(\d+)", " ".join(queues))) == ["0", "100"]
    assert len([line for line in only(lines, "Index Cond") if "priority =" in line]) == 2
    assert len(only(lines, "Index Scan using runs_pkey")) == 1
    # of the hundred none is without a schedule, and that is all that is looked at in vain
    assert sum(int(line.split()[-1]) for line in only(lines, "Rows Removed")) <= BATCH


HOT = {
    "runs.next_claimable": "runs_queue",
    "runs.grant_fence": "schedules_pkey",
    "runs.claim": "runs_pkey",
    "runs.claimed": "runs_pkey",
    "runs.claim_at_once": "runs_pkey",
    "runs.renew": "runs_pkey",
    "runs.close": "runs_pkey",
    "runs.close_plain": "runs_pkey",
    "runs.close_by_fence": "runs_pkey",
    "runs.close_queued": "runs_pkey",
    "runs.settle": "schedules_pkey",
    "runs.settle_parallel": "schedules_pkey",
    "runs.free_waiting": "runs_waiting",
    "runs.streaks": "schedules_pkey",
    "runs.move_streak": "schedules_pkey",
    "runs.give_back": "runs_pkey",
    "runs.requeue": "runs_pkey",
    "runs.lose": "runs_pkey",
    "runs.expired": "runs_leases",
    "runs.elsewhere": "runs_leases",
    "runs.held_by": "runs_leases",
    "runs.under_claim": "runs_leases",
    "runs.cancels": "runs_cancels",
    "slots.advance": "schedules_pkey",
    "slots.realign": "schedules_pkey",
    "slots.stop": "schedules_pkey",
    "slots.note_status": "status_changes_pkey",
}


@pytest.mark.parametrize(("name", "index"), HOT.items(), ids=HOT)
async def test_a_hot_statement_is_served_by_an_index(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str, index: str
) -> None:
    plain = CATALOGUE.plain.get(name)
    text = CATALOGUE.together([PutOff(CATALOGUE.sets[name], [])]) if plain is None else plain.text
    count = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
    lines = await explained(raw, text, ["NULL"] * count)
    assert only(lines, index), lines
    # the processes of a house are few: to read them all is cheaper than to look one up
    assert [line for line in only(lines, "Seq Scan") if " on processes" not in line] == []


OWN, SHARED = "'ses_00000000000000100001'", "'ses_102'"
LATE = "'run_00000000000000199999'"
PAGES = {
    "the first page of a session": ("sessions.turns", {"id": SHARED, "after": "''", "limit": "50"}),
    "a page of it": ("sessions.turns", {"id": SHARED, "after": "'run_00000000000000100000'", "limit": "50"}),
    "a run's own": ("sessions.turns", {"id": OWN, "after": "''", "limit": "50"}),
    "how much is said in a run's own": ("sessions.find", {"id": OWN}),
    "what a run is told": ("runs.history_of_session", {"session_id": SHARED, "run_id": LATE, "limit": "50"}),
}


@pytest.mark.parametrize(("name", "given"), PAGES.values(), ids=PAGES)
async def test_what_was_said_is_read_by_key_or_by_its_session(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str, given: dict[str, str]
) -> None:
    """RUN-9, SCH-7: of 200,000 runs, a thousand of them in one session, no more than a page asks for."""
    values = [given[parameter] for parameter in QUERIES[name].parameters]
    lines = await explained(raw, CATALOGUE.plain[name].text, values, analyse=True)
    read = [
        int(float(found)) for line in only(lines, " on runs") for found in re.findall(r"rows=([\d.]+)", line)
    ]
    assert max(read) <= 50, lines
    assert not only(lines, "Seq Scan"), lines
