"""Reading the fields of a written JSON object one by one, every fault kept with its field instead of only the first.

Any JSON value may stand in any field. Nothing here knows which fields belong together, nor where the object came from.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar

from gnomon.cadence.fields import instant as read_instant
from gnomon.domain.errors import Fault

E = TypeVar("E", bound=StrEnum)
_SHOWN = 60


def shown(value: object) -> str:
    """A value as a message quotes it: short and plain ASCII, whatever it holds."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    if value is None:
        return "null"
    text = ascii(value) if not isinstance(value, int) or abs(value) < 10**18 else "a number of many digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def text_fault(value: str) -> str | None:
    """Why a text can't be kept: a NUL or half a character is refused by one engine or the other."""
    if "\x00" in value:
        return "must not hold the character U+0000"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "holds half a character (a lone surrogate)"
    return None


class FieldReader:
    """One pass over a written object: each method reads one field; an absent or null one is its default."""

    def __init__(self, given: Mapping[Any, Any], prefix: str = "") -> None:
        self._given = given
        self._prefix = prefix
        self.faults: list[Fault] = []

    def fault(self, field: str, message: str) -> None:
        """Keep a fault of a field of this object."""
        self.faults.append(Fault(self._prefix + field, message))

    def only(self, allowed: Iterable[str], refused: Mapping[str, str]) -> None:
        """A fault for every field that is not allowed; ``refused`` says of some names why."""
        known = set(allowed)
        for key in self._given:
            if key in known:
                continue
            name = key if isinstance(key, str) and key.isidentifier() and key.isascii() else shown(key)
            if key in refused:
                self.fault(name, refused[key])
                continue
            near = get_close_matches(str(key)[:100], sorted(known), 1)
            self.fault(
                name, f"is not a field here; did you mean {near[0]}?" if near else "is not a field here"
            )

    def get(self, field: str) -> Any:
        """The raw value, ``None`` where there is none."""
        return self._given.get(field)

    def integer(self, field: str, bounds: tuple[int, int], default: int) -> int:
        """A whole number within bounds."""
        found = self.maybe_integer(field, bounds)
        return default if found is None else found

    def maybe_integer(self, field: str, bounds: tuple[int, int]) -> int | None:
        """A whole number within bounds, or nothing."""
        value = self._given.get(field)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if type(value) is not int or not bounds[0] <= value <= bounds[1]:
            self.fault(
                field, f"must be a whole number from {bounds[0]:,} to {bounds[1]:,}, not {shown(value)}"
            )
            return None
        return value

    def text(self, field: str, lengths: tuple[int, int], default: str = "") -> str:
        """Text of so many characters."""
        found = self.maybe_text(field, lengths)
        if found is None and self._given.get(field) is None and not lengths[0] <= len(default) <= lengths[1]:
            self.fault(field, "is needed")
        return default if found is None else found

    def maybe_text(self, field: str, lengths: tuple[int, int]) -> str | None:
        """Text of so many characters, or nothing."""
        value = self._given.get(field)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault(field, f"must be text, not {shown(value)}")
            return None
        if not lengths[0] <= len(value) <= lengths[1]:
            self.fault(
                field, f"must have from {lengths[0]:,} to {lengths[1]:,} characters, not {len(value):,}"
            )
            return None
        why = text_fault(value)
        if why is not None:
            self.fault(field, why)
            return None
        return value

    def choice(self, field: str, kind: type[E], default: E) -> E:
        """One of the values of an enumeration."""
        value = self._given.get(field)
        if value is None:
            return default
        if not isinstance(value, str) or value not in {member.value for member in kind}:
            self.fault(field, f"must be one of {', '.join(kind)}, not {shown(value)}")
            return default
        return kind(value)

    def maybe_instant(self, field: str) -> datetime | None:
        """An RFC 3339 instant with an offset, in UTC, or nothing."""
        value = self._given.get(field)
        if value is None:
            return None
        found = value if isinstance(value, datetime) else read_instant(value)
        if found is not None and found.tzinfo is not None:
            try:
                return found.astimezone(UTC)
            except OverflowError:
                pass
        self.fault(field, f"must be an instant such as 2026-01-31T09:00:00Z, not {shown(value)}")
        return None
