"""Reading the fields of a written rule, one kind of value each; collects faults instead of stopping at the first.

Any JSON value whatever may stand in any field. Nothing here knows which fields belong together.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from gnomon.cadence.civil import zone_names
from gnomon.cadence.daily import WEEKDAYS
from gnomon.cadence.faults import Fault, shown

MOST_TIMES = 288  # one every five minutes
MOST_EXCLUDED = 1000
MOST_TEXT = 500

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_INSTANT = re.compile(_LOCAL.pattern + r"(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})")
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_FRACTION = re.compile(r"\.([0-9]+)")


class Reader:
    """One pass over a written rule: each method reads one field, and records what is wrong with it."""

    def __init__(self, given: Mapping[Any, Any]) -> None:
        self.given = given
        self.faults: list[Fault] = []

    def fault(self, field: str, message: str) -> None:
        """Record a fault."""
        self.faults.append(Fault(field, message))

    def refuse(self, field: str, wanted: str, value: Any) -> None:
        """Record that a field is not what is wanted, or, where it has no value, that it is missing."""
        self.fault(
            field, f"is required: {wanted}" if value is None else f"must be {wanted}, not {shown(value)}"
        )

    def only(self, allowed: Iterable[str], form: str) -> None:
        """Refuse every key that this form of rule does not have."""
        known = set(allowed)
        for key in self.given:
            if key not in known:
                near = get_close_matches(key[:MOST_TEXT], sorted(known), 1) if isinstance(key, str) else []
                hint = f"; did you mean {near[0]!r}?" if near else ""
                name = key if isinstance(key, str) and key.isidentifier() and key.isascii() else shown(key)
                self.fault(name, f"not a field of {form}{hint}")

    def integer(self, field: str, low: int, high: int, default: int | None = None) -> int | None:
        """Read a whole number in [low, high]."""
        value = self.given.get(field, default)
        if type(value) is not int or not low <= value <= high:
            self.fault(field, f"must be a whole number from {low} to {high}, not {shown(value)}")
            return None
        return value

    def choice(self, field: str, allowed: Iterable[Any], default: Any = None) -> Any:
        """Read one of a few values, told apart by type as well."""
        value = self.given.get(field, default)
        options = list(allowed)
        for option in options:
            if type(value) is type(option) and value == option:
                return option
        self.refuse(field, f"one of {', '.join(map(str, options))}", value)
        return None

    def text(self, field: str) -> str | None:
        """Read a line of text."""
        value = self.given.get(field)
        if not isinstance(value, str) or not value.isascii() or not 0 < len(value.strip()) <= MOST_TEXT:
            self.fault(field, f"must be plain text of at most {MOST_TEXT} characters, not {shown(value)}")
            return None
        return " ".join(value.split())

    def zone(self) -> str:
        """Read the zone; one that is unknown gets near names (CAD-11)."""
        value = self.given.get("zone", "UTC")
        if isinstance(value, str) and value in zone_names():
            return value
        if not isinstance(value, str):
            self.fault("zone", f"must be the name of an IANA zone, not {shown(value)}")
            return "UTC"
        near = near_zones(value)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        self.fault("zone", f"{shown(value)} is not an IANA zone{hint}")
        return "UTC"

    def times(self) -> tuple[str, ...]:
        """Read one time of day or a list of them (CAD-3): sorted, each once."""
        value = self.given.get("at")
        entries = value if isinstance(value, (list, tuple)) else [value]
        if not 0 < len(entries) <= MOST_TIMES:
            self.fault("at", f"must hold from 1 to {MOST_TIMES} times of day")
            return ()
        found = set()
        for index, entry in enumerate(entries):
            if isinstance(entry, str) and _CLOCK.fullmatch(entry):
                found.add(entry.removesuffix(":00") if len(entry) == 8 else entry)
            else:
                where = "at" if entries is not value else f"at.{index}"
                self.refuse(where, "a time of day, HH:MM or HH:MM:SS", entry)
        return tuple(sorted(found))

    def weekdays(self) -> tuple[str, ...]:
        """Read a non-empty list of weekdays (CAD-6): in the order of the week, each once."""
        value = self.given.get("days")
        if not isinstance(value, (list, tuple)) or not value:
            self.refuse("days", "a non-empty list of weekdays such as mon", value)
            return ()
        for index, entry in enumerate(value):
            if not (isinstance(entry, str) and entry in WEEKDAYS):
                self.refuse(f"days.{index}", f"one of {', '.join(WEEKDAYS)}", entry)
        return tuple(day for day in WEEKDAYS if day in value)

    def moment(self) -> tuple[str, ...]:
        """Read the local date and time of `once`."""
        value = self.given.get("at")
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if isinstance(value, datetime) and value.tzinfo is None:
            value = value.replace(microsecond=0).isoformat()
        if isinstance(value, str) and _LOCAL.fullmatch(value):
            try:
                return (datetime.fromisoformat(value).isoformat(),)
            except ValueError:
                pass
        self.refuse("at", "a local date and time, YYYY-MM-DDTHH:MM:SS without offset", value)
        return ()

    def anchor(self) -> datetime | None:
        """Read the anchor, an instant, cut to the whole minute (CAD-2)."""
        if "anchor" not in self.given:
            return None
        value = self.given["anchor"]
        found = value if isinstance(value, datetime) else instant(value)
        if found is not None and found.tzinfo is not None:
            try:
                return found.astimezone(UTC).replace(second=0, microsecond=0)
            except OverflowError:
                pass
        self.fault("anchor", f"must be an instant such as 2026-01-31T09:00:00Z, not {shown(value)}")
        return None

    def excluded(self) -> tuple[date, ...]:
        """Read the list of left-out local dates: sorted, each once."""
        value = self.given.get("exclude", [])
        if not isinstance(value, (list, tuple)) or len(value) > MOST_EXCLUDED:
            self.fault("exclude", f"must be a list of at most {MOST_EXCLUDED} dates, not {shown(value)}")
            return ()
        found = set()
        for index, entry in enumerate(value):
            if type(entry) is date:
                found.add(entry)
                continue
            try:
                if not _DATE.fullmatch(entry):
                    raise ValueError(entry)  # noqa: TRY301 - one way out for a bad form and a bad date
                found.add(date.fromisoformat(entry))
            except (TypeError, ValueError):
                self.fault(f"exclude.{index}", f"must be a date, YYYY-MM-DD, not {shown(entry)}")
        return tuple(sorted(found))

    def calendar(self) -> str | None:
        """Read the slug of a holiday calendar."""
        if "calendar" not in self.given:
            return None
        value = self.given["calendar"]
        if isinstance(value, str) and _SLUG.fullmatch(value):
            return value
        self.fault("calendar", f"must be the slug of a calendar, not {shown(value)}")
        return None


def instant(value: Any) -> datetime | None:
    """Read an RFC 3339 instant (seconds may be left out); None for anything else."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return None
    padded = _FRACTION.sub(lambda match: "." + match[1].ljust(6, "0"), value)
    try:
        return datetime.fromisoformat(padded)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def seconds_of(clock: str) -> int:
    """Turn HH:MM or HH:MM:SS into seconds since midnight."""
    return int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + int(clock[6:8] or 0)


def near_zones(name: str) -> list[str]:
    """Give up to three zone names close to a wrong one: by case, by city, by spelling (CAD-11)."""
    wanted = name.strip()[:40].replace(" ", "_").casefold()
    # Etc/GMT+2 lies two hours behind UTC: whoever writes GMT+2 almost never means it.
    folded = {zone.casefold(): zone for zone in sorted(zone_names()) if not zone.startswith("Etc/GMT")}
    if wanted in folded:
        return [folded[wanted]]
    cities = [zone for key, zone in folded.items() if key.rpartition("/")[2] == wanted.rpartition("/")[2]]
    close = [folded[key] for key in get_close_matches(wanted, folded, 3, 0.7)]
    return list(dict.fromkeys(cities + close))[:3]
