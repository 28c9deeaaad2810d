"""What could happen twice, or not at all, because of how a loop names its effects, and how it stands (IDM-4).

Pure over the rows of one page: a schedule or a job as it is kept.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from gnomon.cadence import Cadence, Unit
from gnomon.domain import dedup
from gnomon.domain.dedup import Loop
from gnomon.domain.finding import Finding, Kind, Where
from gnomon.domain.instants import SECOND, from_micros, rfc3339
from gnomon.domain.schedule import OnLost, Overlap, ScheduleStatus
from gnomon.stores.database import Row

SLOTS_AHEAD = 16  # neighbours share a key, if any do: an hour, a day, a week, a month or a year holds both
# what a rule of another making raises, which stops no other's judgement
_UNREADABLE = (ValueError, LookupError, TypeError)
OVERDUE_SECONDS = 120
Holidays = Mapping[str, frozenset[date]]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a loop is judged by besides its row: the present (microseconds), the dates of calendars by slug."""

    now: int
    holidays: Holidays


def judge(loop: Loop, row: Row, sight: Sight) -> Iterator[Finding]:
    """Everything to be found in one loop."""
    yield from _standing(loop, row, sight.now)
    template: str | None = row["dedup_key"]
    repeats = row["unit"] != Unit.ONCE
    if template is None:
        yield from _without_key(row, sight, repeats=repeats)
        return
    if not repeats:
        return
    if not dedup.names_slot(template):
        yield _without_slot(loop, row, template)
        return
    try:
        shared = _shared(loop, row, template, sight)
    except _UNREADABLE as error:
        yield Finding(
            Kind.RULE_UNREADABLE,
            where(loop, row),
            f"Its rule can't be read: {type(error).__name__}.",
            "Run `gnomon verify`, and give it a cadence that can be read.",
        )
        return
    if shared is not None:
        yield shared


def where(loop: Loop, row: Row) -> Where:
    """The loop as a finding names it."""
    return Where(loop.value, row["id"], row["name"])


def _without_key(row: Row, sight: Sight, *, repeats: bool) -> Iterator[Finding]:
    reasons = []
    if row["on_lost"] == OnLost.RESUME:
        reasons.append("a run whose process died is started again (on_lost: resume)")
    if row["max_attempts"] > 1:
        reasons.append(f"a run is tried up to {row['max_attempts']} times (retry)")
    if row["overlap"] == Overlap.ALLOW:
        reasons.append("runs may work side by side (overlap: allow)")
    if not reasons and not repeats:
        return
    why = (
        "; ".join(reasons) or "nothing repeats a run by itself, but a person can, with `gnomon schedules run`"
    )
    yield Finding(
        Kind.NO_DEDUP_KEY,
        where(Loop.SCHEDULE, row),
        f"It declares no dedup key, and its work could be done twice: {why}.",
        f"Name what a slot makes, as with `gnomon schedules patch {row['id']} --dedup-key '{_example(row, sight)}'`, and let "
        "the target look for that name before it makes it.",
    )


def _example(row: Row, sight: Sight) -> str:
    """The coarsest name that no two slots share: a finer one would tell a run by hand apart from the slot's own."""
    with contextlib.suppress(*_UNREADABLE):
        for template in ("report-{{date}}", "report-{{hour}}"):
            if _shared(Loop.SCHEDULE, row, template, sight) is None:
                return template
    return "report-{{now}}"


def _without_slot(loop: Loop, row: Row, template: str) -> Finding:
    return Finding(
        Kind.KEY_WITHOUT_SLOT,
        where(loop, row),
        f'It repeats, and its dedup key "{template}" names no slot: a target that looks for it makes something once, for '
        "ever.",
        "If each slot makes something of its own, put the slot in, as {{date}} or {{now}}. If it is the name of one thing, "
        "such as a release, leave it.",
    )


def _shared(loop: Loop, row: Row, template: str, sight: Sight) -> Finding | None:
    cadence = Cadence.from_stored(row["cadence"])
    walk = cadence.compile(row["anchor_at"], sight.holidays.get(row["calendar"] or "", frozenset()))
    payload = json.loads(row["payload"]) if loop is Loop.JOB else None
    own = {"job": row["slug"]} if loop is Loop.JOB else dedup.of_schedule(row["id"], None, 0)
    ends_at = None if loop is Loop.JOB else row["ends_at"]
    seen: dict[str, int] = {}
    slot: int | None = sight.now if loop is Loop.JOB else max(sight.now, (row["starts_at"] or 0) - 1)
    for _ in range(SLOTS_AHEAD):
        slot = walk.next_after(slot) if slot is not None else None
        if slot is None or (ends_at is not None and slot > ends_at):
            return None
        key = dedup.render(template, from_micros(slot), cadence.zone, payload, own)
        if key in seen:
            return _told(loop, row, key, seen[key], slot)
        seen[key] = slot
    return None


def _told(loop: Loop, row: Row, key: str, first: int, second: int) -> Finding:
    one, other = (rfc3339(from_micros(slot)) for slot in (first, second))
    return Finding(
        Kind.KEY_SHARED_BY_SLOTS,
        where(loop, row),
        f'The slots {one} and {other} have the same dedup key "{key}": a target that looks for it does nothing at the second.',
        "If each slot makes something of its own, name it more closely, as with {{hour}} or {{now}}. If the later ones only "
        "try again, leave it.",
    )


def _standing(loop: Loop, row: Row, now: int) -> Iterator[Finding]:
    at = where(loop, row)
    late = 0 if row["next_fire_at"] is None else (now - row["next_fire_at"]) // SECOND
    if late > OVERDUE_SECONDS:
        yield Finding(
            Kind.SLOT_OVERDUE,
            at,
            f"Its slot {rfc3339(from_micros(row['next_fire_at']))} came due {late:,} seconds ago, and nobody has taken it.",
            "Start a process that dispatches: `gnomon up`, or `gnomon serve` with GNOMON_DISPATCH on.",
        )
    if loop is Loop.JOB:
        if row["error"] is not None:
            yield Finding(
                Kind.SET_ASIDE,
                at,
                f"It was set aside: {row['error']}.",
                f"Give it another cadence and enable it: `gnomon jobs patch {row['slug']}`.",
            )
        return
    yield from _status(row, at, now)


def _times(streak: int) -> str:
    return "once" if streak == 1 else f"{streak} times in a row"


def _status(row: Row, at: Where, now: int) -> Iterator[Finding]:
    if row["status"] == ScheduleStatus.ERROR:
        yield Finding(
            Kind.SET_ASIDE,
            at,
            f"It stands still: {row['status_reason'] or 'it failed'}. The last error was: {row['last_error'] or 'none'}",
            f"Mend what fails, then `gnomon schedules resume {row['id']}`.",
        )
    elif row["failure_streak"] and 2 * row["failure_streak"] >= row["failure_limit"]:
        yield Finding(
            Kind.FAILING,
            at,
            f"It failed {_times(row['failure_streak'])}; after {row['failure_limit']} it will stand still. The last "
            f"error was: {row['last_error'] or 'none'}",
            f"Look at its runs: `gnomon schedules runs {row['id']}`.",
        )
    until = row["status_until"]
    if (
        row["status"] == ScheduleStatus.PAUSED
        and until is not None
        and now - until > OVERDUE_SECONDS * SECOND
    ):
        yield Finding(
            Kind.PAUSE_OVERDUE,
            at,
            f"It was paused until {rfc3339(from_micros(until))}, and is paused still.",
            f"Start a process that sweeps (`gnomon up`), or `gnomon schedules resume {row['id']}`.",
        )
