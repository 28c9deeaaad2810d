"""What real processes left behind, as a ``History``: the database, its journal, what the target heard, logs, deeds.

The checks are those of the simulator (``simulation_verdict``); the few here are what only real processes can break.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from support.chaos_stores import read_journal, verified
from support.chaos_target import lines
from support.chaos_world import SWEEP, World
from support.history import Change, History, Hit
from support.product import Running
from support.simulation_verdict import CHECKS

TABLES = {
    "schedules": "id",
    "occurrences": "schedule_id, nominal_fire_at",
    "runs": "id",
    "sessions": "id",
    "attempts": "run_id, number, fence",
    "audit_entries": "seq",
    "status_changes": "schedule_id, seq",
    "processes": "started_at",
}
KINDS = {"kill": "kill", "stop": "freeze", "delay": "block", "fail": "outage"}
# who writes is told by owners, which a check of holders would ask in vain
LEFT_OUT = {"holders_write", "lost_claims_come_back"}
EARLY_SECONDS = 0.005
FELT_SECONDS = 1.0  # a delay or a failure of one step is over by then


def gather(world: World) -> History:
    """Everything that is left of a world in which nobody runs any more."""
    history = History(heartbeat_timeout=world.heartbeat_timeout, sweep=SWEEP, slack=6.0)
    for table, order in TABLES.items():
        history.tables[table] = world.store.query(f"SELECT * FROM {table} ORDER BY {order}")
    names = {row["pid"]: row["id"] for row in history.rows("processes")}
    for row in history.rows("processes"):
        history.births[row["id"]] = row["started_at"] / 1e6 - world.base_wall
    for deed in world.deeds:
        history.fault(deed.kind, names.get(deed.pid, "?") if deed.pid else "*", deed.begin, deed.end)
    for process in world.dead:
        name = names.get(process.process.pid, "?")
        _read_log(world, history, process, name)
    history.journal.changes = [_change(world, row) for row in read_journal(world.store)]
    history.hits = _hits(world, names, history)
    history.calm = not history.faults
    history.latest_wall = history.ended_wall = world.clock.micros()
    return history


def _read_log(world: World, history: History, process: Running, name: str) -> None:
    for line in process.err:
        try:
            entry = json.loads(line)
        except ValueError:
            if not line.startswith("Stopping;"):
                history.crashes.append(f"{name} said {line.rstrip()}")
            continue
        if entry["event"] == "failpoint":
            at = datetime.fromisoformat(entry["at"]).astimezone(UTC).timestamp() - world.base_wall
            kind = KINDS[entry["action"]]
            history.injected[f"{entry['action']} at {entry['point']}"] += 1
            if kind != "freeze":  # how long it stood still the world knows
                history.fault(kind, name, at, None if kind == "kill" else at + FELT_SECONDS)
        elif (error := entry.get("exception")) is not None and not _is_expected(entry):
            history.crashes.append(f"{entry['event']} in {name}: {error.strip().splitlines()[-1]}")


def _is_expected(entry: dict[str, Any]) -> bool:
    last: str = entry["exception"].strip().splitlines()[-1]
    return entry["event"] == "attempt_failed_inside" or last.startswith("gnomon.domain.errors.Unavailable")


def _change(world: World, row: dict[str, Any]) -> Change:
    old, new = row["old"], row["new"]
    if row["kind"] == "run":
        new["trigger"] = new["trigger_kind"]
        old.setdefault("status", None)
        old.setdefault("fence", None)
    elif row["kind"] == "schedule":
        old.setdefault("status", None)
    else:
        new["nominal"] = new["nominal_fire_at"]
    at = row["at"] - world.base_wall
    return Change(
        at, round(row["at"] * 1e6), _actor(row["kind"], old, new), row["kind"], row["subject"], old, new
    )


def _actor(kind: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Who made a change, as far as the row tells: a run's holder, or the sweep that took it from him."""
    if kind != "run":
        return "?"
    taken = new["status"] == "lost" or (
        new["status"] == "queued" and new["half_done"] and not old["half_done"]
    )
    if old["status"] == "running" and new["status"] != "running" and taken:
        return "watchdog"
    return old.get("owner") or new["owner"] or "?"


def _hits(world: World, names: dict[int, str], history: History) -> list[Hit]:
    deaths = {fault.process: fault.begin for fault in history.faults if fault.kind == "kill"}
    found: dict[tuple[int, str, int], Hit] = {}
    hits = []
    for line in lines(world.folder):
        at, key = line["at"] - world.base, (line["pid"], line["run"], line["fence"])
        if not line["begins"]:
            found[key].end, found[key].ended = at, line["how"]
            continue
        name = names.get(line["pid"], f"process {line['pid']}")
        nominal = None if line["nominal"] is None else round(line["nominal"] * 1e6)
        hit = Hit(line["run"], line["key"], line["fence"], line["attempt"], nominal, name, at, line["plan"])
        found[key] = hit
        hits.append(hit)
    for hit in hits:
        if hit.end is None and hit.process in deaths:
            hit.end, hit.ended = deaths[hit.process], "killed"
    return hits


def breaches(world: World, history: History) -> list[str]:
    """What is wrong with it; empty where every invariant holds."""
    checks = [check for check in CHECKS if check.__name__ not in LEFT_OUT]
    found = [f"{check.__name__}: {sentence}" for check in checks for sentence in check(history)]
    found += [f"acknowledged_is_there: {text}" for text in _acknowledged_is_there(world, history)]
    found += [f"verify: {breach}" for breach in verified(world.store)]
    return found + [f"never_early: {text}" for text in _never_early(world, history)]


def _acknowledged_is_there(world: World, history: History) -> Iterator[str]:
    """D3: what an answer said was made is there at the end."""
    there = {row["id"] for row in history.rows("schedules")}
    yield from (
        f"schedule {each} was acknowledged and is gone" for each in world.schedules if each not in there
    )


def _never_early(world: World, history: History) -> Iterator[str]:
    """A12: the target hears of no slot before its instant."""
    for hit in history.hits:
        if hit.nominal is not None and hit.begin + world.base_wall < hit.nominal / 1e6 - EARLY_SECONDS:
            yield f"run {hit.run_id} was heard before its slot {hit.nominal}"


def told(history: History) -> Counter[str]:
    """What was injected and what became of it, for the summary."""
    statuses = Counter(f"run {run['status']}" for run in history.rows("runs"))
    return history.injected + statuses + Counter({"calls": len(history.hits)})
