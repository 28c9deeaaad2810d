"""The invariants of tasks, triggers and instances over one history. Each check yields sentences: breaches.

None of them asks the product's code what is right: they compare its records with what the instances saw.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from gnomon.domain.errors import Unavailable
from support.simulation_board_bounds import the_abandoned_come_back
from support.simulation_board_history import BoardHistory, Held

ENDED = {"succeeded", "failed", "missed"}
ENDS = {"RELEASE", "EXPIRE"}
TRIGGER_MAY = {
    (None, "pending"),
    (None, "missed"),
    ("pending", "pending"),
    ("pending", "pushed"),
    ("pending", "missed"),
    ("pushed", "pending"),
    ("pushed", "acknowledged"),
    ("acknowledged", "acknowledged"),
    *((was, end) for was in ("pushed", "acknowledged") for end in ("succeeded", "failed")),
}


def no_crash(history: BoardHistory) -> Iterator[str]:
    """D4: no step of the real code fails but for a database that can't be reached; the log tells nothing else."""
    yield from history.crashes
    for entry in history.log:
        error = entry.get("exception")
        if error is not None and not isinstance(error, Unavailable):
            yield f"{entry['event']}: {error!r}"


def one_holder(history: BoardHistory) -> Iterator[str]:
    """BRD-1, BRD-2: no task is held by two at once, by their own clocks."""
    taken = _taken_by_force(history)
    by_task: defaultdict[str, list[Held]] = defaultdict(list)
    for held in history.holds:
        if held.end > held.begin:  # what was granted too late, nobody works on
            by_task[held.task_id].append(held)
    for task_id, holds in by_task.items():
        for one, other in pairwise(sorted(holds, key=lambda each: (each.begin, each.fence))):
            end = min(
                one.end, taken.get((task_id, one.fence), one.end)
            )  # its holder hears of that when it renews
            if other.begin < end and (one.fence, one.worker) != (other.fence, other.worker):
                yield (
                    f"task {task_id} was held by {one.worker} under {one.fence} until {end:.3f}, and by "
                    f"{other.worker} under {other.fence} from {other.begin:.3f}"
                )


def _taken_by_force(history: BoardHistory) -> dict[tuple[str, int], float]:
    """When a person took a task from a holder."""
    forced = {
        (entry["subject_id"], entry["fence"])
        for entry in history.entries("task")
        if entry["action"] == "RELEASE" and json.loads(entry["detail"]).get("by_force")
    }
    return {
        (change.subject, change.old["fence"]): change.at
        for change in history.journal.of("lock")
        if change.new["fence"] is None and (change.subject, change.old["fence"]) in forced
    }


def claims_end_once(history: BoardHistory) -> Iterator[str]:
    """BRD-7: each CLAIM has one end, under its own fence, before the next; fences grow."""
    stands: dict[str, int] = {}
    last: dict[str, int] = {}
    for entry in history.entries("task"):
        task_id, fence = entry["subject_id"], entry["fence"]
        if entry["action"] == "CLAIM":
            if task_id in stands:
                yield f"task {task_id} was claimed under {fence} while {stands[task_id]} stood"
            if fence <= last.get(task_id, 0):
                yield f"task {task_id} was claimed under {fence} after {last[task_id]}"
            stands[task_id] = last[task_id] = fence
        elif entry["action"] in ENDS and stands.pop(task_id, None) != fence:
            yield f"task {task_id}: {entry['action']} under {fence} ends no such claim"
    yield from (f"claim {fence} of task {task_id} has no end" for task_id, fence in stands.items())
    if history.rows("task_locks"):
        yield f"locks are left: {history.rows('task_locks')}"


def reports_stand(history: BoardHistory) -> Iterator[str]:
    """BRD-3: what was taken is in the audit, and ended that claim; what was refused ended none."""
    ends = {
        (entry["subject_id"], entry["fence"]): entry
        for entry in history.entries("task")
        if entry["action"] in ENDS
    }
    for told in history.told:
        end = ends.get((told.task_id, told.fence))
        if told.answer in ("taken", "replayed"):
            if end is None or end["action"] != "RELEASE":
                yield f"the report of {told.task_id} under {told.fence} was {told.answer}, and is not in the audit"
            elif json.loads(end["detail"])["status"] != told.status:
                yield f"the report of {told.task_id} under {told.fence} said {told.status}: {end['detail']}"
        elif told.answer not in ("no answer", "fence_stale", "database_failed"):
            yield f"the report of {told.task_id} under {told.fence} was answered with {told.answer}"


