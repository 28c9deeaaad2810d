"""The invariants of what is written down: slots and runs, audit, answers, counts, streaks (A7, A9, A18, B2)."""

from collections import defaultdict
from collections.abc import Iterator

from support.history import History


def slots_and_runs_match(history: History) -> Iterator[str]:
    """A7: a slot that fired has its run and session, one that did not has none; a scheduled run has its slot."""
    runs = {run["id"]: run for run in history.rows("runs")}
    fired = set()
    for slot in history.rows("occurrences"):
        if slot["disposition"] != "fired":
            continue
        run = runs.get(slot["run_id"])
        fired.add(slot["run_id"])
        if run is None or run["nominal_fire_at"] != slot["nominal_fire_at"]:
            yield f"slot {slot['nominal_fire_at']} of {slot['schedule_id']} names run {slot['run_id']}"
    for run in runs.values():
        if run["trigger_kind"] == "schedule" and run["id"] not in fired:
            yield f"run {run['id']} has no slot"


def hits_have_runs(history: History) -> Iterator[str]:
    """A9: what the target heard has a record; what is said to have succeeded, the target heard."""
    runs = {run["id"]: run for run in history.rows("runs")}
    heard = {hit.run_id for hit in history.hits}
    yield from (f"the target heard of {run_id}, which is no run" for run_id in heard - runs.keys())
    for run in runs.values():
        if run["status"] == "succeeded" and run["id"] not in heard:
            yield f"run {run['id']} succeeded unheard"


def claims_are_paired(history: History) -> Iterator[str]:
    """B2, BRD-7's pairing for runs: (CLAIM (RELEASE|EXPIRE))* with one fence in a pair, growing from pair to pair."""
    open_fence: dict[str, int | None] = defaultdict(lambda: None)
    last: dict[str, int] = defaultdict(int)
    for entry in history.rows("audit_entries"):
        run, action, fence = entry["subject_id"], entry["action"], entry["fence"]
        if entry["subject_kind"] != "run" or action not in ("CLAIM", "RELEASE", "EXPIRE"):
            continue
        if action == "CLAIM":
            if open_fence[run] is not None or fence <= last[run]:
                yield f"run {run}: CLAIM {fence} after {last[run]}, open {open_fence[run]}"
            open_fence[run], last[run] = fence, fence
        else:
            if open_fence[run] != fence:
                yield f"run {run}: {action} {fence} while {open_fence[run]} was open"
            open_fence[run] = None
    yield from (
        f"run {run}: CLAIM {fence} never ended" for run, fence in open_fence.items() if fence is not None
    )


def records_agree(history: History) -> Iterator[str]:
    """DSP-5, RUN-9: a question with each run, an answer just where it succeeded; counts of runs are the ledger's."""
    for run in history.rows("runs"):
        if not run["query"]:
            yield f"run {run['id']} was asked nothing"
        if (run["output"] is not None) != (run["status"] == "succeeded"):
            yield f"run {run['id']} is {run['status']} and holds {run['output']!r}"
    fired: dict[str, int] = defaultdict(int)
    for slot in history.rows("occurrences"):
        fired[slot["schedule_id"]] += slot["disposition"] == "fired"
    for schedule in history.rows("schedules"):
        if schedule["run_count"] != fired[schedule["id"]]:
            yield f"schedule {schedule['id']} counts {schedule['run_count']} runs of {fired[schedule['id']]}"


def streaks_add_up(history: History) -> Iterator[str]:
    """A18, SCH-8: failures in a row, as the runs ended, are the streak; at the limit, and only there, it stops."""
    limits = {row["id"]: row["failure_limit"] for row in history.rows("schedules")}
    streak: dict[str, int] = defaultdict(int)
    for change in history.journal.changes:
        old, new = change.old, change.new
        if change.kind == "run" and new["trigger"] == "schedule" and old["status"] != new["status"]:
            if new["status"] in ("failed", "timed_out", "lost"):
                streak[new["schedule_id"]] += 1
            elif new["status"] == "succeeded":
                streak[new["schedule_id"]] = 0
        elif change.kind == "schedule" and old["status"] != new["status"]:
            if new["status"] == "active":
                streak[change.subject] = 0
            if new["status"] == "error" and streak[change.subject] < limits[change.subject]:
                yield f"schedule {change.subject} was stopped after {streak[change.subject]} failures"
    for row in history.rows("schedules"):
        if row["failure_streak"] != streak[row["id"]]:
            yield f"schedule {row['id']}: streak {row['failure_streak']}, failures in a row {streak[row['id']]}"


def edits_are_outside_runs(history: History) -> Iterator[str]:
    """A16, SCH-4, SCH-10: revisions go up one by one, and never while a run of the schedule is unfinished."""
    over: set[str | None] = {None}
    for change in history.journal.changes:
        old, new = change.old, change.new
        if change.kind == "run" and new["finished_at"] is not None:
            over.add(change.subject)
        if change.kind != "schedule" or old["status"] is None or old["revision"] == new["revision"]:
            continue
        history.seen["edits"] += 1
        if new["revision"] != old["revision"] + 1:
            yield f"schedule {change.subject} went from revision {old['revision']} to {new['revision']}"
        if old["in_flight_run_id"] not in over:
            yield f"schedule {change.subject} was edited while {old['in_flight_run_id']} was in flight"


CHECKS = (
    slots_and_runs_match,
    hits_have_runs,
    claims_are_paired,
    records_agree,
    streaks_add_up,
    edits_are_outside_runs,
)
