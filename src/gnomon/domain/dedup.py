"""Dedup keys: the name under which a loop's effect may exist once, as a template over the slot (IDM-1).

A template may name the slot in the loop's own zone, the loop itself, and fields of a job's payload. Substitution is the
one pass of ``placeholders``: what was put in is never looked at again. What is wrong is told when the template is
saved; a slot that comes due always gets a key.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache

from gnomon.cadence.civil import zone_named
from gnomon.cadence.notes import offset_text
from gnomon.domain import placeholders
from gnomon.domain.errors import Fault
from gnomon.domain.instants import SECOND, rfc3339, to_micros

TEMPLATE_CHARACTERS = (1, 500)
MOST_CHARACTERS = 200  # of a key that was rendered
SLOT_NAMES = ("now", "date", "hour", "iso_week", "month", "year")
PAYLOAD = "payload."
# What a schedule that declares no key gets: the slot itself, which no other slot of any schedule shares.
DEFAULT = "{{schedule_id}}/{{now}}"
_spelled = lru_cache(maxsize=1_000)(rfc3339)  # the runs of a batch have few slots
_LONGEST_AT = datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)  # a run by hand has microseconds


class Loop(StrEnum):
    """What fires again and again, and so declares a key."""

    SCHEDULE = "schedule"
    JOB = "job"


# What a template may name besides the slot, each at its longest. lastRunAt and runCount are a query's (SCH-6) and were
# always read in a schedule's key too; they count runs and name no slot, which `gnomon doctor` says.
_OWN: dict[Loop, dict[str, str]] = {
    Loop.SCHEDULE: {"schedule_id": "s" * 64, "lastRunAt": rfc3339(_LONGEST_AT), "runCount": "1000000000"},
    Loop.JOB: {"job": "j" * 64},
}


def known(loop: Loop) -> tuple[str, ...]:
    """The names that a loop's template may use, in the order in which they are told; payload fields are beside them."""
    return (*SLOT_NAMES, *_OWN[loop])


def check(
    template: str, loop: Loop = Loop.JOB, payload: object = None, *, field: str = "dedup_key"
) -> list[Fault]:
    """Everything that is wrong with a template, at ``field``; ``payload`` is the job's, as JSON.

    An unknown placeholder is refused with the names that are known, an unclosed one as such, a payload field that is
    missing or no plain value, a control character, and a key that could come out blank or above 200 characters.
    """
    names = placeholders.named(template)
    found = [fault for name in names for fault in _name_faults(name, loop, payload)]
    bare = placeholders.fill(template, dict.fromkeys(names, ""))
    if "{{" in bare or "}}" in bare:
        found.append("has braces that don't belong together: a placeholder is written {{name}}")
    if not found:
        values = _values(_LONGEST_AT, "UTC", payload, names) | _OWN[loop]
        found = _text_faults(placeholders.fill(template, values))
    return [Fault(field, message) for message in dict.fromkeys(found)]


def render(
    template: str,
    nominal: datetime,
    zone: str,
    payload: object = None,
    own: Mapping[str, str] | None = None,
) -> str:
    """The key of one slot: ``nominal`` (aware) read in ``zone``, the loop's; ``own`` says what names the loop itself.

    ``own`` is ``{"job": slug}`` or ``{"schedule_id": id, "lastRunAt": …, "runCount": …}``. What ``check`` would refuse
    stays as it is written.

    Raises:
        KeyError: there is no zone of that name.
    """
    names = placeholders.named(template)
    if not names:
        return template
    return placeholders.fill(template, _values(nominal, zone, payload, names) | dict(own or {}))


def of_schedule(schedule_id: str, last_run_at: datetime | None, run_count: int) -> dict[str, str]:
    """What names a schedule in its key, as ``render`` takes it."""
    last = "" if last_run_at is None else rfc3339(last_run_at)
    return {"schedule_id": schedule_id, "lastRunAt": last, "runCount": str(run_count)}


def of_run(kept: str | None, schedule_id: str | None, nominal: datetime | None) -> str | None:
    """A run's key: the one it keeps, else its slot's, which is ``DEFAULT`` rendered; none without either (IDM-3).

    It is worked out here instead of being kept, since it says nothing that the run's row doesn't say already.
    """
    if kept is not None or schedule_id is None or nominal is None:
        return kept
    return f"{schedule_id}/{_spelled(nominal)}"


def of_node(key: str | None, node_id: str) -> str | None:
    """The key of one node of a team: two nodes are two effects, and the second must not find the first's name."""
    return None if key is None else f"{key}/{node_id}"


def names_slot(template: str) -> bool:
    """Whether two slots can have two keys; a constant label names the same effect for ever."""
    return any(name in SLOT_NAMES for name in placeholders.named(template))


def _values(nominal: datetime, zone: str, payload: object, names: list[str]) -> dict[str, str]:
    offset = zone_named(zone).window(to_micros(nominal) // SECOND).offset
    local = nominal + timedelta(seconds=offset)
    year, week, _ = local.isocalendar()
    day = f"{local.year:04}-{local.month:02}-{local.day:02}"
    values = {
        "now": rfc3339(nominal),
        "date": day,
        "hour": f"{day}T{local.hour:02}{offset_text(offset)}",  # the offset tells an hour that comes twice apart
        "iso_week": f"{year:04}-W{week:02}",
        "month": day[:7],
        "year": day[:4],
    }
    for name in names:
        text = _plain(_at(payload, name)) if name.startswith(PAYLOAD) else None
        if text is not None:
            values[name] = text
    return values


class _Absent:
    """No such field."""


def _at(payload: object, name: str) -> object:
    """The value at ``payload.field.sub``; an index counts into a list."""
    found = payload
    for step in name.removeprefix(PAYLOAD).split("."):
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return _Absent
    return found


def _plain(value: object) -> str | None:
    """Text as it is, a number or a truth value as JSON writes it; anything else can't stand in a key."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (bool, int, float)) else None


def _name_faults(name: str, loop: Loop, payload: object) -> list[str]:
    if name in known(loop):
        return []
    shown = f"{{{{{name[:60]}}}}}"
    if name.startswith(PAYLOAD) and loop is Loop.JOB:
        value = _at(payload, name)
        if value is _Absent:
            return [f"{shown} is no field of the payload"]
        text = _plain(value)
        if text is None:
            return [
                f"{shown} must be text, a number or true/false in the payload, not a list, an object or null"
            ]
        return [f"{shown} is empty in the payload"] if not text.strip() else []
    names = ", ".join(f"{{{{{one}}}}}" for one in known(loop))
    if loop is Loop.JOB:
        names += " and fields of the payload, as {{payload.field}}"
    near = get_close_matches(name[:60], known(loop), 1)
    hint = f"; did you mean {{{{{near[0]}}}}}?" if near else ""
    return [f"unknown placeholder {shown}; known are {names}{hint}"]


def _text_faults(key: str) -> list[str]:
    found = []
    if len(key) > MOST_CHARACTERS:
        found.append(f"could come out with {len(key):,} characters; a key has at most {MOST_CHARACTERS}")
    if not key.strip():
        found.append("must not be blank")
    if any(
        ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029" or "\ud800" <= c <= "\udfff" for c in key
    ):
        found.append(
            "must be one line without control characters and half characters, in the payload's fields too"
        )
    return found
