"""Slots as people read them: wall time, offset, and why a slot is not where its rule put it (CAD-8)."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from gnomon.cadence.civil import DAY, EPOCH, EPOCH_ORDINAL, FIRST_DAY, LAST_DAY, MICRO, REACH, Window
from gnomon.cadence.compiled import Compiled
from gnomon.cadence.parsing import ShortMonth
from gnomon.cadence.rule import Cadence
from gnomon.cadence.wallclock import CivilSlots

_NOWHERE = Window(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot for people: instant (UTC), wall time (ISO 8601) and offset (±HH:MM) in the rule's zone.

    `note` says in plain words where the rule moved the slot (gap, overlap, clamp); None where it moved nothing.
    """

    at: datetime
    local_time: str
    offset: str
    note: str | None = None


class Teller:
    """Tells the slots of one compiled rule, best in order: it remembers the window of the last one."""

    def __init__(self, cadence: Cadence, rule: Compiled) -> None:
        self._rule = rule
        clamps = cadence.short_month is ShortMonth.CLAMP
        self._clamped = cadence.day if clamps and isinstance(cadence.day, int) and cadence.day > 28 else None
        self._window = _NOWHERE

    def slot(self, micros: int) -> Slot:
        """Tell one slot, given in microseconds since 1970, UTC."""
        second = micros // MICRO
        start, end, offset, _ = self._window
        if not start <= second < end:
            self._window = start, end, offset, _ = self._rule.zone.window(second)
        wall = second + offset
        day = wall // DAY
        text = f"{_date_text(day)}T{_clock(wall - day * DAY)}"
        note = None
        # Nothing moves away from the edges of a window: a gap ends at its start, an overlap begins near its end.
        settled = start < second < end - REACH
        if not settled or (self._clamped and int(text[8:10]) < self._clamped):
            note = self._note(micros, wall, settled=settled)
        return Slot(EPOCH + timedelta(0, second), text, offset_text(offset), note)

    def _note(self, micros: int, wall: int, *, settled: bool) -> str | None:
        if not isinstance(self._rule, CivilSlots):
            return None
        intent = wall if settled else self._rule.intent_at(micros)
        meant, on = _short_clock(intent % DAY), _date_text(intent // DAY)
        words = []
        if self._clamped and int(on[8:]) < self._clamped:
            words.append(f"clamp: the month has no day {self._clamped}, so its last day, {on[8:]}, is used")
        if wall != intent:
            words.append(
                f"gap: {meant} does not exist on {on} (the clock goes forward), so the first valid time after it is used"
            )
        elif not settled and self._rule.zone.repeats(intent):
            words.append(
                f"overlap: {meant} comes twice on {on} (the clock goes back), so the earlier one is used"
            )
        return "; ".join(words) or None


@lru_cache(maxsize=1024)
def offset_text(offset: int) -> str:
    """Write an offset in seconds as ±HH:MM, with seconds where a zone had any."""
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    return f"{sign}{_short_clock(size)}"


@lru_cache(maxsize=4096)
def _clock(clock: int) -> str:
    return f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"


def _short_clock(clock: int) -> str:
    return _clock(clock).removesuffix(":00") if clock % 60 == 0 else _clock(clock)


def _date_text(day: int) -> str:
    if FIRST_DAY <= day <= LAST_DAY:
        return date.fromordinal(day + EPOCH_ORDINAL).isoformat()
    # A zone can show the day beside the range of `date`, never more than that one.
    return "0000-12-31" if day < FIRST_DAY else "10000-01-01"
