"""A named holiday calendar: local dates on which a calendar cadence has no slot (CAD-9). Its record and its forms."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from gnomon.domain.agent_form import read_names
from gnomon.domain.form import Form
from gnomon.domain.instants import rfc3339

MOST_DATES = 5_000
_WRITTEN = ("slug", "name", "dates")
_READ_ONLY = ("id", "version", "created_at", "created_by", "updated_at")


@dataclass(frozen=True, slots=True)
class Calendar:
    """The record of one calendar; ``dates`` are sorted, each once; ``version`` is its ETag."""

    id: str
    slug: str
    name: str
    dates: tuple[date, ...]
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CalendarDraft:
    """A calendar as it was written."""

    slug: str
    name: str
    dates: tuple[date, ...]


def read(form: Form) -> CalendarDraft:
    """A calendar as far as it can be read; its faults are the form's."""
    form.only(_WRITTEN, _READ_ONLY)
    slug, name = read_names(form)
    found: set[date] = set()
    before = len(form.faults)
    texts = form.texts("dates", 0, MOST_DATES, 1, 64)
    if len(form.faults) == before:
        for index, text in enumerate(texts):
            day = _date(text)
            if day is None:
                form.fault(f"dates.{index}", "must be a date such as 2026-12-25")
            else:
                found.add(day)
    return CalendarDraft(slug, name, tuple(sorted(found)))


def to_written(calendar: Calendar) -> dict[str, Any]:
    """The written form of a record."""
    return {
        "slug": calendar.slug,
        "name": calendar.name,
        "dates": [day.isoformat() for day in calendar.dates],
    }


def to_json(calendar: Calendar) -> dict[str, Any]:
    """The read form."""
    return {
        "id": calendar.id,
        **to_written(calendar),
        "version": calendar.version,
        "created_at": rfc3339(calendar.created_at),
        "created_by": calendar.created_by,
        "updated_at": rfc3339(calendar.updated_at),
    }


def _date(text: str) -> date | None:
    try:
        day = date.fromisoformat(text) if len(text) == 10 and text.isascii() else None
    except ValueError:
        return None
    return day if day is not None and day.isoformat() == text else None
