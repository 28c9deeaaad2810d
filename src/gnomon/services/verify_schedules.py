"""Each schedule judged by its own row and by what is kept of its past: lock, target, statuses, revisions (OPS-7).

Pure over one row of ``stores.verify.schedules`` and its changes of status. Its slots are ``verify_ledger``'s affair.
"""

from collections.abc import Callable, Iterator, Sequence

from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.schedule import TRANSITIONS, ScheduleStatus
from gnomon.stores.database import Row

_I = Invariant
_ACTIVE, _DISABLED = ScheduleStatus.ACTIVE.value, ScheduleStatus.DISABLED.value
_STEPS = {(before.value, after.value) for (before, _), after in TRANSITIONS.items()}
Sentences = Iterator[tuple[Invariant, str]]


def judge(row: Row, changes: Sequence[Row]) -> Iterator[Breach]:
    """Every breach that this schedule shows, whatever its slots are."""
    for check in _CHECKS:
        for invariant, sentence in check(row, changes):
            yield Breach(invariant, f"Schedule {row['id']} {sentence}", tuple(_rows(row, invariant)))


def _rows(row: Row, invariant: Invariant) -> Iterator[At]:
    yield At("schedules", row["id"])
    if invariant is _I.LOCK_WITHOUT_RUN:
        held = (row["in_flight_run_id"], row["waiting_run_id"])
        yield from (At("runs", run_id) for run_id in held if run_id is not None)
    if invariant is _I.TARGET_GONE:
        yield At(f"{row['target_kind']}s", row["target_id"])


def _in_flight(row: Row, _: Sequence[Row]) -> Sentences:
    """RUN-3, A11: the lock is a run of this schedule; one that is finished locks nothing."""
    run_id, status = row["in_flight_run_id"], row["flight_status"]
    if run_id is None:
        return
    if status is None:
        yield _I.LOCK_WITHOUT_RUN, f"is locked by {run_id}, which is not there."
    elif row["flight_schedule"] != row["id"]:
        yield (
            _I.LOCK_WITHOUT_RUN,
            f"is locked by {run_id}, a run of {row['flight_schedule'] or 'no schedule'}.",
        )


def _waiting(row: Row, _: Sequence[Row]) -> Sentences:
    """DSP-8: one run at most waits, and for the one in flight."""
    run_id = row["waiting_run_id"]
    if run_id is None:
        return
    if row["waiting_status"] != "queued" or row["waiting_schedule"] != row["id"]:
        found = row["waiting_status"] or "not there"
        yield _I.LOCK_WITHOUT_RUN, f"has the run {run_id} waiting, which is {found}."
    elif row["in_flight_run_id"] is None or row["waiting_for"] != row["in_flight_run_id"]:
        held = row["in_flight_run_id"] or "nothing"
        yield (
            _I.LOCK_WITHOUT_RUN,
            f"has the run {run_id} waiting for {row['waiting_for']}; in flight is {held}.",
        )


def _target(row: Row, _: Sequence[Row]) -> Sentences:
    """SCH-12: a schedule of nothing is disabled."""
    if row["deleted_at"] is None and row["living_target"] is None and row["status"] != _DISABLED:
        named = f"{row['target_kind']} {row['target_id']}"
        yield _I.TARGET_GONE, f"is {row['status']}, and its target, the {named}, is gone."


def _statuses(row: Row, changes: Sequence[Row]) -> Sentences:
    """SCH-2, DSP-9: from active, by lawful steps, to where it stands."""
    standing = _ACTIVE
    for number, change in enumerate(changes, 1):
        if change["seq"] != number:
            yield _I.STATUS_HISTORY_WRONG, f"has no change of status number {number}."
            return
        if (standing, change["status"]) not in _STEPS:
            yield _I.STATUS_HISTORY_WRONG, f"went from {standing} to {change['status']} with change {number}."
        standing = change["status"]
    if standing != row["status"]:
        yield _I.STATUS_HISTORY_WRONG, f"is {row['status']}, and its last change of status is to {standing}."


def _revisions(row: Row, _: Sequence[Row]) -> Sentences:
    """SCH-4: what was replaced is kept."""
    replaced, last = row["revision"] - 1, row["last_revision"] or 0
    if row["revisions"] != replaced or last != replaced:
        yield (
            _I.REVISION_MISSING,
            f"is at revision {row['revision']}, and {row['revisions']} before it are kept, up to {last}.",
        )


_CHECKS: tuple[Callable[[Row, Sequence[Row]], Sentences], ...] = (
    _in_flight,
    _waiting,
    _target,
    _statuses,
    _revisions,
)
