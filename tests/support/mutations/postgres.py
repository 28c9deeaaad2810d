"""The PostgreSQL base: writers side by side, no wait inside a claim, one order of locks, a commit that is in doubt."""

from support.mutations import Mutant, in_query

_FENCES = "tests/contract/test_runs_claim.py::test_fences_grow_with_each_grant_over_the_runs_of_one_schedule"
_DATABASE = "tests/service/test_postgres_database.py::"
_OUTAGE = "tests/service/test_postgres_outage.py::"
_OPENING = "tests/service/test_postgres_opening.py::"
_BASE = "stores/postgres/database.py"
_CONNECTION = "stores/postgres/connection.py"
_TRANSACTION = "stores/postgres/transaction.py"
_ALONE = "tests/service/test_postgres_alone.py::"
_SCHEMA = "stores/postgres/opening.py"
_SQL = "stores/postgres/sql/runs.sql"
_WAITING = _DATABASE + "test_a_run_that_came_to_wait_while_another_ended_is_freed"

_SIDE_BY_SIDE: tuple[Mutant, ...] = (
    Mutant(
        "writers side by side are as if one came after the other",
        _TRANSACTION,
        'WRITE = "SERIALIZABLE"',
        'WRITE = "READ COMMITTED"',
        _DATABASE + "test_writers_side_by_side_are_as_if_one_came_after_the_other",
    ),
    Mutant(
        "whoever lost is run again",
        _BASE,
        "is_worth_another_try(error) and tries < TRIES",
        "False",
        _DATABASE + "test_writers_side_by_side_are_as_if_one_came_after_the_other",
    ),
    in_query(
        "slots.hold_due",
        "a scan waits for no schedule",
        " FOR UPDATE SKIP LOCKED",
        " FOR UPDATE",
        _DATABASE + "test_a_scan_takes_no_schedule_that_others_hold",
    ),
    in_query(
        "slots.advance",
        "what was planned waits for no schedule when it is written",
        " FOR UPDATE OF schedules SKIP LOCKED",
        " FOR UPDATE OF schedules",
        _DATABASE + "test_a_scan_takes_no_schedule_that_others_hold",
    ),
    Mutant(
        "a claim waits for no schedule",
        _SQL,
        "    SELECT id FROM schedules WHERE id IN (SELECT schedule_id FROM queue)\n    FOR UPDATE SKIP LOCKED",
        "    SELECT id FROM schedules WHERE id IN (SELECT schedule_id FROM queue)",
        _DATABASE + "test_a_claim_waits_for_no_lock",
        within="claim_at_once",
    ),
    Mutant(
        "a claim waits for no run",
        _SQL,
        "ORDER BY claimable_at LIMIT greatest(:limit - (SELECT count(*) FROM interactive), 0)\n    FOR UPDATE SKIP LOCKED",
        "ORDER BY claimable_at LIMIT greatest(:limit - (SELECT count(*) FROM interactive), 0)\n    FOR UPDATE",
        _DATABASE + "test_a_claim_waits_for_no_lock",
        within="claim_at_once",
    ),
    Mutant(
        "a claim on PostgreSQL draws a fence for each run",
        _SQL,
        "fence = fence + given.grants",
        "fence = fence + 1",
        _FENCES + "[postgres]",
        within="claim_at_once",
    ),
    Mutant(
        "runs of one schedule take different fences on PostgreSQL",
        _SQL,
        "fence_before + nth AS",
        "fence_before + 1 AS",
        _FENCES + "[postgres]",
        within="claim_at_once",
    ),
    Mutant(
        "a fence never falls on PostgreSQL",
        _SQL,
        "greatest(given.next_fence, fence + 1)",
        "coalesce(nullif(given.next_fence, 0), fence + 1)",
        "tests/contract/test_runs_claim.py::"
        "test_a_fence_never_falls_even_where_the_schedule_s_is_behind[postgres]",
        within="claim_at_once",
    ),
    Mutant(
        "a claim on PostgreSQL tells the audit of each run",
        _SQL,
        "FROM claimed HAVING count(*) > 0",
        "FROM claimed HAVING false",
        "tests/contract/test_runs_claim.py::test_a_claim_is_in_the_audit_with_the_fence_of_each[postgres-3]",
        within="claim_at_once",
    ),
    Mutant(
        "a claim on PostgreSQL comes in the order of the queue",
        _SQL,
        "SELECT * FROM claimed ORDER BY place",
        "SELECT * FROM claimed ORDER BY place DESC",
        "tests/contract/test_runs_claim.py::"
        "test_the_interactive_come_before_the_scheduled_and_the_oldest_first[postgres]",
        within="claim_at_once",
    ),
    Mutant(
        "what is cut off in the middle takes its connection along",
        _TRANSACTION,
        "        elif _broken(error):\n            raw.terminate()\n",
        "",
        _ALONE + "test_what_stands_alone_and_is_cut_off_takes_its_connection_along",
    ),
    in_query(
        "runs.close", "whoever ends a run holds its schedule first", ">= 0", "IS NOT NULL OR true", _WAITING
    ),
)

