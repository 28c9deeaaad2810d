"""A definition's slots, inside its window: the first one from an instant on, and why there is none (SCH-5, SCH-14).

The same arithmetic serves creating, editing, resuming and explaining. Nothing here writes; instants are microseconds.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime

from gnomon.cadence import Cadence, Compiled, Slot, Unit, preview
from gnomon.cadence.notes import Teller
from gnomon.domain.errors import Fault
from gnomon.domain.instants import from_micros, maybe_micros, rfc3339, to_micros
from gnomon.domain.occurrence import Occurrence
from gnomon.domain.schedule import Definition
from gnomon.stores import slots
from gnomon.stores.database import Tx

MINUTE = 60_000_000


async def timetable(tx: Tx, definition: Definition, anchor_at: datetime) -> "Timetable":
    """The timetable of a definition, with the holidays of its calendar as they stand."""
    return Timetable(definition, anchor_at, await holidays_of(tx, definition.cadence))


async def walk_of(tx: Tx, cadence: Cadence, anchor_at: datetime) -> Compiled:
    """A bare cadence, with the holidays of its calendar as they stand."""
    return cadence.compile(to_micros(anchor_at), await holidays_of(tx, cadence))


async def holidays_of(tx: Tx, cadence: Cadence) -> frozenset[date]:
    """The dates of a cadence's calendar; none where it has none."""
    slug = cadence.calendar
    found = await slots.holidays(tx, [slug]) if slug is not None else {}
    return found.get(slug or "", frozenset())


def anchor_of(definition: Definition, created_at: datetime) -> datetime:
    """Where phases count from: as written, else the creation, cut to the whole minute (CAD-5)."""
    return anchored(definition.cadence, created_at)


def anchored(cadence: Cadence, created_at: datetime) -> datetime:
    """The same of a bare cadence."""
    anchor = cadence.anchor or created_at
    return anchor.replace(second=0, microsecond=0)


def no_slot(cadence: Cadence, walk: Compiled, now: int) -> Fault:
    """Why a cadence has no slot after now (SCH-14)."""
    once = cadence.unit is Unit.ONCE
    last = walk.latest_at(now)
    if once and last is not None:
        past, present = rfc3339(from_micros(last)), rfc3339(from_micros(now))
        return Fault("cadence.at", f"lies in the past: it means {past}, and it is {present} now")
    return Fault("cadence.at" if once else "cadence", "has no slot at all: nothing would ever fire")


@dataclass(frozen=True, slots=True)
class Told:
    """A record of the ledger with the wall time of its slot in the zone it was computed in."""

    occurrence: Occurrence
    local_time: str


class Timetable:
    """The slots of one definition."""

    def __init__(self, definition: Definition, anchor_at: datetime, holidays: frozenset[date]) -> None:
        self.definition = definition
        self._anchor_at = anchor_at
        self._holidays = holidays
        self.walk = definition.cadence.compile(to_micros(anchor_at), holidays)
        self.starts_at = maybe_micros(definition.starts_at)
        self.ends_at = maybe_micros(definition.ends_at)

    def first_after(self, micros: int) -> int | None:
        """The first slot strictly after an instant that lies inside the window."""
        found = self._first(micros)
        return None if found is None or (self.ends_at is not None and found > self.ends_at) else found

    def ahead(self, after: int, count: int) -> list[Slot]:
        """Up to ``count`` slots after an instant, inside the window, as people read them (CAD-8)."""
        begin = after if self.starts_at is None else max(after, self.starts_at - 1)
        found = preview(
            self.definition.cadence,
            from_micros(begin),
            count,
            anchor=self._anchor_at,
            holidays=self._holidays,
        )
        ends_at = self.definition.ends_at
        return [slot for slot in found if ends_at is None or slot.at <= ends_at]

    def is_slot(self, micros: int) -> bool:
        """Whether the rule has a slot at an instant, window or not."""
        return self.walk.latest_at(micros) == micros

    def is_left_out(self, micros: int) -> bool:
        """Whether an instant is no slot only because its date is excluded or a holiday."""
        bare = _without_exclusions(self.definition, self._anchor_at)
        return not self.is_slot(micros) and bare.is_slot(micros)

    def local_time(self, micros: int) -> str:
        """The wall time of an instant in the rule's zone, ISO 8601."""
        return Teller(self.definition.cadence, self.walk).slot(micros).local_time

    def told(self, occurrence: Occurrence) -> Told:
        """A record of this rule's, with the wall time of its slot."""
        return Told(occurrence, self.local_time(to_micros(occurrence.nominal_fire_at)))

    def faults(self, now: int, run_count: int = 0) -> list[Fault]:
        """Why the definition has no slot to come; empty where it has one (SCH-14)."""
        definition, present = self.definition, rfc3339(from_micros(now))
        found: list[Fault] = []
        if definition.max_runs is not None and definition.max_runs <= run_count:
            found.append(Fault("max_runs", f"must be above {run_count:,}, the runs there were already"))
        if self.ends_at is not None and self.ends_at <= now:
            return [*found, Fault("ends_at", f"the window is over: it is {present} now")]
        first = self._first(now)
        if first is None:
            found.append(self._no_slot(now))
        elif self.ends_at is not None and first > self.ends_at:
            at = rfc3339(from_micros(first))
            found.append(Fault("ends_at", f"no slot lies inside the window: the next one is {at}"))
        return found

    def _first(self, micros: int) -> int | None:
        begin = micros if self.starts_at is None else max(micros, self.starts_at - 1)
        return self.walk.next_after(begin)

    def _no_slot(self, now: int) -> Fault:
        once_over = self.definition.cadence.unit is Unit.ONCE and self.walk.latest_at(now) is not None
        if not once_over and self.starts_at is not None and self.walk.next_after(now) is not None:
            return Fault("starts_at", "the cadence has no slot at or after it")
        return no_slot(self.definition.cadence, self.walk, now)


def _without_exclusions(definition: Definition, anchor_at: datetime) -> Timetable:
    bare = replace(definition.cadence, exclude=(), calendar=None)
    return Timetable(replace(definition, cadence=bare), anchor_at, frozenset())
