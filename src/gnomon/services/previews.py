"""The next slots of a cadence that nobody has saved, by the dispatcher's own arithmetic (CAD-8, UI-2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from gnomon.cadence import Cadence, CadenceError, Slot, preview
from gnomon.domain.form import Form
from gnomon.domain.instants import from_micros
from gnomon.domain.schedule import MAX_RUNS
from gnomon.stores import processes, slots
from gnomon.stores.database import Database, Tx

COUNT = (1, 1_000)
COUNT_DEFAULT = 5
_FIELDS = ("cadence", "after", "count", "anchor", "starts_at", "ends_at", "max_runs")
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for; the cadence is missing only where the form has a fault."""

    cadence: Cadence | None
    after: datetime
    count: int
    anchor: datetime
    starts_at: datetime | None
    ends_at: datetime | None


class Previews:
    """Previews over the calendars of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def preview(self, given: Mapping[str, Any]) -> list[Slot]:
        """Up to ``count`` slots after ``after`` inside the window; ``after`` is now and the anchor is ``after`` by default.

        Raises:
            Invalid: with every fault.
        """

        async def work(tx: Tx) -> list[Slot]:
            form = Form(given)
            asked = _read(form, from_micros(await processes.now(tx)))
            holidays: frozenset[date] = frozenset()
            if asked.cadence is not None and asked.cadence.calendar is not None:
                slug = asked.cadence.calendar
                found = await slots.holidays(tx, [slug])
                if slug not in found:
                    form.fault("cadence.calendar", f'there is no calendar "{slug}"')
                holidays = found.get(slug, holidays)
            form.finish()
            return _slots(asked, holidays)

        return await self._database.read(work)


def _read(form: Form, now: datetime) -> _Asked:
    form.only(_FIELDS)
    after = form.instant("after") or now
    anchor = form.instant("anchor") or after
    most = form.integer("max_runs", *MAX_RUNS)
    asked = _Asked(
        cadence=_cadence(form),
        after=after,
        count=form.integer("count", *COUNT, default=COUNT_DEFAULT) or COUNT_DEFAULT,
        anchor=anchor.replace(second=0, microsecond=0),
        starts_at=form.instant("starts_at"),
        ends_at=form.instant("ends_at"),
    )
    if asked.starts_at is not None and asked.ends_at is not None and asked.ends_at < asked.starts_at:
        form.fault("ends_at", "must not lie before starts_at")
    if most is None:
        return asked
    return _Asked(
        asked.cadence, asked.after, min(most, asked.count), asked.anchor, asked.starts_at, asked.ends_at
    )


def _cadence(form: Form) -> Cadence | None:
    inner = form.part("cadence", required=True)
    if inner is None:
        return None
    try:
        return Cadence.parse(inner.given)
    except CadenceError as error:
        for fault in error.faults:
            inner.fault(fault.field, fault.message)
        return None


def _slots(asked: _Asked, holidays: frozenset[date]) -> list[Slot]:
    assert asked.cadence is not None
    begin = asked.after if asked.starts_at is None else max(asked.after, asked.starts_at - _INSTANT)
    found = preview(asked.cadence, begin, asked.count, anchor=asked.anchor, holidays=holidays)
    return [slot for slot in found if asked.ends_at is None or slot.at <= asked.ends_at]
