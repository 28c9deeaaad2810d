"""The invariants of the ledger: every slot of an oracle accounted for once, none that is no slot (A8, A10, A13, A14)."""

import bisect
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from support.history import History

MINUTE = 60_000_000
KOLKATA = 330 * MINUTE
DAY = 1_440 * MINUTE
Interval = tuple[int, int]


def oracle(schedule: dict[str, Any], end: int) -> list[int]:
    """The slots of one schedule up to ``end``, by plain arithmetic (microseconds); it shares no code with the product."""
    rule, anchor = json.loads(schedule["cadence"]), schedule["anchor_at"]
    if rule["unit"] in ("minute", "hour"):
        step = rule["every"] * MINUTE * (60 if rule["unit"] == "hour" else 1)
        return list(range(anchor, end + 1, step))
    if rule["unit"] == "once":
        at = datetime.fromisoformat(rule["at"]).replace(tzinfo=UTC)
        slot = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) - KOLKATA
        return [slot] if slot <= end else []
    first = (anchor + KOLKATA) // DAY * DAY - KOLKATA
    times = [_of_day(at) for at in rule["at"]]
    days = range(first, end + 1, DAY)
    return sorted(day + at for day in days for at in times if anchor <= day + at <= end)


def _of_day(text: str) -> int:
    hours, minutes, seconds = (int(part) for part in f"{text}:00".split(":")[:3])
    return (hours * 60 + minutes) * MINUTE + seconds * 1_000_000


def ledger_is_whole(history: History) -> Iterator[str]:
    """A8, DSP-9: each slot is fired, skipped, coalesced, in a pause or outside the window; and each just once."""
    slots = _by_schedule(history.rows("occurrences"), "schedule_id")
    pauses = _by_schedule(history.rows("status_changes"), "schedule_id")
    jumped = any(fault.kind == "jump" for fault in history.faults)
    for schedule in history.rows("schedules"):
        expected = oracle(schedule, history.latest_wall)
        covered: dict[int, int] = defaultdict(int)
        for row in slots[schedule["id"]]:
            yield from _cover(schedule, row, expected, covered)
        for slot in expected:
            # under a clock that ran ahead a slot may be counted among the missed, and come again when it is set back
            if covered[slot] > 1 and not jumped:
                yield f"slot {slot} of {schedule['id']} is in the ledger {covered[slot]} times"
            if not covered[slot] and not _excused(history, schedule, pauses[schedule["id"]], slot):
                yield f"slot {slot} of {schedule['id']} is nowhere"


def _cover(
    schedule: dict[str, Any], row: dict[str, Any], expected: list[int], covered: dict[int, int]
) -> Iterator[str]:
    nominal = row["nominal_fire_at"]
    if nominal not in expected:
        yield f"{schedule['id']} has a record of {nominal}, which is no slot"
    if row["created_at"] < nominal:
        yield f"slot {nominal} of {schedule['id']} was recorded before it came"
    covered[nominal] += 1
    if row["coalesced_count"] is not None:
        low = bisect.bisect_left(expected, row["coalesced_first"])
        high = bisect.bisect_right(expected, row["coalesced_last"])
        if high - low != row["coalesced_count"] or expected[low] != row["coalesced_first"]:
            yield f"slot {nominal} of {schedule['id']} counts {row['coalesced_count']} older ones of {high - low}"
        for slot in expected[low:high]:
            covered[slot] += 1


def _excused(history: History, schedule: dict[str, Any], changes: list[dict[str, Any]], slot: int) -> bool:
    """Not to be there: before its creation, still to come, outside the window, or while it did not stand active."""
    if slot <= schedule["created_at"] or slot > history.ended_wall:
        return True
    if schedule["starts_at"] is not None and slot < schedule["starts_at"]:
        return True
    if schedule["ends_at"] is not None and slot > schedule["ends_at"]:
        return True
    return any(begin < slot <= end for begin, end in _idle(changes, history.ended_wall))


def _idle(changes: list[dict[str, Any]], end: int) -> list[Interval]:
    found, since = [], None
    for change in changes:
        if change["status"] == "active" and since is not None:
            found.append((since, change["at"]))
            since = None
        elif change["status"] != "active" and since is None:
            since = change["at"]
    return found if since is None else [*found, (since, end)]


def _by_schedule(rows: list[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found


def nothing_fires_in_a_pause(history: History) -> Iterator[str]:
    """A13, A14: no slot fires while its schedule does not stand active, nor afterwards one that lay inside a pause."""
    for change in history.journal.of("slot"):
        if change.new["status"] != "active" and change.new["disposition"] == "fired":
            yield f"slot {change.new['nominal']} of {change.subject} fired while {change.new['status']}"
    if any(fault.kind == "jump" for fault in history.faults):
        return  # which slot lies inside a pause is told by a wall clock that was set meanwhile
    pauses = _by_schedule(history.rows("status_changes"), "schedule_id")
    for row in history.rows("occurrences"):
        idle = _idle(pauses[row["schedule_id"]], history.ended_wall)
        if row["disposition"] == "fired" and any(
            begin < row["nominal_fire_at"] <= end for begin, end in idle
        ):
            yield f"slot {row['nominal_fire_at']} of {row['schedule_id']} lay in a pause and fired"


def next_slots_go_forward(history: History) -> Iterator[str]:
    """A10: ``next_fire_at`` never moves back under one revision, but where the clock was set back."""
    jumps = [fault.begin for fault in history.faults if fault.kind == "jump"]
    newest: dict[str, int] = {}
    for change in history.journal.of("schedule"):
        now = change.new["next_fire_at"]
        if now is None:
            continue
        before = newest.get(change.subject, now)
        if now < before and not any(at <= change.at for at in jumps):
            yield f"{change.subject} went back from {before} to {now} at {change.at:.1f}"
        newest[change.subject] = now


def ledger_never_changes(history: History) -> Iterator[str]:
    """A17: what was recorded stays, as it was."""
    final = {
        (row["schedule_id"], row["nominal_fire_at"]): row["disposition"]
        for row in history.rows("occurrences")
    }
    for change in history.journal.of("slot"):
        if final.get((change.subject, change.new["nominal"])) != change.new["disposition"]:
            yield f"slot {change.new['nominal']} of {change.subject} is not what was recorded"


CHECKS = (ledger_is_whole, nothing_fires_in_a_pause, next_slots_go_forward, ledger_never_changes)
