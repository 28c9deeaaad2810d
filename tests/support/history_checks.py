"""The invariants of runs and their locks over one history (A1, A2, A6, A11, A20, A21). Each check yields sentences: breaches.

None of them asks the product's code what is right; they only compare its records with what the recorders saw.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from gnomon.domain.errors import Unavailable
from support.history import Change, History

TERMINAL = {"succeeded", "failed", "timed_out", "cancelled", "lost"}
ALLOWED = {
    (None, "queued"),
    (None, "running"),
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "failed"),
    ("running", "queued"),
} | {("running", status) for status in TERMINAL}
HANDS = {"kill", "freeze", "outage", "lost_answer", "block", "stop"}
PATIENCE = 40.0
Check = Callable[[History], Iterator[str]]


def no_crash(history: History) -> Iterator[str]:
    """D4: no step of the real code fails but for a database that can't be reached; the log tells nothing else."""
    yield from history.crashes
    expected = {"attempt_failed_inside"}  # a runtime that breaks, as drawn
    for entry in history.log:
        error = entry.get("exception")
        if error is not None and not isinstance(error, Unavailable) and entry["event"] not in expected:
            yield f"{entry['event']}: {error!r}"


def one_run_for_each_slot(history: History) -> Iterator[str]:
    """A1, A2 (DSP-6): one occurrence for each slot, one run and one key for each that fired."""
    runs = {run["id"]: run for run in history.rows("runs")}
    keys: dict[tuple[Any, Any], set[tuple[str, str]]] = defaultdict(set)
    for hit in history.hits:
        run = runs.get(hit.run_id)
        if run is not None and run["nominal_fire_at"] is not None:
            keys[run["schedule_id"], run["nominal_fire_at"]].add((hit.run_id, hit.key))
    for slot, found in keys.items():
        if len(found) > 1:
            yield f"slot {slot} was heard of under {sorted(found)}"
    made: dict[tuple[Any, Any], int] = defaultdict(int)
    for run in runs.values():
        if run["trigger_kind"] == "schedule":
            made[run["schedule_id"], run["nominal_fire_at"]] += 1
    yield from (f"slot {slot} has {count} runs" for slot, count in made.items() if count > 1)


def states_are_legal(history: History) -> Iterator[str]:
    """A6, RUN-1: transitions are those of the table, a run that is over never changes, fences only grow."""
    for change in history.journal.of("run"):
        old, new = change.old, change.new
        if old["status"] in TERMINAL:
            yield f"run {change.subject} was {old['status']} and was changed by {change.actor} at {change.at:.3f}"
        if old["status"] != new["status"] and (old["status"], new["status"]) not in ALLOWED:
            yield f"run {change.subject} went from {old['status']} to {new['status']}"
        if old["fence"] is not None and new["fence"] < old["fence"]:
            yield f"the fence of {change.subject} fell from {old['fence']} to {new['fence']}"
        if new["status"] == "running" and old["status"] != "running" and new["fence"] == old["fence"]:
            yield f"run {change.subject} was claimed under its old fence {new['fence']}"


def holders_write(history: History) -> Iterator[str]:
    """RUN-4, RUN-6: a lease is renewed, and a run closed as succeeded, by nobody but its holder."""
    holder: dict[str, str] = {}
    for change in history.journal.of("run"):
        old, new = change.old, change.new
        if new["status"] == "running" and old["status"] != "running":
            holder[change.subject] = change.actor
        elif old["status"] == new["status"] == "running" and new["owner"] != old["owner"]:
            yield f"run {change.subject} changed hands while running, by {change.actor}"
        elif old["status"] == "running" and new["lease_until"] not in (None, old["lease_until"]):
            yield from _renewed_by(change, holder[change.subject])


def _renewed_by(change: Change, holder: str) -> Iterator[str]:
    if holder != change.actor:
        yield f"{change.actor} renewed run {change.subject} of {holder}"


def nothing_is_open(history: History) -> Iterator[str]:
    """A11, RUN-3: after settling no run is unfinished and no lock is left."""
    over: set[str | None] = {None}
    for run in history.rows("runs"):
        if run["status"] in TERMINAL:
            over.add(run["id"])
        else:
            yield f"run {run['id']} is still {run['status']}"
    for schedule in history.rows("schedules"):
        if schedule["in_flight_run_id"] not in over or schedule["waiting_run_id"]:
            yield f"schedule {schedule['id']} is locked by {schedule['in_flight_run_id']}"


def losses_have_causes(history: History) -> Iterator[str]:
    """A20: nobody is taken from, and nobody gives up, unless something was done to whoever held the run."""
    claimed: dict[str, Change] = {}
    felt = history.heartbeat_timeout + 10.0  # a heartbeat that was missed is felt for so long after the fault
    for change in history.journal.of("run"):
        old, new = change.old, change.new
        if new["status"] == "running" and old["status"] != "running":
            claimed[change.subject] = change
        elif old["status"] == "running" and change.actor != claimed[change.subject].actor:
            claim = claimed[change.subject]
            if new["status"] not in ("lost", "queued"):
                continue
            if not history.touched(claim.actor, claim.at, change.at, HANDS, felt):
                yield (
                    f"run {change.subject}, held by {claim.actor} since {claim.at:.1f}, was taken at {change.at:.1f} "
                    f"by {change.actor}, and nothing had happened to it"
                )


