"""Wall-clock times as people type and read them: one slot of a schedule, an instant in the zone of a rule (CAD-3, CAD-4).

What a clock change makes of a time is told, never guessed in silence. This module must not know any noun.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gnomon.cli.command import Usage
from gnomon.cli.terminal import shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?")


def wall(text: str) -> datetime | None:
    """A date and a time of day without an offset, as 2027-01-05T09:00, with T or a space; ``None`` where it is none."""
    text = text.strip()
    try:
        found = datetime.fromisoformat(text) if _LOCAL.fullmatch(text) else None
    except ValueError:
        return None
    return found if found is not None and 1970 <= found.year <= 9998 else None


def once(text: str, zone: str | None) -> dict[str, Any]:
    """The cadence of one slot: at a time of the zone's wall clock, or at an instant with its offset.

    Raises:
        Usage: it is neither, or says an offset beside a zone.
    """
    from gnomon.domain.form import read_instant

    local = wall(text)
    if local is not None:
        return {"unit": "once", "at": local.isoformat()} | ({} if zone is None else {"zone": zone})
    try:
        instant = read_instant(text.strip().replace(" ", "T", 1))
    except ValueError:
        instant = None
    if instant is None or instant.microsecond:
        raise Usage(
            f'--at: "{text}" is no date with a time. Write it as 2027-01-05T09:00, its zone with --zone.'
        )
    if zone is not None:
        raise Usage(f'--at: "{text}" has an offset already: leave out that, or --zone.')
    return {"unit": "once", "at": instant.replace(tzinfo=None).isoformat(), "zone": "UTC"}


@dataclass(frozen=True, slots=True)
class Read:
    """A time of a zone's wall clock as the instant that it means, with a sentence that tells so."""

    at: datetime
    local_time: str
    zone: str
    moved: bool  # a clock change made something else of it, or left two readings
    sentence: str

    def as_json(self) -> dict[str, Any]:
        """The same for programs; ``note`` where the clock change had a say."""
        note = self.sentence if self.moved else None
        return {"local_time": self.local_time, "zone": self.zone, "note": note}


def read(local: datetime, zone: str) -> Read:
    """The instant of a wall-clock time, as a cadence means it (CAD-4): the earlier of two, the first one after a gap.

    Raises:
        KeyError: there is no such zone here.
    """
    from gnomon.cadence.civil import zone_named

    clock = zone_named(zone)
    seconds = (local.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    readings = clock.readings(seconds)
    at = clock.resolve(seconds)
    meant, day, time = _text(at), local.date(), local.time()
    if len(readings) > 1:
        sentence = (
            f"{time} comes twice on {day} in {zone} (the clock goes back). This is the earlier one, {meant}; the later "
            f"one is {_text(readings[-1])}."
        )
    elif not readings:
        sentence = (
            f"{time} does not exist on {day} in {zone} (the clock goes forward). This is the first instant after it, "
            f"{meant}."
        )
    else:
        sentence = f"{day} {time} in {zone} is {meant}."
    return Read(EPOCH + timedelta(seconds=at), local.isoformat(), zone, len(readings) != 1, sentence)


def moved(cadence: Mapping[str, Any]) -> str | None:
    """What a clock change makes of a cadence of one slot, in a sentence, if anything."""
    if cadence.get("unit") != "once":
        return None
    try:
        found = read(datetime.fromisoformat(cadence["at"]), cadence.get("zone") or "UTC")
    except (KeyError, ValueError):  # this machine's zone data are older than the server's
        return None
    return found.sentence if found.moved else None


def with_local(instant: str | None, cadence: Mapping[str, Any]) -> str | None:
    """An instant of a schedule for people, beside it what the clock of its cadence's zone shows then."""
    from gnomon.cadence.civil import zone_named
    from gnomon.domain.form import read_instant

    zone = cadence.get("zone") or "UTC"
    if instant is None or zone == "UTC":
        return instant
    try:
        seconds = (read_instant(instant) - EPOCH) // timedelta(seconds=1)
        local = EPOCH + timedelta(seconds=seconds + zone_named(zone).window(seconds).offset)
    except (KeyError, ValueError):  # this machine's zone data are older than the server's
        return instant
    return f"{shown(instant)} ({local:%Y-%m-%d %H:%M:%S} in {zone})"


def _text(seconds: int) -> str:
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}Z"
