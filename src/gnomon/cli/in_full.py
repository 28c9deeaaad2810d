"""A schedule, a job and a run in full, for people: one order, one form of names and instants. With ``--json`` nothing of this.

What says how it stands comes first, what identifies it inside the product last; what has no value is left out.
"""

from collections.abc import Mapping
from typing import Any

from gnomon.cli.command import Talk
from gnomon.cli.names import Names, readable
from gnomon.cli.nouns import named, quoted
from gnomon.cli.wallclock import with_local

FIRST = (
    "id",
    "slug",
    "name",
    "status",
    "status_detail",
    "error",
    "last_error",
    "enabled",
    "role",
    "target",
    "schedule",
    "trigger",
    "next_fire_at",
    "last_fire_at",
    "nominal_fire_at",
    "scheduled_for",
    "started_at",
    "finished_at",
    "duration_seconds",
)
SLOTS = ("next_fire_at", "last_fire_at", "starts_at", "ends_at")


def schedule_in_full(talk: Talk, schedule: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule with its target by name, and its slots by its own clock too."""
    cadence, detail = schedule["cadence"], schedule["status_detail"]
    told: dict[str, Any] = {each: with_local(schedule[each], cadence) for each in SLOTS}
    told["status_detail"] = {**detail, "until": with_local(detail["until"], cadence)}
    return _ordered({**schedule, **told, "target": _target(talk, schedule)})


def job_in_full(_talk: Talk, job: Mapping[str, Any]) -> dict[str, Any]:
    """A job with its slots by its own clock too."""
    told = {each: with_local(job[each], job["cadence"]) for each in ("next_fire_at", "last_fire_at")}
    return _ordered({**job, **told})


def run_in_full(talk: Talk, run: Mapping[str, Any]) -> dict[str, Any]:
    """A run with its target and its schedule by name, its slot by the schedule's own clock too, and its answer once."""
    told = dict(run) | {"target": _target(talk, run)}
    schedule = _schedule(talk, told.pop("schedule_id"))
    told["schedule"] = None if schedule is None else named(schedule)
    told["nominal_fire_at"] = with_local(run["nominal_fire_at"], (schedule or {}).get("cadence") or {})
    if run.get("output") and str(run["output"]).startswith(run.get("response_preview") or ""):
        told["response_preview"] = None
    return _ordered(told)


def _target(talk: Talk, record: Mapping[str, Any]) -> str:
    target, slug = record["target"], Names(talk).target(record)
    return f"{target['kind']} {slug}" + ("" if slug == target["id"] else f" ({target['id']})")


def _schedule(talk: Talk, ref: str | None) -> Mapping[str, Any] | None:
    """The schedule, or only its id where it can't be had."""
    return None if ref is None else readable(talk, f"/schedules/{quoted(ref)}") or {"id": ref}


def _ordered(record: Mapping[str, Any]) -> dict[str, Any]:
    first = {name: record[name] for name in FIRST if name in record}
    return first | {name: value for name, value in record.items() if name not in first}
