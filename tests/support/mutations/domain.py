"""The pure decisions: what fires, what is answered for once, how long a lease is."""

from support.mutations import Mutant

_MISFIRE = "tests/unit/domain/test_misfire.py::"
_FILE = "domain/misfire.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "what the ledger holds is not recorded again",
        _FILE,
        "    return max(due.next_fire_at, recorded + 1)\n",
        "    return due.next_fire_at\n",
        _MISFIRE + "test_a_slot_that_the_ledger_holds_is_not_recorded_again",
    ),
    Mutant(
        "a record of a false future silences no true slot",
        _FILE,
        "if recorded is None or recorded > due.now:",
        "if recorded is None:",
        _MISFIRE + "test_a_ledger_written_by_a_clock_that_was_ahead_silences_nothing_but_its_own_slots",
    ),
    Mutant(
        "the count is used up",
        _FILE,
        "if due.runs_left is not None and due.runs_left <= 0:",
        "if due.runs_left is not None and due.runs_left < 0:",
        _MISFIRE + "test_the_last_run_completes_the_schedule",
    ),
    Mutant(
        "before the window nothing fires",
        _FILE,
        "if due.starts_at is not None and due.next_fire_at < due.starts_at:",
        "if due.starts_at is not None and due.next_fire_at < 0:",
        _MISFIRE + "test_before_the_window_it_realigns_from_its_start_not_from_now",
    ),
    Mutant(
        "after the window nothing fires",
        _FILE,
        "due.walk.latest_at(due.now if due.ends_at is None else min(due.now, due.ends_at))",
        "due.walk.latest_at(due.now)",
        _MISFIRE + "test_a_stale_slot_beyond_the_window_is_skipped_and_completes",
    ),
    Mutant(
        "an instant that is no slot fires nothing",
        _FILE,
        "if newest is None or newest < first:",
        "if newest is None:",
        _MISFIRE + "test_an_instant_that_is_no_slot_realigns_and_fires_nothing",
    ),
    Mutant(
        "a slot past its grace does not fire",
        _FILE,
        "    if due.now - nominal > allowed:\n",
        "    if due.now - nominal > allowed + 1_000_000:\n",
        _MISFIRE + "test_late_inside_the_grace_fires_and_beyond_it_is_missed",
    ),
    Mutant(
        "one run in flight is enough",
        _FILE,
        "if not due.in_flight or due.overlap is Overlap.ALLOW:",
        "if due.overlap is not Overlap.SKIP or not due.in_flight:",
        _MISFIRE + "test_each_overlap_policy_against_what_is_in_flight",
    ),
    Mutant(
        "one run waiting is enough",
        _FILE,
        "if due.overlap is Overlap.SKIP or due.waiting:",
        "if due.overlap is Overlap.SKIP:",
        _MISFIRE + "test_each_overlap_policy_against_what_is_in_flight",
    ),
    Mutant(
        "a slot that a gate refuses uses up no run",
        _FILE,
        "decide(due._replace(runs_left=None))",
        "decide(due)",
        _MISFIRE + "test_a_slot_that_a_gate_refuses_uses_up_no_run",
    ),
    Mutant(
        "onward is strictly after now",
        _FILE,
        "    following = due.walk.next_after(newest)\n",
        "    following = due.walk.next_after(newest - 1)\n",
        "tests/property/test_misfire.py::"
        "test_the_next_instant_is_a_slot_inside_the_window_strictly_after_now",
    ),
    Mutant(
        "the lease covers the headroom in both halves",
        "domain/lease.py",
        "+ backoffs + HEADROOM_SECONDS",
        "+ backoffs",
        "tests/contract/test_lease_twins.py::test_both_halves_and_a_third_formula_agree_on_every_row",
    ),
    Mutant(
        "the lease covers every attempt, in SQL too",
        "domain/lease.py",
        "(max_attempts * timeout_seconds +",
        "(timeout_seconds +",
        "tests/contract/test_lease_twins.py::test_both_halves_and_a_third_formula_agree_on_every_row",
    ),
    Mutant(
        "the exponent is bounded before the power is taken",
        "domain/retry.py",
        "min(max(attempt - 1, 0), _LARGEST_EXPONENT)",
        "max(attempt - 1, 0)",
        "tests/unit/domain/test_retry.py::test_a_huge_attempt_number_stays_at_the_cap",
    ),
    Mutant(
        "a terminal status is never left",
        "domain/run.py",
        "**{status: frozenset() for status in TERMINAL}",
        "**{status: frozenset({RunStatus.QUEUED}) for status in TERMINAL}",
        "tests/unit/domain/test_run.py::test_a_terminal_status_is_never_left",
    ),
    Mutant(
        "a cancel moves no streak",
        "domain/streak.py",
        "return 0 if outcome is RunStatus.SUCCEEDED else streak",
        "return 0",
        "tests/unit/domain/test_streak.py::test_each_outcome_moves_a_streak_of_three",
    ),
)
