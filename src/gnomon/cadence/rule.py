"""The record of a cadence: written, checked, stored, read back, compiled.

Pure data. It must not know the instant it is asked about.
"""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Literal, Self

from gnomon.cadence import parsing
from gnomon.cadence.compiled import Compiled, compiled
from gnomon.cadence.faults import CadenceError, Fault, shown
from gnomon.cadence.parsing import ShortMonth, Unit

_CHECKED = frozenset({"anchor", "exclude", "calendar", Unit.CRON.value, Unit.RRULE.value})
_decode = json.JSONDecoder().raw_decode
_UNITS = {unit.value: unit for unit in Unit}
_SHORT_MONTHS: dict[str | None, ShortMonth | None] = {None: None} | {kind.value: kind for kind in ShortMonth}


@dataclass(frozen=True, slots=True)
class Cadence:
    """The rule that yields instants (CAD-1 to CAD-6, CAD-9). Build it with `parse`; fields are canonical.

    `at` holds times of day (HH:MM, or HH:MM:SS where there are seconds), for `once` one local date and time;
    `days` weekdays from `mon` to `sun`; `day` a number or `last`; `text` the cron or RRULE text.
    """

    unit: Unit
    every: int = 1
    at: tuple[str, ...] = ()
    zone: str = "UTC"
    days: tuple[str, ...] = ()
    day: int | Literal["last"] | None = None
    short_month: ShortMonth | None = None
    weekday: str | None = None
    nth: int | None = None
    text: str | None = None
    anchor: datetime | None = None
    exclude: tuple[date, ...] = ()
    calendar: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Check a written rule, in any form of the contract; CadenceError with all its faults at once."""
        return cls(**parsing.read(given))

    @staticmethod
    def from_stored(stored: str | Mapping[str, Any]) -> "Cadence":
        """Read back what `to_json` gave, as text or as a mapping.

        It is trusted, which saves most of the time; what can't have come from `to_json` raises CadenceError, here or
        when the rule is compiled. A text that was read before is not read again.
        """
        return _stored_text(stored) if isinstance(stored, str) else _stored(stored)

    @property
    def rolling(self) -> bool:
        """Tell whether slots follow elapsed time (CAD-2) instead of the wall clock (CAD-3)."""
        return self.unit in {Unit.MINUTE, Unit.HOUR}

    def to_json(self) -> dict[str, Any]:
        """Give the rule in its canonical form, defaults filled in; `parse` reads it back as an equal rule."""
        found: dict[str, Any] = {}
        if self.text is not None:
            found[self.unit.value] = self.text
        else:
            found |= {"unit": self.unit.value, "every": self.every}
        if self.days:
            found["days"] = list(self.days)
        for field in ("day", "short_month", "weekday", "nth"):
            value = getattr(self, field)
            if value is not None:
                found[field] = str(value) if isinstance(value, str) else value
        if self.at:
            found["at"] = self.at[0] if self.unit is Unit.ONCE else list(self.at)
        found["zone"] = self.zone
        if self.anchor is not None:
            found["anchor"] = self.anchor.isoformat().replace("+00:00", "Z")
        if self.exclude:
            found["exclude"] = [day.isoformat() for day in self.exclude]
        if self.calendar is not None:
            found["calendar"] = self.calendar
        return found

    def compile(self, anchor_us: int | None = None, holidays: AbstractSet[date] = frozenset()) -> Compiled:
        """Give the rule ready to be asked, in integers of microseconds UTC; kept in a cache.

        The rule's own anchor wins over `anchor_us`; `holidays` are the local dates of its calendar.
        """
        left_out = frozenset(holidays)
        try:
            return _compiled(self, anchor_us, left_out)
        except CadenceError:
            raise
        except (LookupError, TypeError, ValueError):
            raise CadenceError((Fault("", "not a cadence that parse would have accepted"),)) from None


_compiled = lru_cache(maxsize=4096)(compiled)


@lru_cache(maxsize=4096)
def _stored_text(text: str) -> Cadence:
    text = text.strip()
    try:
        given, end = _decode(text)
    except (ValueError, RecursionError):
        given, end = None, 0
    return _stored(given if end == len(text) else None)


def _stored(given: Any) -> Cadence:
    try:
        if not _CHECKED.isdisjoint(given):
            return Cadence.parse(given)
        get, every = given.get, given["every"]
        unit, at = _UNITS[given["unit"]], get("at", ())
        if type(every) is not int or every < 1:
            raise ValueError(every)  # noqa: TRY301 - one way out for whatever is wrong
        return Cadence(
            unit,
            every,
            (at,) if isinstance(at, str) else tuple(at),
            given["zone"],
            tuple(get("days", ())),
            get("day"),
            _SHORT_MONTHS[get("short_month")],
            get("weekday"),
            get("nth"),
        )
    except CadenceError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError):
        raise CadenceError((Fault("", f"not a stored cadence: {shown(given)}"),)) from None
