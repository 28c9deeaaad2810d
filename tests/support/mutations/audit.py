"""The audit: an entry for each subject, once, under a number of its own."""

from support.mutations import Mutant, in_query

_STORE = "tests/contract/test_audit_store.py::"
_PAGES = _STORE + "test_a_page_may_end_inside_a_row"
_LANDED = _STORE + "test_of_guarded_entries_those_stand_whose_row_landed"
_FOLLOWED = "tests/contract/test_audit_followed.py::"

MUTANTS: tuple[Mutant, ...] = (
    in_query(
        "audit.after",
        "no entry of a row is read twice",
        "WHERE batch > :seq AND seq > :seq",
        "WHERE batch > :seq",
        _PAGES,
    ),
    in_query(
        "audit.append",
        "no number of an entry is given twice",
        "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit')",
        "(SELECT coalesce(max(seq), 0) FROM audit)",
        _STORE + "test_what_is_appended_after_a_clean_up_goes_on_behind_it",
    ),
    in_query(
        "audit.append",
        "a row reaches over as many numbers as it has entries",
        "sum(:how_many) OVER",
        "count(*) OVER",
        _STORE + "test_on_sqlite_entries_are_numbered_without_a_gap",
    ),
    Mutant(
        "what a guard kept out is told by no entry",
        "stores/postgres/statements.py",
        "place_) {where} {by} ",
        "place_) {by} ",
        _LANDED,
    ),
    Mutant(
        "what a guard kept out is told by no entry, on SQLite",
        "stores/sqlite/connection.py",
        "statement.gathered(given if landed is None else kept(given, landed, of))",
        "statement.gathered(given)",
        _LANDED,
    ),
    Mutant(
        "no row reaches below its numbers",
        "stores/audit.py",
        "MOST = 1_000",
        "MOST = 1_001",
        _STORE + "test_no_row_has_more_entries_than_it_has_numbers",
    ),
    Mutant(
        "the first row of all reaches below no number",
        "stores/migrations/0008_audit_entries.sql",
        "--postgres: SELECT nextval(pg_get_serial_sequence('audit', 'seq'));\n",
        "",
        "tests/service/test_audit_upgrade.py::test_the_first_row_of_all_reaches_below_no_number",
    ),
    Mutant(
        "what is counted by its action has a row of its own",
        "stores/audit.py",
        "frozenset({Action.EXPIRE, ",
        "frozenset({",
        _STORE + "test_what_is_looked_for_by_its_action_has_rows_of_its_own",
    ),
    in_query(
        "audit.after",
        "no number is passed over that an open transaction has drawn",
        " AND (batch <= :until) IS TRUE",
        "",
        _FOLLOWED + "test_what_has_a_greater_number_waits_for_who_drew_a_smaller_one",
    ),
    Mutant(
        "whoever draws a number can be seen",
        "stores/queries.py",
        "pg_advisory_xact_lock_shared(",
        "concat(",
        _FOLLOWED + "test_what_has_a_greater_number_waits_for_who_drew_a_smaller_one",
    ),
    Mutant(
        "a transaction that draws holds one lock",
        "stores/queries.py",
        "IS DISTINCT FROM log::text",
        "IS DISTINCT FROM 'drawn'",
        _FOLLOWED + "test_a_transaction_that_tells_much_holds_one_lock",
    ),
    in_query(
        "audit.settled",
        "who draws in another database holds nobody",
        "\n--postgres:       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        "",
        _FOLLOWED + "test_nobody_waits_for_a_transaction_that_tells_nothing",
    ),
    in_query(
        "audit.settled",
        "the name of a lock may come round",
        "(objid::bigint - drawn.last / 1000)::bit(32)::int",
        "(objid::bigint - drawn.last / 1000)",
        _FOLLOWED + "test_the_name_of_the_lock_may_come_round",
    ),
)
