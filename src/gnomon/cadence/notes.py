"""Wall time in words: how a slot is shown, and why it is not where its rule put it (CAD-8)."""

from datetime import date

from gnomon.cadence.civil import DAY, EPOCH_ORDINAL, FIRST_DAY, LAST_DAY, Zone
from gnomon.cadence.monthly import month_of, month_span
from gnomon.cadence.parsing import ShortMonth
from gnomon.cadence.rule import Cadence


def wall_text(wall: int) -> str:
    """Write wall time as local ISO 8601 without offset."""
    day, clock = divmod(wall, DAY)
    return f"{_date_text(day)}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"


def offset_text(offset: int) -> str:
    """Write an offset as ±HH:MM, with seconds where a zone had any."""
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    text = f"{sign}{size // 3600:02}:{size // 60 % 60:02}"
    return f"{text}:{size % 60:02}" if size % 60 else text


def note_of(cadence: Cadence, zone: Zone, wall: int, intent: int) -> str | None:
    """Say in plain words where a rule moved a slot: clamp, gap, overlap; None where it moved nothing."""
    words = []
    day = intent // DAY
    if cadence.short_month is ShortMonth.CLAMP and isinstance(cadence.day, int) and cadence.day > 28:
        first, length = month_span(month_of(day))
        if cadence.day > length:
            words.append(
                f"clamp: the month has no day {cadence.day}, so its last day, {first + length - first}, is used"
            )
    if wall != intent:
        words.append(
            f"gap: {_clock_text(intent)} does not exist on {_date_text(day)} (the clock goes forward), "
            f"so the first valid time after it is used"
        )
    elif zone.repeats(intent):
        words.append(
            f"overlap: {_clock_text(intent)} comes twice on {_date_text(day)} (the clock goes back), "
            f"so the earlier one is used"
        )
    return "; ".join(words) or None


def _clock_text(wall: int) -> str:
    clock = wall % DAY
    text = f"{clock // 3600:02}:{clock // 60 % 60:02}"
    return f"{text}:{clock % 60:02}" if clock % 60 else text


def _date_text(day: int) -> str:
    if FIRST_DAY <= day <= LAST_DAY:
        return date.fromordinal(day + EPOCH_ORDINAL).isoformat()
    # A zone can show the day beside the range of `date`, never more than that one.
    return "0000-12-31" if day < FIRST_DAY else "10000-01-01"
