"""Due slots: who is claimed, what is recorded once, how a schedule moves on."""

from support.mutations import Mutant, in_query, without

_T = "tests/contract/test_slots.py::"
_REHEARSAL = "tests/contract/test_rehearsal.py::"
MUTANTS: tuple[Mutant, ...] = (
    without(
        "slots.claim_due",
        "next_fire_at <= now_us()",
        _T + "test_due_is_at_the_database_s_instant_and_not_a_microsecond_before",
    ),
    Mutant(
        "the policy that is stored is the one that decides",
        "services/slot_plan.py",
        "_CATCH_UPS[due.catch_up],",
        '_CATCH_UPS["latest"],',
        "tests/service/test_dispatcher.py::test_a_late_slot_fires_as_its_policy_says",
    ),
    in_query(
        "slots.claim_due",
        "the longest waiting first",
        "ORDER BY next_fire_at\n",
        "ORDER BY next_fire_at DESC\n",
        _T + "test_what_is_due_comes_the_longest_waiting_first_up_to_the_limit",
    ),
    in_query(
        "slots.claim_due",
        "the index is searched by both columns",
        "WHERE status = 'active' AND",
        "WHERE +status = 'active' AND",
        "tests/contract/test_plans.py::test_the_claim_is_one_search_by_status_and_instant",
    ),
    in_query(
        "slots.claim_due",
        "an unfinished run locks its schedule, a finished one does not",
        "@unfinished_run AS",
        "in_flight_run_id AS",
        _T + "test_a_run_locks_its_schedule_while_it_is_unfinished[sqlite-False]",
    ),
    in_query(
        "retention.last_run",
        "a schedule forgets the run that is deleted",
        "WHERE id = :schedule_id",
        "WHERE id = :schedule_id AND false",
        "tests/contract/test_retention_store.py::test_a_schedule_knows_no_run_that_is_gone",
    ),
    in_query(
        "slots.next_due",
        "the wait is found by index",
        " AND next_fire_at IS NOT NULL",
        "",
        "tests/contract/test_plans.py::test_a_hot_statement_is_one_search",
    ),
    in_query(
        "slots.record",
        "a slot is recorded once, and the second is told",
        "ON CONFLICT (schedule_id, nominal_fire_at) DO NOTHING",
        "ON CONFLICT (schedule_id, nominal_fire_at) DO UPDATE SET revision = occurrences.revision",
        _T + "test_a_slot_is_recorded_once_and_the_second_is_told",
    ),
    without(
        "slots.advance",
        "next_fire_at + 0 = :claimed_at",
        _T + "test_a_schedule_that_has_moved_since_it_was_read_is_left_alone",
    ),
    *(
        without("slots.advance", clause, _T + "test_what_was_decided_over_another_state_is_not_written")
        for clause in (
            "revision = :seen_revision",
            "run_count = :seen_runs",
            "fence = :seen_fence",
            "coalesce(in_flight_run_id, '') = coalesce(:seen_in_flight, '')",
            "coalesce(waiting_run_id, '') = coalesce(:seen_waiting, '')",
        )
    ),
    without(
        "slots.advance",
        "now_us() BETWEEN :claimed_at AND :seen_at + 5000000",
        _T + "test_what_was_decided_long_ago_or_by_a_clock_that_was_set_is_not_written",
    ),
    in_query(
        "slots.advance",
        "the fence grows with the grant",
        "fence = fence + :granted",
        "fence = fence",
        _T + "test_a_fired_slot_moves_everything_on",
    ),
    in_query(
        "slots.advance",
        "what was recorded is not forgotten",
        "recorded_until = coalesce(:recorded_until, recorded_until)",
        "recorded_until = :recorded_until",
        _T + "test_a_scan_without_a_slot_leaves_the_ledger_s_mark",
    ),
    in_query(
        "slots.advance",
        "a slot that did not fire leaves the lock",
        "in_flight_run_id = coalesce(:in_flight_run_id, in_flight_run_id)",
        "in_flight_run_id = :in_flight_run_id",
        _T + "test_a_slot_that_did_not_fire_leaves_count_lock_and_fence",
    ),
    in_query(
        "slots.stop",
        "status || '' = 'active'",
        "id = :id AND status || '' = 'active'",
        "id = :id",
        _T + "test_a_stop_from_another_status_changes_nothing",
    ),
    without("slots.stop", "deleted_at IS NULL", _T + "test_a_deleted_schedule_is_not_stopped"),
    without(
        "slots.realign",
        "next_fire_at + 0 = :claimed_at",
        _T + "test_realigning_leaves_alone_what_has_moved_since",
    ),
    in_query(
        "retention.old_occurrences",
        "the ledger forgets no slot that could fire again",
        "SELECT min(nominal_fire_at) FROM (",
        "SELECT max(nominal_fire_at) + 1 FROM (",
        "tests/service/test_retention.py::test_the_two_newest_slots_stay_whatever_their_age",
    ),
    in_query(
        "slots.note_status",
        "changes are numbered for each schedule",
        "WHERE schedule_id = :id",
        "",
        _T + "test_changes_of_status_are_numbered_for_each_schedule",
    ),
    Mutant(
        "a rehearsal claims nothing",
        "services/rehearsal.py",
        "self._mint.make(Kind.CLAIM), 0)",
        "self._mint.make(Kind.CLAIM), 9)",
        _REHEARSAL + "test_nothing_is_written_and_what_is_due_is_left_alone",
    ),
    Mutant(
        "what is rehearsed is said on every connection",
        "stores/postgres/database.py",
        "for _ in range(self._pool.size)",
        "for _ in range(1)",
        _REHEARSAL + "test_it_is_the_work_itself_on_every_connection",
    ),
    Mutant(
        "a loop is up before its instant",
        "services/loop.py",
        "            wanted -= AWAKE_SECONDS\n",
        "            pass\n",
        "tests/service/test_casebook_waits.py::test_a_loop_is_up_a_moment_before_the_slot",
    ),
)
