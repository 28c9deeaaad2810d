"""The questions one asks of a cadence, in datetimes: the slot after, the slot at or before, a range, a preview.

Every function takes the reference instant as an argument; instants in and out are aware datetimes, the ones out
in UTC. `anchor` is the instant from which phases count and before which no slot lies (CAD-2, CAD-5); the rule's
own anchor wins over it, and `once` has no use for one. With no anchor at all, counting goes through 1970-01-01
UTC in both directions. `holidays` are the local dates of the calendar that the rule names.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gnomon.cadence.civil import EPOCH, MICRO
from gnomon.cadence.compiled import Compiled, micros_of
from gnomon.cadence.notes import Slot, Teller
from gnomon.cadence.rule import Cadence

_NONE: frozenset[date] = frozenset()


@dataclass(frozen=True, slots=True)
class SlotRange:
    """A run of slots told by its ends and its length."""

    first: datetime
    last: datetime
    count: int


def next_after(
    cadence: Cadence,
    instant: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> datetime | None:
    """Give the first slot strictly after an instant, or None (CAD-8)."""
    return _instant(_compiled(cadence, anchor, holidays).next_after(micros_of(instant)))


def latest_at(
    cadence: Cadence,
    instant: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> datetime | None:
    """Give the last slot at or before an instant, or None."""
    return _instant(_compiled(cadence, anchor, holidays).latest_at(micros_of(instant)))


def is_slot(
    cadence: Cadence,
    instant: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> bool:
    """Tell whether an instant is a slot of the rule."""
    micros = micros_of(instant)
    return _compiled(cadence, anchor, holidays).latest_at(micros) == micros


def between(
    cadence: Cadence,
    start: datetime,
    end: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> Iterator[datetime]:
    """Give the slots in [start, end), in order, as they are asked for (CAD-8)."""
    return _walk(_compiled(cadence, anchor, holidays), micros_of(start), micros_of(end))


def count_between(
    cadence: Cadence,
    start: datetime,
    end: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> SlotRange | None:
    """Give the first, the last and the number of the slots in [start, end) without walking them; None if empty."""
    found = _compiled(cadence, anchor, holidays).count_between(micros_of(start), micros_of(end))
    if found is None:
        return None
    first, last, count = found
    return SlotRange(_datetime(first), _datetime(last), count)


def preview(
    cadence: Cadence,
    after: datetime,
    count: int,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> list[Slot]:
    """Give up to `count` slots strictly after an instant, each with its wall time and its note (CAD-8)."""
    rule = _compiled(cadence, anchor, holidays)
    teller = Teller(cadence, rule)
    found = rule.next_after(micros_of(after))
    slots: list[Slot] = []
    while found is not None and len(slots) < count:
        slots.append(teller.slot(found))
        found = rule.next_after(found)
    return slots


def describe(
    cadence: Cadence,
    instant: datetime,
    *,
    anchor: datetime | None = None,
    holidays: AbstractSet[date] = _NONE,
) -> Slot | None:
    """Tell one slot as a preview would; None for an instant that is no slot (CAD-8)."""
    micros, rule = micros_of(instant), _compiled(cadence, anchor, holidays)
    return Teller(cadence, rule).slot(micros) if rule.latest_at(micros) == micros else None


def _walk(rule: Compiled, start: int, end: int) -> Iterator[datetime]:
    found = rule.next_after(start - 1)
    while found is not None and found < end:
        yield _datetime(found)
        found = rule.next_after(found)


def _compiled(cadence: Cadence, anchor: datetime | None, holidays: AbstractSet[date]) -> Compiled:
    return cadence.compile(None if anchor is None else micros_of(anchor), holidays)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else _datetime(micros)


def _datetime(micros: int) -> datetime:
    return EPOCH + timedelta(0, micros // MICRO)
