"""Each run judged by its own row and by what belongs to it: lock, slot, state, holder, attempts, answer (OPS-7).

Pure over one row of ``stores.verify.runs``. Knows no other run, and no order of things: the audit is ``verify_audit``'s.
"""

from collections.abc import Callable, Iterator

from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.run import TERMINAL, Trigger
from gnomon.services.verify_facts import Facts, text
from gnomon.services.watchdog import RESUMES
from gnomon.stores.database import Row

_I = Invariant
Sentences = Iterator[tuple[Invariant, str]]


def judge(row: Row, facts: Facts) -> Iterator[Breach]:
    """Every breach that this run shows."""
    for check in _CHECKS:
        for invariant, sentence in check(row, facts):
            yield Breach(invariant, f"Run {row['id']} {sentence}", tuple(_rows(row, invariant)))


def _rows(row: Row, invariant: Invariant) -> Iterator[At]:
    yield At("runs", row["id"])
    if row["schedule_id"] is not None and invariant in (_I.RUN_WITHOUT_LOCK, _I.FENCE_AHEAD):
        yield At("schedules", row["schedule_id"])
    if row["nominal_fire_at"] is not None and invariant is _I.RUN_WITHOUT_SLOT:
        yield At("occurrences", f"{row['schedule_id']} {text(row['nominal_fire_at'])}")


def _slot(row: Row, facts: Facts) -> Sentences:
    """DSP-5, DSP-6: the record of its slot names it, or was stamped, or is older than what the ledger keeps."""
    nominal, scheduled = row["nominal_fire_at"], row["trigger_kind"] == Trigger.SCHEDULE
    if scheduled != (nominal is not None):
        yield _I.RUN_WITHOUT_SLOT, f"was started by {row['trigger_kind']}, and its slot is {text(nominal)}."
    elif (row["schedule_id"] is None) != (row["trigger_kind"] == Trigger.INVOKE):
        yield (
            _I.RUN_WITHOUT_SLOT,
            f"was started by {row['trigger_kind']}, and its schedule is {row['schedule_id']}.",
        )
    elif nominal is None:
        return
    elif row["disposition"] is None:
        if nominal >= facts.slots_before:
            yield _I.RUN_WITHOUT_SLOT, f"is of the slot {text(nominal)}, which is not on record."
    elif row["disposition"] != "fired":
        yield (
            _I.RUN_WITHOUT_SLOT,
            f"is of the slot {text(nominal)}, which is on record as {row['disposition']}.",
        )
    elif row["links_erased_at"] is None and row["slot_run_id"] != row["id"]:
        yield (
            _I.RUN_WITHOUT_SLOT,
            f"is of the slot {text(nominal)}, which is on record with {row['slot_run_id']}.",
        )


def _lock(row: Row, _: Facts) -> Sentences:
    """DSP-8, SCH-11: an unfinished run is its schedule's lock."""
    if row["schedule_id"] is None or row["finished_at"] is not None:
        return
    if row["schedule"] is None:
        yield _I.RUN_WITHOUT_LOCK, f"is {row['status']}, and its schedule is not there."
    elif row["id"] in (row["in_flight_run_id"], row["waiting_run_id"]):
        return
    elif not row["parallel"] or row["in_flight_run_id"] is None:
        held = row["in_flight_run_id"] or "nobody"
        yield _I.RUN_WITHOUT_LOCK, f"is {row['status']}, and the lock of its schedule is held by {held}."


def _claimable(row: Row, _: Facts) -> Sentences:
    """RUN-1: somebody can claim it some day."""
    if row["status"] != "queued":
        return
    if row["claimable_at"] is None and row["waits_for"] is None:
        yield _I.RUN_NEVER_CLAIMABLE, "is queued, with no instant from which it may be claimed."
    elif row["claimable_at"] is not None and row["waits_for"] is not None:
        yield _I.RUN_NEVER_CLAIMABLE, f"waits for {row['waits_for']} and may be claimed all the same."
    elif row["waits_for"] is not None and (row["waited"] is None or row["waited_finished_at"] is not None):
        over = "is over" if row["waited"] else "is not there"
        yield _I.RUN_NEVER_CLAIMABLE, f"waits for {row['waits_for']}, which {over}."