def needs_come_first(history: BoardHistory) -> Iterator[str]:
    """BRD-1, BRD-8: no task is claimed before what it needs is done."""
    first: dict[str, int] = {}
    done: dict[str, int] = {}
    for entry in history.entries("task"):
        if entry["action"] == "CLAIM":
            first.setdefault(entry["subject_id"], entry["seq"])
        elif entry["action"] == "RELEASE" and json.loads(entry["detail"])["status"] == "done":
            done.setdefault(entry["subject_id"], entry["seq"])
    for need in history.rows("task_prerequisites"):
        if first.get(need["task_id"], 2**62) < done.get(need["prerequisite_id"], 2**62):
            yield f"task {need['task_id']} was claimed before {need['prerequisite_id']} was done"


def slots_have_one_trigger(history: BoardHistory) -> Iterator[str]:
    """JOB-3: each slot of a job that was left alone is one trigger's, or inside what one was coalesced of."""
    by_job: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for trigger in history.rows("triggers"):
        by_job[trigger["job_id"]].append(trigger)
    for job_id, triggers in by_job.items():
        triggers.sort(key=lambda each: each["nominal_fire_at"])
        for one, other in pairwise(triggers):
            # what a clock that was ahead left out as missed may fire when it comes (casebook mis-08)
            begin = other["nominal_fire_at"] if "jump" in history.injected else _first(other)
            if begin <= one["nominal_fire_at"]:
                yield f"job {job_id}: {other['id']} is for slots from {begin} on, and {one['id']} had one of them"
    for job_id, (anchor, step) in history.jobs.items():
        slots = {
            slot for each in by_job[job_id] for slot in (each["nominal_fire_at"], *_coalesced(each, step))
        }
        recorded = max(slots, default=anchor)
        due = range(anchor, min(recorded, history.stopped_jobs_at) + 1, step)
        left_out = [slot for slot in due if slot not in slots]
        if left_out[1:] or (
            left_out and left_out != [anchor]
        ):  # the anchor's own is over when the job is made
            yield f"job {job_id}: {len(left_out)} slots have no trigger, the first {left_out[:3]}"
        odd = [slot for slot in slots if (slot - anchor) % step]
        yield from (f"job {job_id}: {slot} is no slot" for slot in odd)
        if (
            history.latest_wall - recorded > 2 * step + 900_000_000
            and recorded < history.stopped_jobs_at - 2 * step
        ):
            yield f"job {job_id} stopped at {recorded}"


def _first(trigger: dict[str, Any]) -> int:
    first = trigger["coalesced_first"]
    return int(trigger["nominal_fire_at"] if first is None else first)


def _coalesced(trigger: dict[str, Any], step: int) -> range:
    if trigger["coalesced_first"] is None:
        return range(0)
    return range(trigger["coalesced_first"], trigger["coalesced_last"] + 1, step)


def jobs_move_forward(history: BoardHistory) -> Iterator[str]:
    """JOB-2: the next slot of a job never goes back, unless the clock did."""
    if "jump" in history.injected:
        return
    for change in history.journal.of("job"):
        was, now = change.old["next_fire_at"], change.new["next_fire_at"]
        if was is not None and now is not None and now < was:
            yield f"job {change.subject} went back from {was} to {now}, by {change.actor}"


def one_name_for_each_slot(history: BoardHistory) -> Iterator[str]:
    """JOB-4, IDM-3: whoever gets a slot gets it under one id and one dedup key; and is told where it is not the first."""
    names: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    firsts: defaultdict[str, int] = defaultdict(int)
    for each in history.deliveries:
        names[each.job, each.nominal].add((each.trigger_id, each.dedup_key))
        firsts[each.trigger_id] += not each.redelivered
    for slot, found in names.items():
        if len(found) > 1:
            yield f"slot {slot} was pushed as {sorted(found)}"
    yield from (
        f"trigger {one} was pushed {count} times as new" for one, count in firsts.items() if count > 1
    )
    for key, tasks in history.effects.items():
        if len(tasks) > 1:
            yield f"the effect {key} exists as {sorted(tasks)}"


