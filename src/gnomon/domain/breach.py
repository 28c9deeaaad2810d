"""The invariants that a whole database is judged against, by name, and a breach of one of them (OPS-7).

Says what each means and which rules it comes from; how it is judged, ``services/verify_*`` know.
"""

from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """The name of each invariant; it is stable, and what ``gnomon verify`` prints."""

    SLOT_UNACCOUNTED = "slot_unaccounted"
    SLOT_RECORDED_TWICE = "slot_recorded_twice"
    RECORD_IS_NO_SLOT = "record_is_no_slot"
    RECORD_TOO_EARLY = "record_too_early"
    RECORD_OF_NOTHING = "record_of_nothing"
    COALESCED_WRONG = "coalesced_wrong"
    FIRED_OUT_OF_BOUNDS = "fired_out_of_bounds"
    FIRED_WITHOUT_RUN = "fired_without_run"
    LINKS_HALF_ERASED = "links_half_erased"
    NEXT_SLOT_WRONG = "next_slot_wrong"
    COUNTERS_WRONG = "counters_wrong"
    STATUS_HISTORY_WRONG = "status_history_wrong"
    REVISION_MISSING = "revision_missing"
    RULE_UNREADABLE = "rule_unreadable"
    TARGET_GONE = "target_gone"
    LOCK_WITHOUT_RUN = "lock_without_run"
    RUN_WITHOUT_LOCK = "run_without_lock"
    RUN_WITHOUT_SLOT = "run_without_slot"
    RUN_NEVER_CLAIMABLE = "run_never_claimable"
    RUN_STATE_WRONG = "run_state_wrong"
    RUN_HELD_BY_NOBODY = "run_held_by_nobody"
    RUN_TOO_EARLY = "run_too_early"
    RUN_WITHOUT_TURN = "run_without_turn"
    ATTEMPTS_WRONG = "attempts_wrong"
    FENCE_AHEAD = "fence_ahead"
    STRAY_ROWS = "stray_rows"
    KEY_OPENS_NOTHING = "key_opens_nothing"
    TASK_LOCK_WRONG = "task_lock_wrong"
    TASK_GATE_WRONG = "task_gate_wrong"
    TASK_NEEDS_ITSELF = "task_needs_itself"
    JOB_NEXT_SLOT_WRONG = "job_next_slot_wrong"
    JOB_SLOT_UNACCOUNTED = "job_slot_unaccounted"
    SLOT_TRIGGERED_TWICE = "slot_triggered_twice"
    TRIGGER_WRONG = "trigger_wrong"
    TRIGGER_STEPS_WRONG = "trigger_steps_wrong"
    AUDIT_GAP = "audit_gap"
    CLAIM_LEFT_OPEN = "claim_left_open"
    END_WITHOUT_CLAIM = "end_without_claim"
    END_CONTRADICTS_RUN = "end_contradicts_run"
    FENCE_NOT_GROWING = "fence_not_growing"


@dataclass(frozen=True, slots=True)
class Told:
    """What an invariant demands, in a sentence, the rules it comes from, and the rows over which it is judged."""

    rules: str
    over: str
    demands: str