def the_dead_are_recovered(history: History) -> Iterator[str]:
    """A11, RUN-7: a run of a killed process is taken within min(lease, heartbeat timeout) + sweep, while one watches."""
    deaths = {fault.process: fault.begin for fault in history.faults if fault.kind == "kill"}
    deferred = {(hit.run_id, hit.process) for hit in history.hits if hit.plan == "defer"}
    held: dict[str, Change] = {}
    for change in history.journal.of("run"):
        if change.new["status"] == "running" and change.old["status"] != "running":
            held[change.subject] = change
        elif change.old["status"] == "running" and change.new["status"] != "running":
            claim = held.pop(change.subject)
            died = deaths.get(claim.actor)
            mine = change.actor == claim.actor or (change.subject, claim.actor) in deferred
            if died is None or mine or died < claim.at or not _is_watched(history, deaths, died):
                continue
            history.seen["recoveries timed"] += 1
            if change.at - died > recovery_seconds(history):
                yield f"run {change.subject} of {claim.actor}, dead at {died:.1f}, was taken at {change.at:.1f}"


def recovery_seconds(history: History) -> float:
    """RUN-7: within this of a death its runs are taken, while somebody watches."""
    return history.heartbeat_timeout + history.sweep + history.slack


def _is_watched(history: History, deaths: dict[str, float], died: float) -> bool:
    """Whether some process watched, untouched, from a death to the end of its bound, and the clock stood right."""
    begin, end = died - history.heartbeat_timeout - history.sweep, died + recovery_seconds(history)
    if any(fault.kind == "jump" and begin <= fault.begin <= end for fault in history.faults):
        return False
    return any(
        born <= begin and deaths.get(name, end) >= end and not history.touched(name, begin, end, HANDS)
        for name, born in history.births.items()
    )


def calm_means_calm(history: History) -> Iterator[str]:
    """A20, A21: where nothing was done to anybody, nothing is lost, fenced off, refused or claimed in vain."""
    if not history.calm:
        return
    heard = {(hit.run_id, hit.fence) for hit in history.hits}
    cancelled = {run["id"] for run in history.rows("runs") if run["status"] == "cancelled"}
    by_target = {e["subject_id"] for e in history.rows("audit_entries") if e["actor"] == "target"}
    for entry in history.rows("audit_entries"):
        if entry["subject_kind"] != "run":
            continue
        collided = (
            entry["action"] == "FENCED" and entry["subject_id"] in by_target
        )  # a person's cancel came with it
        if entry["action"] == "EXPIRE" or (entry["action"] == "FENCED" and not collided):
            yield f"{entry['action']} of {entry['subject_id']} in a calm world"
        claim = (entry["subject_id"], entry["fence"])
        if entry["action"] == "CLAIM" and claim not in heard and entry["subject_id"] not in cancelled:
            yield f"claim {entry['fence']} of {entry['subject_id']} came to nothing"


def lost_claims_come_back(history: History) -> Iterator[str]:
    """RUN-5a: a claim whose answer was lost is asked for, not locked for its lease, where its maker lives on."""
    lost = {(fault.process, fault.begin) for fault in history.faults if fault.kind == "lost_answer"}
    calls: dict[str, list[float]] = defaultdict(list)
    moves: dict[str, list[Change]] = defaultdict(list)
    for hit in history.hits:
        calls[hit.run_id].append(hit.begin)
    for change in history.journal.of("run"):
        if change.new["status"] != change.old["status"]:
            moves[change.subject].append(change)
    for change in (move for of_run in moves.values() for move in of_run):
        if change.new["status"] != "running" or (change.actor, change.at) not in lost:
            continue
        until = change.at + PATIENCE
        others = [
            f
            for f in history.faults
            if (f.kind, f.process, f.begin) != ("lost_answer", change.actor, change.at)
        ]
        if any(f.touches(change.actor, change.at, until, PATIENCE) for f in others):
            continue
        history.seen["lost claims followed"] += 1
        after = moves[change.subject][moves[change.subject].index(change) + 1 :]
        heard = [at for at in calls[change.subject] if change.at <= at <= until]
        if not heard and not any(move.at <= until for move in after):
            yield f"the claim of {change.subject} by {change.actor} at {change.at:.1f} was lost and never asked for"


CHECKS: tuple[Check, ...] = (
    no_crash,
    one_run_for_each_slot,
    states_are_legal,
    holders_write,
    nothing_is_open,
    losses_have_causes,
    the_dead_are_recovered,
    lost_claims_come_back,
    calm_means_calm,
)
