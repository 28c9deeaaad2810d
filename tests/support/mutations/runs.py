"""The queue and the holders: every guard on owner, fence, status and instant."""

from support.mutations import Mutant, in_query, without

_CLAIM = "tests/contract/test_runs_claim.py::"
_BACK = "tests/contract/test_runs_give_back.py::"
_HOLD = "tests/contract/test_runs_hold.py::"
_WORK = "tests/contract/test_runs_progress.py::"
_SWEEP = "tests/contract/test_runs_sweep.py::"
_SETTLE = "tests/contract/test_runs_settle.py::"
_PASSING = _SETTLE + "test_only_its_holder_ends_a_run"
_STALE = _HOLD + "test_a_stale_write_changes_nothing"
_ENDED = _HOLD + "test_a_write_after_the_end_changes_nothing"
_COMPLETED = _HOLD + "test_an_old_fence_completes_nothing"
_GIVEN_BACK = _BACK + "test_only_the_holder_gives_back"
_ZOMBIE = _WORK + "test_a_zombie_s_events_change_nothing"

_QUEUE: tuple[Mutant, ...] = (
    in_query(
        "runs.claimable",
        "priority = 0 … claimable_at <= now_us()",
        "priority = 0 AND claimable_at <= now_us()",
        "priority = 0 AND claimable_at IS NOT NULL",
        _CLAIM + "test_a_run_whose_instant_lies_ahead_takes_nobody_s_place_and_no_fence",
    ),
    in_query(
        "runs.claimable",
        "priority = 10 … claimable_at <= now_us()",
        "priority = 10 AND claimable_at <= now_us()",
        "priority = 10 AND claimable_at IS NOT NULL",
        _CLAIM + "test_a_run_whose_instant_lies_ahead_takes_nobody_s_place_and_no_fence",
    ),
    in_query(
        "runs.claimable",
        "the interactive first",
        "ORDER BY priority, claimable_at\n",
        "ORDER BY claimable_at, priority\n",
        _CLAIM + "test_the_limit_is_over_both_queues_and_the_rest_stays",
    ),
    in_query(
        "runs.claimable",
        "the oldest of the scheduled first",
        "priority = 10 AND claimable_at <= now_us() ORDER BY claimable_at LIMIT",
        "priority = 10 AND claimable_at <= now_us() ORDER BY claimable_at DESC LIMIT",
        _CLAIM + "test_of_one_queue_the_oldest_are_taken",
    ),
    in_query(
        "runs.claimable",
        "the oldest of the interactive first",
        "priority = 0 AND claimable_at <= now_us() ORDER BY claimable_at LIMIT",
        "priority = 0 AND claimable_at <= now_us() ORDER BY claimable_at DESC LIMIT",
        _CLAIM + "test_of_one_queue_the_oldest_are_taken",
    ),
    without(
        "runs.claim",
        "claimable_at + 0 <= now_us()",
        _CLAIM + "test_the_claim_looks_again_at_what_was_found",
    ),
    in_query(
        "runs.claim",
        "status and instant together",
        " AND status = 'queued' AND claimable_at + 0 <= now_us()",
        "",
        _CLAIM + "test_the_claim_looks_again_at_what_was_found",
    ),
    in_query(
        "runs.claim",
        "the fence is the schedule's",
        "CASE WHEN :fence > fence THEN :fence ELSE fence + 1 END",
        "fence + 1",
        _CLAIM + "test_fences_grow_with_each_grant_over_the_runs_of_one_schedule",
    ),
    in_query(
        "runs.claim",
        "a fence never falls",
        "CASE WHEN :fence > fence THEN :fence ELSE fence + 1 END",
        "CASE WHEN :fence > 0 THEN :fence ELSE fence + 1 END",
        _CLAIM + "test_a_fence_never_falls_even_where_the_schedule_s_is_behind",
    ),
    in_query(
        "runs.grant_fence",
        "each grant takes the next fence",
        "fence = fence + :grants",
        "fence = fence",
        _CLAIM + "test_fences_grow_with_each_grant_over_the_runs_of_one_schedule",
    ),
    Mutant(
        "a claim comes in the order of the queue",
        "stores/runs.py",
        "[by_id[run_id] for run_id, _ in found if run_id in by_id]",
        "list(by_id.values())",
        _CLAIM + "test_the_interactive_come_before_the_scheduled_and_the_oldest_first",
    ),
    Mutant(
        "runs of one schedule take different fences",
        "stores/runs.py",
        "fences[schedule_id].pop(0)",
        "fences[schedule_id][0]",
        _CLAIM + "test_fences_grow_with_each_grant_over_the_runs_of_one_schedule",
    ),
)
_HOLDERS: tuple[Mutant, ...] = (
    Mutant(
        "whoever may be waited for tells its schedule of its end",
        "services/slot_rows.py",
        "overlap != _SKIP or failure_streak > 0",
        "failure_streak > 0",
        "tests/service/test_dispatcher.py::test_whoever_waited_is_not_left_to_the_next_look",
    ),
    Mutant(
        "a success that ends a streak tells its schedule",
        "services/slot_rows.py",
        "overlap != _SKIP or failure_streak > 0",
        "overlap != _SKIP",
        "tests/service/test_runner.py::test_a_success_clears_the_streak_and_a_cancel_leaves_it",
    ),
    without("runs.renew", "owner = :owner", _STALE),
    without("runs.renew", "fence = :fence", _STALE),
    without("runs.renew", "status = 'running'", _ENDED),
    without("runs.close", "owner = :owner", _STALE),
    without("runs.close", "fence = :fence", _STALE),
    without("runs.close", "status = 'running'", _ENDED),
    without("runs.close_plain", "owner = :owner", _PASSING),
    without("runs.close_plain", "fence = :fence", _PASSING),
    without("runs.close_plain", "status = 'running'", _PASSING),
    without("runs.close_by_fence", "fence = :fence", _COMPLETED),
    without("runs.close_by_fence", "status = 'running'", _COMPLETED),
    in_query(
        "runs.close_by_fence",
        "no negative duration",
        "CASE WHEN now_us() > started_at THEN now_us() - started_at ELSE 0 END",
        "now_us() - started_at",
        _HOLD + "test_completing_after_the_clock_was_set_back_takes_no_time",
    ),
    without(
        "runs.close_queued",
        "status = 'queued'",
        _HOLD + "test_a_run_that_somebody_holds_or_that_is_over_is_not_closed_as_queued",
    ),
    without("runs.requeue", "fence = :fence", _STALE),
    without("runs.requeue", "status = 'running'", _ENDED),
    without("runs.requeue", "(CAST(:owner AS TEXT) IS NULL OR owner = :owner)", _STALE),
    without("runs.give_back", "owner = :owner", _GIVEN_BACK),
    without("runs.give_back", "fence = :fence", _GIVEN_BACK),
    without("runs.give_back", "status = 'running'", _BACK + "test_what_is_over_is_not_given_back"),
    in_query(
        "runs.give_back",
        "an attempt that was not made is not counted",
        "attempt = attempt - 1",
        "attempt = attempt",
        _BACK + "test_a_claim_given_back_is_as_if_it_had_not_been_made",
    ),
    in_query(
        "runs.give_back",
        "a claim given back keeps its age",
        "CASE WHEN scheduled_for < now_us() THEN scheduled_for ELSE now_us() END",
        "now_us()",
        _BACK + "test_a_claim_given_back_is_as_if_it_had_not_been_made",
    ),
    without(
        "runs.unfinished",
        "status = 'running'",
        _HOLD + "test_closes_go_together_and_only_the_held_land",
    ),
)
_PROGRESS: tuple[Mutant, ...] = (
    without("runs.checkpoint", "fence = :fence", _STALE),
    without("runs.checkpoint", "owner = :owner", _STALE),
    without("runs.checkpoint", "status = 'running'", _ENDED),
    in_query(
        "runs.checkpoint",
        "what was kept first stays",
        "DO UPDATE SET fence = checkpoints.fence",
        "DO UPDATE SET output = excluded.output",
        _WORK + "test_a_checkpoint_is_kept_once_and_its_repeat_is_told_as_kept",
    ),
    in_query(
        "runs.checkpoint",
        "a repeat is told as kept",
        "DO UPDATE SET fence = checkpoints.fence",
        "DO NOTHING",
        _WORK + "test_a_checkpoint_is_kept_once_and_its_repeat_is_told_as_kept",
    ),
    without("runs.event", "fence = :fence", _ZOMBIE),
    without("runs.event", "status = 'running'", _ZOMBIE),
    in_query(
        "runs.event",
        "events are bounded",
        "\n  AND (SELECT count(*) FROM run_events WHERE run_id = :run_id) < :most",
        "\n  AND :most > 0",
        _WORK + "test_events_are_bounded",
    ),
    without("runs.insert_attempt", "(CAST(:owner AS TEXT) IS NULL OR owner = :owner)", _STALE),
    without("runs.insert_attempt", "fence = :fence", _STALE),
    without("runs.insert_attempt", "status = 'running'", _ENDED),
    in_query(
        "runs.insert_attempt",
        "whoever keeps an attempt has its run",
        "--postgres: FOR UPDATE\n",
        "",
        "tests/service/test_postgres_database.py::"
        "test_whoever_keeps_an_attempt_has_its_run_until_it_is_back_in_the_queue",
    ),
    in_query(
        "runs.insert_attempt",
        "an attempt is kept once",
        "ON CONFLICT (run_id, number, fence) DO NOTHING",
        "ON CONFLICT (run_id, number, fence) DO UPDATE SET error_code = excluded.error_code",
        _HOLD + "test_the_record_of_an_attempt_is_the_run_s_own_and_kept_once",
    ),
    without(
        "runs.cancels",
        "cancel_at IS NOT NULL",
        _WORK + "test_a_running_run_is_asked_to_stop_and_the_first_who_asks_is_kept",
    ),
    without("runs.cancels", "finished_at IS NULL", _WORK + "test_what_is_queued_or_over_is_not_asked"),
    without("runs.ask_cancel", "status = 'running'", _WORK + "test_what_is_queued_or_over_is_not_asked"),
    in_query(
        "runs.ask_cancel",
        "the first who asked is kept",
        "coalesce(cancel_by, :by)",
        ":by",
        _WORK + "test_a_running_run_is_asked_to_stop_and_the_first_who_asks_is_kept",
    ),
)
_SWEEPS: tuple[Mutant, ...] = (
    in_query(
        "runs.expired",
        "r.lease_until <= now_us()",
        "(r.lease_until <= now_us() AND (",
        "(true AND (",
        _SWEEP + "test_a_run_under_a_lease_and_a_heartbeat_is_left_alone",
    ),
    without(
        "runs.expired",
        "(CAST(:calm_us AS BIGINT) IS NULL OR r.lease_seconds * 1000000 < :calm_us)",
        _SWEEP + "test_after_a_jump_a_lease_is_left_alone_for_its_own_length",
    ),
    in_query(
        "runs.expired",
        "(CAST(:calm_us AS BIGINT) IS NULL OR :heartbeat_timeout_us < :calm_us)",
        "AND (CAST(:calm_us AS BIGINT) IS NULL OR :heartbeat_timeout_us < :calm_us)",
        "",
        _SWEEP + "test_after_a_standstill_a_heartbeat_is_left_alone_for_its_timeout",
    ),
    in_query(
        "runs.expired",
        "a heartbeat that is overdue",
        "p.heartbeat_at <= now_us() - :heartbeat_timeout_us",
        "p.heartbeat_at <= now_us()",
        _SWEEP + "test_a_process_is_silent_after_the_heartbeat_timeout",
    ),
    in_query(
        "runs.expired",
        "a process without a row",
        "(p.id IS NULL OR p.heartbeat_at",
        "(p.heartbeat_at",
        _SWEEP + "test_a_run_whose_process_has_no_row_is_expired",
    ),
    in_query(
        "runs.expired",
        "whoever sent a run to its target stops it, while he lives",
        "(p.id IS NULL OR p.stopped_at IS NOT NULL OR p.heartbeat_at + :heartbeat_timeout_us <= now_us())",
        "true",
        _SWEEP + "test_what_a_target_took_ends_at_its_timeout_where_nobody_watches_it",
    ),
    without(
        "runs.lose",
        "fence = :fence",
        _SWEEP + "test_a_run_that_was_claimed_anew_is_not_lost_for_its_former_holder",
    ),
    without("runs.lose", "status = 'running'", _SWEEP + "test_a_run_that_ended_meanwhile_is_not_lost"),
    in_query(
        "runs.lose",
        "no negative duration",
        "CASE WHEN now_us() > started_at THEN now_us() - started_at ELSE 0 END",
        "now_us() - started_at",
        _SWEEP + "test_losing_after_the_clock_was_set_back_takes_no_time",
    ),
    without(
        "processes.beat",
        "stopped_at IS NULL",
        "tests/contract/test_processes.py::test_a_process_that_has_no_row_or_has_stopped_is_told_so",
    ),
    in_query(
        "processes.clean",
        "only who is long silent",
        "heartbeat_at < now_us() - :older_us",
        "heartbeat_at <= now_us() - :older_us",
        "tests/contract/test_processes.py::"
        "test_only_a_process_that_is_long_silent_and_holds_nothing_is_forgotten",
    ),
    in_query(
        "processes.clean",
        "only who holds nothing",
        "AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.owner = processes.id AND runs.lease_until IS NOT NULL)",
        "",
        "tests/contract/test_processes.py::"
        "test_only_a_process_that_is_long_silent_and_holds_nothing_is_forgotten",
    ),
)
_LOCKS: tuple[Mutant, ...] = (
    in_query(
        "runs.settle",
        "only the run in flight takes the lock off",
        "CASE WHEN in_flight_run_id = :run_id THEN waiting_run_id ELSE in_flight_run_id END",
        "waiting_run_id",
        _SETTLE + "test_another_run_s_end_leaves_the_lock",
    ),
    in_query(
        "runs.settle",
        "only its own schedule's lock",
        "WHERE id = :schedule_id",
        "WHERE in_flight_run_id = :run_id AND :schedule_id IS NOT NULL",
        _SETTLE + "test_another_schedule_s_lock_is_left",
    ),
    in_query(
        "runs.settle",
        "the waiting run keeps its place",
        "in_flight_run_id = :run_id OR waiting_run_id = :run_id THEN NULL",
        "true THEN NULL",
        _SETTLE + "test_another_run_s_end_leaves_the_lock",
    ),
    in_query(
        "runs.settle",
        "only a success clears the streak",
        "CASE WHEN :clears = 1 THEN 0 ELSE failure_streak END",
        "CASE WHEN :clears = 1 THEN 0 ELSE 0 END",
        _SETTLE + "test_only_a_success_clears_the_streak",
    ),
    in_query(
        "runs.free_waiting",
        "only who waits for the ended run",
        "WHERE waits_for = :run_id AND",
        "WHERE waits_for IS NOT NULL AND",
        _SETTLE + "test_whoever_waits_for_another_waits_on",
    ),
    in_query(
        "runs.free_waiting",
        "not before its own instant",
        "CASE WHEN scheduled_for > now_us() THEN scheduled_for ELSE now_us() END",
        "now_us()",
        _SETTLE + "test_whoever_waits_is_claimable_from_its_own_instant_on",
    ),
    without(
        "runs.settle_parallel",
        "runs.parallel = 1",
        _SETTLE + "test_of_parallel_runs_another_unfinished_one_holds_the_lock",
    ),
    without(
        "runs.settle_parallel",
        "in_flight_run_id IS NULL",
        _SETTLE + "test_a_lock_that_stands_is_not_moved_to_a_parallel_run",
    ),
    without(
        "runs.settle_parallel",
        "runs.finished_at IS NULL",
        _SETTLE + "test_of_parallel_runs_another_unfinished_one_holds_the_lock",
    ),
    in_query(
        "runs.history_of_session",
        "a run is told nothing that came later",
        "session_id = :session_id AND id < :run_id",
        "session_id = :session_id",
        _SETTLE + "test_a_run_sees_the_answered_turns_before_it_the_oldest_first",
    ),
    in_query(
        "runs.history_of_session",
        "a run is told no question that has no answer",
        "id < :run_id AND output IS NOT NULL\n        ORDER",
        "id < :run_id\n        ORDER",
        _SETTLE + "test_a_run_sees_the_answered_turns_before_it_the_oldest_first",
    ),
    in_query(
        "runs.history_of_session",
        "a session's own run tells nothing that came later",
        "session_id IS NULL AND id < :run_id",
        "session_id IS NULL",
        _SETTLE + "test_a_run_sees_the_answered_turns_before_it_the_oldest_first",
    ),
    in_query(
        "runs.history_of_session",
        "a session's own run tells no question that has no answer",
        " AND output IS NOT NULL\n) AS said",
        "\n) AS said",
        _SETTLE + "test_a_run_sees_the_answered_turns_before_it_the_oldest_first",
    ),
    in_query(
        "runs.history_of_session",
        "a run tells nothing to a session that it is not in",
        "session_id IS NULL AND id < :run_id",
        "id < :run_id",
        _SETTLE + "test_a_run_sees_the_answered_turns_before_it_the_oldest_first",
    ),
)
MUTANTS: tuple[Mutant, ...] = (*_QUEUE, *_HOLDERS, *_PROGRESS, *_SWEEPS, *_LOCKS)