_IN_DOUBT: tuple[Mutant, ...] = (
    Mutant(
        "an error that was swallowed commits nothing in silence",
        _TRANSACTION,
        'if tag != "COMMIT":',
        "if False:",
        _DATABASE + "test_an_error_that_was_swallowed_commits_nothing",
    ),
    Mutant(
        "a lost answer to a COMMIT is not taken for a no",
        _TRANSACTION,
        "        raise unknown() from error",
        "        raise",
        _OUTAGE + "test_a_commit_whose_answer_is_lost_is_neither_yes_nor_no",
    ),
    Mutant(
        "a lost answer to a write that stood alone is not taken for a no",
        _CONNECTION,
        "            raise unknown() from error",
        "            raise",
        _OUTAGE + "test_a_write_that_stood_alone_is_neither_yes_nor_no_when_its_answer_is_lost",
    ),
    Mutant(
        "a row goes with what its guard let through",
        "stores/postgres/statements.py",
        "(of_ IN (SELECT id FROM step_1)) IS TRUE",
        "(of_ IS NOT NULL OR of_ IN (SELECT id FROM step_1)) IS TRUE",
        "tests/contract/test_slots.py::test_only_what_moved_on_is_entered_into_the_ledger",
    ),
    Mutant(
        "a thread's own line ends within its patience",
        "stores/postgres/direct.py",
        "asyncio.wait_for(self._write(manner, work), self._patience)",
        "self._write(manner, work)",
        _OUTAGE + "test_a_thread_s_own_line_ends_within_its_patience",
    ),
)

_SCHEMAS: tuple[Mutant, ...] = (
    Mutant(
        "one process migrates at a time",
        _SCHEMA,
        "SELECT pg_advisory_xact_lock(hashtextextended('gnomon ' || $1, 0))",
        "SELECT $1::text",
        _OPENING + "test_of_processes_that_open_it_at_once_each_step_is_taken_by_one",
    ),
    Mutant(
        "another program's schema is refused",
        _SCHEMA,
        "if tables and not ours:",
        "if False:",
        _OPENING + "test_a_schema_of_another_program_is_not_touched",
    ),
    Mutant(
        "a schema that lost a table is refused",
        _SCHEMA,
        "        _refuse_parts(schema, tables, [step for step in known if step.number in had])\n",
        "",
        _OPENING + "test_what_can_t_be_used_is_left_as_it_is",
    ),
    Mutant(
        "nobody waits behind a migration that waits for a reader",
        _SCHEMA,
        '    await raw.execute(f"SET LOCAL lock_timeout TO {round(MOMENT_SECONDS * 1_000)}")\n',
        "",
        _OPENING + "test_nobody_waits_behind_a_migration_that_waits_for_a_reader",
    ),
)

MUTANTS = _SIDE_BY_SIDE + _IN_DOUBT + _SCHEMAS