def triggers_keep_their_order(history: BoardHistory) -> Iterator[str]:
    """JOB-4: steps are those of the table; what was acknowledged goes to nobody else, what has ended never changes."""
    for change in history.journal.of("trigger"):
        old, new = change.old, change.new
        if (old["status"], new["status"]) not in TRIGGER_MAY:
            yield f"trigger {change.subject} went from {old['status']} to {new['status']} by {change.actor}"
        if old["status"] == "acknowledged" and new["instance_id"] != old["instance_id"]:
            yield f"trigger {change.subject} was acknowledged by {old['instance_id']} and given to {new['instance_id']}"
        if old["status"] in ENDED:
            yield f"trigger {change.subject} had {old['status']} and was changed by {change.actor}"


def pushed_before_sent(history: BoardHistory) -> Iterator[str]:
    """JOB-3, JOB-5: what comes over a connection was marked for that very connection, and comes once."""
    marked: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for change in history.journal.of("trigger"):
        if change.new["status"] == "pushed" and change.old["status"] == "pending":
            marked[change.subject, change.new["instance_id"], change.new["epoch"]] += 1
    came: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for each in history.deliveries:
        came[each.trigger_id, each.instance_id, each.epoch] += 1
    for where, count in came.items():
        if count > marked[where]:
            yield f"{where} came {count} times and was marked {marked[where]} times"


def only_the_present_speak(history: BoardHistory) -> Iterator[str]:
    """JOB-4, JOB-5: a trigger is pushed, acknowledged and ended under its instance's newest connection alone."""
    newest: dict[str, int] = {}
    holder: dict[str, str | None] = {}
    for entry in history.rows("audit_entries"):
        action, subject = entry["action"], entry["subject_id"]
        if action == "CONNECT":
            newest[subject] = entry["fence"]
        if entry["subject_kind"] != "trigger":
            continue
        detail = json.loads(entry["detail"] or "{}")
        by_instance = entry["actor"].startswith("ins_")
        if action == "PUSH":
            holder[subject] = detail["instance_id"]
            if newest.get(detail["instance_id"]) != entry["fence"]:
                yield f"trigger {subject} was pushed under epoch {entry['fence']} of {detail['instance_id']}, not its newest"
        elif action == "TAKE_BACK":
            holder[subject] = None
        elif action in {"ACKNOWLEDGE", "FINISH"} and by_instance:
            if holder.get(subject) != entry["actor"]:
                yield f"{action} of trigger {subject} by {entry['actor']}; {holder.get(subject)} has it"
            if newest.get(entry["actor"]) != entry["fence"]:
                yield f"{action} of trigger {subject} under epoch {entry['fence']} of {entry['actor']}, not its newest"


def epochs_grow(history: BoardHistory) -> Iterator[str]:
    """JOB-5: each connection of an instance is the next epoch."""
    for change in history.journal.of("instance"):
        was, now = change.old["epoch"], change.new["epoch"]
        if was is not None and now is not None and now not in (was, was + 1):
            yield f"instance {change.subject} went from epoch {was} to {now}"


def all_comes_to_an_end(history: BoardHistory) -> Iterator[str]:
    """BRD-4, JOB-4: with everything healed, every task is done and every trigger over, with a reason where it has to be."""
    for task in history.rows("tasks"):
        if task["status"] not in ("done", "cancelled"):
            yield f"task {task['id']} is {task['status']}, of role {task['role']}, unmet {task['unmet']}"
    for trigger in history.rows("triggers"):
        if trigger["finished_at"] is None:
            yield f"trigger {trigger['id']} is {trigger['status']}"


def nothing_is_lost_in_peace(history: BoardHistory) -> Iterator[str]:
    """Where nothing was injected, nothing expires, is passed on, or is missed."""
    if not history.calm:
        return
    for entry in history.rows("audit_entries"):
        # an instance that a person drained is ended, and what it had goes the ways of the dead
        if entry["action"] in {"EXPIRE", "TAKE_BACK", "OFFLINE"} and not history.fell_silent:
            yield f"{entry['action']} of {entry['subject_id']} in peace: {entry['detail']}"


CHECKS = (
    no_crash,
    one_holder,
    claims_end_once,
    reports_stand,
    needs_come_first,
    slots_have_one_trigger,
    jobs_move_forward,
    one_name_for_each_slot,
    triggers_keep_their_order,
    pushed_before_sent,
    only_the_present_speak,
    epochs_grow,
    all_comes_to_an_end,
    the_abandoned_come_back,
    nothing_is_lost_in_peace,
)


def breaches(history: BoardHistory) -> list[str]:
    """What is wrong with a history; empty where every invariant holds."""
    return [f"{check.__name__}: {sentence}" for check in CHECKS for sentence in check(history)]