def _state(row: Row, _: Facts) -> Sentences:
    """RUN-1, RUN-3: what a run of its status may have, and nothing of another."""
    running, over = row["status"] == "running", row["status"] in TERMINAL
    if over != (row["finished_at"] is not None):
        yield _I.RUN_STATE_WRONG, f"is {row['status']}, and its end is {text(row['finished_at'])}."
    if running != (row["lease_until"] is not None):
        yield _I.RUN_STATE_WRONG, f"is {row['status']}, and its lease is {text(row['lease_until'])}."
    if not running and row["claim_id"] is not None:
        yield _I.RUN_STATE_WRONG, f"is {row['status']} under the claim {row['claim_id']}."
    if row["status"] == "queued" and row["owner"] is not None:
        yield _I.RUN_STATE_WRONG, f"is queued, and held by {row['owner']}."
    if row["status"] != "queued" and (row["claimable_at"] is not None or row["waits_for"] is not None):
        yield _I.RUN_STATE_WRONG, f"is {row['status']}, and still stands in the queue."


def _holder(row: Row, _: Facts) -> Sentences:
    """RUN-4, RUN-5a: whoever holds a run can be seen to live."""
    if row["status"] != "running":
        return
    if row["owner"] is None or row["process"] is None:
        yield (
            _I.RUN_HELD_BY_NOBODY,
            f"is running under {row['owner'] or 'nobody'}, and no such process is known.",
        )
    elif row["fence"] < 1 or row["attempt"] < 1 or row["started_at"] is None:
        yield (
            _I.RUN_HELD_BY_NOBODY,
            f"is running under fence {row['fence']} in attempt {row['attempt']} since {text(row['started_at'])}.",
        )


def _times(row: Row, facts: Facts) -> Sentences:
    """A12: nothing is early, but where the clock was set."""
    started, nominal = row["started_at"], row["nominal_fire_at"]
    if facts.jumped or started is None:
        return
    if nominal is not None and started < nominal:
        yield _I.RUN_TOO_EARLY, f"started at {text(started)}, before its slot {text(nominal)}."
    if row["finished_at"] is not None and row["finished_at"] < started:
        yield _I.RUN_TOO_EARLY, f"ended at {text(row['finished_at'])}, before it started at {text(started)}."


def _attempts(row: Row, _: Facts) -> Sentences:
    """RUN-9, A3: all that were tried before, none that was not, no more than the policy allows."""
    attempt, last = row["attempt"], row["last_attempt"] or 0
    if row["kept_attempts"] < attempt - 1:
        yield _I.ATTEMPTS_WRONG, f"is in attempt {attempt}, and {row['kept_attempts']} before it are kept."
    if last > attempt:
        yield _I.ATTEMPTS_WRONG, f"is in attempt {attempt}, and attempt {last} is kept."
    allowed = 1 if row["max_attempts"] is None else row["max_attempts"]
    # an edit may have lowered the bound since; a resume after a loss is an attempt beyond it
    if (row["schedule_revision"] or 0) == (row["revision"] or 0) and attempt > allowed + RESUMES:
        yield _I.ATTEMPTS_WRONG, f"is in attempt {attempt} of {allowed}."


def _fences(row: Row, _: Facts) -> Sentences:
    """RUN-6: fences were granted by the schedule, and nothing was written under one that was not."""
    fence = row["fence"]
    if row["schedule"] is not None and fence > row["schedule_fence"]:
        yield _I.FENCE_AHEAD, f"has fence {fence}, and its schedule has granted {row['schedule_fence']}."
    for what in ("attempt", "checkpoint"):
        if (row[f"{what}_fence"] or 0) > fence:
            yield (
                _I.FENCE_AHEAD,
                f"has fence {fence}, and {what} of it was written under {row[f'{what}_fence']}.",
            )


def _turn(row: Row, _: Facts) -> Sentences:
    """DSP-5, RUN-9: the answer that its preview is of is there, and nothing of either once it was erased (RUN-12)."""
    if row["session_id"] == ERASED:
        if row["still_asked"] or row["answered"]:
            yield _I.LINKS_HALF_ERASED, "lost its session, and still holds what was said in it."
        if row["nominal_fire_at"] is not None and row["disposition"] and row["links_erased_at"] is None:
            yield _I.LINKS_HALF_ERASED, "lost its session, and the record of its slot was not stamped."
    elif row["links_erased_at"] is not None:
        yield _I.LINKS_HALF_ERASED, "has its session still, and the record of its slot was stamped."
    elif row["response_preview"] is not None and not row["answered"]:
        yield _I.RUN_WITHOUT_TURN, "has a preview of an answer that it does not hold."
    elif row["answered"] and row["status"] not in TERMINAL:
        yield _I.RUN_WITHOUT_TURN, f"is {row['status']}, and has its answer already."


ERASED = ""  # the session of a run whose session was erased
_CHECKS: tuple[Callable[[Row, Facts], Sentences], ...] = (
    _slot,
    _lock,
    _claimable,
    _state,
    _holder,
    _times,
    _attempts,
    _fences,
    _turn,
)
