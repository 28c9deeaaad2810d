"""Reading a written record: one pass over a JSON object, one method for each kind of value, every fault collected.

Any JSON value may stand in any field; a wrong one costs a fault and reads as ``None``, so that one answer lists all
that is wrong. Values are never quoted in a message: they may be secrets. Must not know what the fields mean.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.ids import is_slug

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_AN_INSTANT = "an instant such as 2026-11-29T09:00:00Z"
_SLUG_RULE = 'must be 1 to 64 of a-z, 0-9, "-" and "_", beginning and ending with a letter or digit'


class Form:
    """The fields of one object. ``path`` stands before each field's name in a fault; faults may be shared."""

    def __init__(self, given: Mapping[str, Any], path: str = "", faults: list[Fault] | None = None) -> None:
        self.given = given
        self.path = path
        self.faults: list[Fault] = [] if faults is None else faults

    def fault(self, field: str, message: str) -> None:
        """Record what is wrong with a field; the empty name is the object itself."""
        self.faults.append(Fault(f"{self.path}{field}" if field else self.path.rstrip("."), message))

    def finish(self) -> None:
        """Raise what was found.

        Raises:
            Invalid: with every fault.
        """
        if self.faults:
            raise Invalid(self.faults)

    def only(self, allowed: Collection[str], set_by_us: Collection[str] = ()) -> None:
        """Refuse every other field; those in ``set_by_us`` are read and never written."""
        for name in self.given:
            if name in allowed:
                continue
            if name in set_by_us:
                self.fault(name, "is set by the centre and can't be written")
                continue
            near = get_close_matches(name[:64], sorted(allowed), 1)
            self.fault(name[:64], "is not a known field" + (f'; did you mean "{near[0]}"?' if near else ""))

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self.given.get(field) is not None

    def text(
        self,
        field: str,
        low: int,
        high: int,
        *,
        required: bool = False,
        default: str | None = None,
        line: bool = True,
    ) -> str | None:
        """Text of ``low`` to ``high`` characters; a ``line`` holds no control character."""
        value: str | None = self._typed(field, (str,), "text", required=required)
        if value is None:
            return default
        if not low <= len(value) <= high:
            self.fault(field, f"must have {low} to {high:,} characters, not {len(value):,}")
            return None
        if low and not value.strip():
            self.fault(field, "must not be blank")
            return None
        if line and any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029" for c in value):
            self.fault(field, "must be one line without control characters")
            return None
        return value

    def slug(self, field: str, *, required: bool = False) -> str | None:
        """A slug (CONTRACT, forms)."""
        value: str | None = self._typed(field, (str,), "text", required=required)
        if value is None:
            return None
        if not is_slug(value):
            self.fault(field, f"{_SLUG_RULE}, and not in the form of an id")
            return None
        return value

    def integer(
        self, field: str, low: int, high: int, *, required: bool = False, default: int | None = None
    ) -> int | None:
        """A whole number in [low, high]; neither true nor 5.0 nor "5" is one."""
        value: int | None = self._typed(field, (int,), "a whole number", required=required)
        if value is None:
            return default
        if not low <= value <= high:
            self.fault(field, f"must be a whole number from {low:,} to {high:,}")
            return None
        return value

    def number(
        self, field: str, low: float, high: float, *, required: bool = False, default: float | None = None
    ) -> float | None:
        """A number in [low, high]."""
        value: float | None = self._typed(field, (int, float), "a number", required=required)
        if value is None:
            return default
        if not low <= value <= high:
            self.fault(field, f"must be a number from {low:g} to {high:g}")
            return None
        return float(value)

    def boolean(self, field: str, *, default: bool) -> bool:
        """True or false."""
        value: bool | None = self._typed(field, (bool,), "true or false")
        return default if value is None else value

    def choice(
        self, field: str, allowed: Collection[str], *, required: bool = False, default: str | None = None
    ) -> str | None:
        """One of a few words."""
        value: str | None = self._typed(field, (str,), f"one of {', '.join(allowed)}", required=required)
        if value is None:
            return default
        if value not in allowed:
            self.fault(field, f"must be one of {', '.join(allowed)}")
            return None
        return value

    def instant(self, field: str, *, required: bool = False) -> datetime | None:
        """An instant in RFC 3339 with an offset, up to microseconds; given back in UTC."""
        value: str | None = self._typed(field, (str,), _AN_INSTANT, required=required)
        if value is None:
            return None
        try:
            return read_instant(value)
        except ValueError:
            self.fault(field, f"must be {_AN_INSTANT}, from 1970 to 9998")
            return None

    def part(self, field: str, *, required: bool = False) -> "Form | None":
        """A nested object, read by the same rules; its faults come to this form."""
        value: dict[str, Any] | None = self._typed(field, (dict,), "an object", required=required)
        return None if value is None else Form(value, f"{self.path}{field}.", self.faults)

    def objects(self, field: str, low: int, high: int, *, required: bool = False) -> Iterator["Form"]:
        """A list of objects, each read by the same rules at ``field.0``, ``field.1`` and so on."""
        for index, value in enumerate(self._list(field, low, high, required=required) or ()):
            name = f"{field}.{index}"
            if isinstance(value, dict):
                yield Form(value, f"{self.path}{name}.", self.faults)
            else:
                self.fault(name, f"must be an object, not {_kind_of(value)}")

    def texts(
        self,
        field: str,
        low: int,
        high: int,
        shortest: int,
        longest: int,
        *,
        required: bool = False,
        line: bool = True,
    ) -> tuple[str, ...]:
        """A list of texts."""
        values = self._list(field, low, high, required=required) or []
        inner = Form({str(n): value for n, value in enumerate(values)}, f"{self.path}{field}.", self.faults)
        found = [inner.text(name, shortest, longest, required=True, line=line) for name in inner.given]
        return tuple(text for text in found if text is not None)

    def mapping(self, field: str, high: int, longest: int, *, line: bool = True) -> dict[str, str]:
        """An object of texts: names of 1 to 200 characters, values up to ``longest``."""
        inner = self.part(field)
        if inner is None:
            return {}
        if len(inner.given) > high:
            self.fault(field, f"must have at most {high} entries")
            return {}
        found: dict[str, str] = {}
        for name in inner.given:
            if not 0 < len(name) <= 200:
                self.fault(field, "has a name that is empty or longer than 200 characters")
                continue
            text = inner.text(name, 0, longest, required=True, line=line)
            if text is not None:
                found[name] = text
        return found

    def _list(self, field: str, low: int, high: int, *, required: bool) -> list[Any] | None:
        value: list[Any] | None = self._typed(field, (list,), "a list", required=required)
        if value is None:
            return None
        if not low <= len(value) <= high:
            self.fault(field, f"must have {low} to {high:,} entries, not {len(value):,}")
            return None
        return value

    def has_fault(self, path: str) -> bool:
        """Whether something is wrong already with the field of this path from the root, or within it."""
        return any(f"{fault.field}.".startswith(f"{path}.") for fault in self.faults)

    def _typed(self, field: str, kinds: tuple[type, ...], wanted: str, *, required: bool = False) -> Any:
        """The value where its type is exactly one of ``kinds``; a missing or null one reads as ``None``."""
        value = self.given.get(field)
        if value is None:
            if required:
                self.fault(field, "is required")
            return None
        if type(value) not in kinds:
            self.fault(field, f"must be {wanted}, not {_kind_of(value)}")
            return None
        return value


def read_instant(text: str) -> datetime:
    """The instant of an RFC 3339 text, in UTC.

    Raises:
        ValueError: it is none, has no offset, or lies outside 1970 to 9998.
    """
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    found = datetime.fromisoformat(text)
    if not 1970 <= found.year <= 9998:
        raise ValueError(text)
    found = found.astimezone(UTC)
    if found.year < 1970:
        raise ValueError(text)
    return found


def merged(current: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A written form with a patch laid over it: a field replaces what stands, null takes it back to its default.

    Objects are merged field by field (``limits``), but for those that say their kind (``runtime``): they are replaced
    whole.
    """
    found = {**current, **given}
    for name, value in given.items():
        old = current.get(name)
        if isinstance(value, dict) and isinstance(old, dict) and "kind" not in old:
            found[name] = {**old, **value}
    return found


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "a number with a fraction or an exponent"
    if isinstance(value, int):
        return "a number"
    kinds: dict[type, str] = {str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")