_I = Invariant
TOLD: dict[Invariant, Told] = {
    _I.SLOT_UNACCOUNTED: Told(
        "DSP-9, A8",
        "occurrences",
        "Each slot since a schedule's creation is fired, skipped, missed, coalesced, or lies in a pause.",
    ),
    _I.SLOT_RECORDED_TWICE: Told(
        "DSP-6, DSP-7, A1",
        "occurrences",
        "A slot has one record, or lies in one coalesced range, not in two.",
    ),
    _I.RECORD_IS_NO_SLOT: Told(
        "CAD-8, A8", "occurrences", "What is on record is a slot of the revision that the record names."
    ),
    _I.RECORD_TOO_EARLY: Told(
        "DSP-1, A12", "occurrences", "No slot is recorded before it came, nor one before its schedule."
    ),
    _I.RECORD_OF_NOTHING: Told(
        "SCH-4, A17", "occurrences", "Each record has its schedule, and a revision that there was."
    ),
    _I.COALESCED_WRONG: Told(
        "DSP-7", "occurrences", "A coalesced range begins and ends with slots, and counts those in it."
    ),
    _I.FIRED_OUT_OF_BOUNDS: Told(
        "SCH-5, A13, A14", "occurrences", "Nothing fires outside its window or inside a pause."
    ),
    _I.FIRED_WITHOUT_RUN: Told(
        "DSP-5, A7",
        "occurrences",
        "A slot that fired has its run, unless retention took it or its session was erased.",
    ),
    _I.LINKS_HALF_ERASED: Told(
        "RUN-12",
        "occurrences",
        "A fired slot has both links, or neither with the stamp, and what it led to is gone then.",
    ),
    _I.NEXT_SLOT_WRONG: Told(
        "SCH-3, A10",
        "schedules",
        "An active schedule, and no other, has a next slot: one of its rule, not recorded, none left out.",
    ),
    _I.COUNTERS_WRONG: Told(
        "SCH-9",
        "schedules",
        "Runs counted, the last slot that fired and the newest on record agree with the ledger.",
    ),
    _I.STATUS_HISTORY_WRONG: Told(
        "SCH-2, DSP-9",
        "status_changes",
        "Changes of status are numbered without a gap, each a lawful step, the last one the present status.",
    ),
    _I.REVISION_MISSING: Told(
        "SCH-4", "schedules", "Each revision that an edit replaced is kept, numbered without a gap."
    ),
    _I.RULE_UNREADABLE: Told(
        "DSP-9a", "schedules", "A schedule whose rule can't be computed is set aside in error."
    ),
    _I.TARGET_GONE: Told("SCH-12", "schedules", "A schedule whose target is gone is disabled."),
    _I.LOCK_WITHOUT_RUN: Told(
        "RUN-3, A11",
        "schedules",
        "A schedule's lock is an unfinished run of its own; what waits, waits for it.",
    ),
    _I.RUN_WITHOUT_LOCK: Told(
        "DSP-8, SCH-11",
        "runs",
        "An unfinished run is its schedule's lock, or waits for it, or runs beside others by policy.",
    ),
    _I.RUN_WITHOUT_SLOT: Told(
        "DSP-5, DSP-6, A7", "runs", "A run of a slot is the one that its record names; no slot has two."
    ),
    _I.RUN_NEVER_CLAIMABLE: Told(
        "RUN-1, A11", "runs", "A queued run has an instant, or waits for a run that is unfinished."
    ),
    _I.RUN_STATE_WRONG: Told(
        "RUN-1, RUN-3", "runs", "Only a running run has a lease, only a finished one an end, none has both."
    ),
    _I.RUN_HELD_BY_NOBODY: Told(
        "RUN-4, RUN-5a", "runs", "A running run has a fence, an attempt, and a process with a heartbeat."
    ),
    _I.RUN_TOO_EARLY: Told("A12", "runs", "No run starts before its slot, or ends before its start."),
    _I.RUN_WITHOUT_TURN: Told(
        "DSP-5, RUN-9", "runs", "A run has the answer that its preview is of, and none before its end."
    ),
    _I.ATTEMPTS_WRONG: Told(
        "RUN-9, A3", "runs", "Every attempt but the last is kept, none beyond the count or the policy."
    ),
    _I.FENCE_AHEAD: Told(
        "RUN-6, A5",
        "runs",
        "No attempt or checkpoint has a fence above its run's, no run above its schedule's.",
    ),
    _I.STRAY_ROWS: Told(
        "RUN-11",
        "attempts, checkpoints, events, task_locks, task_prerequisites",
        "Nothing is left of runs, sessions and tasks that are gone.",
    ),
    _I.KEY_OPENS_NOTHING: Told("SEC-3", "api_keys", "A key whose target is gone is revoked."),
    _I.TASK_LOCK_WRONG: Told(
        "BRD-1, BRD-3",
        "tasks",
        "A task in progress has one lock, under the last fence of its claims, by an instance; no other task has one.",
    ),
    _I.TASK_GATE_WRONG: Told("BRD-1", "tasks", "A task counts those of its prerequisites that are not done."),
    _I.TASK_NEEDS_ITSELF: Told("BRD-8", "task_prerequisites", "Prerequisites form no cycle."),
    _I.JOB_NEXT_SLOT_WRONG: Told(
        "JOB-2",
        "jobs",
        "A job that is enabled, and no other, has a next slot: one of its cadence, after all that have a trigger.",
    ),
    _I.JOB_SLOT_UNACCOUNTED: Told(
        "JOB-3, DSP-9",
        "jobs",
        "Since a job was edited last, each of its slots has a trigger or is coalesced.",
    ),
    _I.SLOT_TRIGGERED_TWICE: Told(
        "JOB-3, C1",
        "triggers",
        "A slot of a job has one trigger, or lies in one coalesced range, not in two.",
    ),
    _I.TRIGGER_WRONG: Told(
        "JOB-2, JOB-4",
        "triggers",
        "A trigger has its job, did not come before its slot, and who has it is an instance, by a connection it had.",
    ),
    _I.TRIGGER_STEPS_WRONG: Told(
        "JOB-4",
        "audit",
        "A trigger is pushed, acknowledged and ended in this order; what was acknowledged is passed on to nobody.",
    ),
    _I.AUDIT_GAP: Told("SEC-7, B3", "audit", "Entries are numbered without a gap and were never removed."),
    _I.CLAIM_LEFT_OPEN: Told(
        "RUN-7, BRD-7, B2",
        "audit",
        "Each CLAIM is followed by its own end, unless its run still runs or its task is held.",
    ),
    _I.END_WITHOUT_CLAIM: Told(
        "RUN-6, BRD-7, A6, B2", "audit", "Each RELEASE or EXPIRE ends one open CLAIM, under its fence."
    ),
    _I.END_CONTRADICTS_RUN: Told(
        "A6, A17", "audit", "A run is what its last RELEASE or EXPIRE says it became."
    ),
    _I.FENCE_NOT_GROWING: Told(
        "RUN-6, BRD-2, A5",
        "audit",
        "The fences of a schedule's claims grow strictly, in the order of the audit, and so do those of a task's.",
    ),
}


@dataclass(frozen=True, slots=True)
class At:
    """One row that is part of a breach: its table and its key, as text."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Breach:
    """One breach: which invariant, what is wrong in a sentence, and the rows that show it."""

    invariant: Invariant
    sentence: str
    rows: tuple[At, ...]
