"""Holiday calendars: written, found by id or slug, paged. One method per query of ``sql/calendars.sql``."""

import json
from datetime import date

from gnomon.domain.calendar import Calendar
from gnomon.domain.instants import from_micros
from gnomon.stores.database import Row, Tx


async def insert(tx: Tx, calendar: Calendar) -> Calendar:
    """Insert a calendar; the record as it stands, its instants by the database's clock.

    Raises:
        UniqueViolation: its slug is taken.
    """
    row = await tx.one(
        "calendars.insert",
        id=calendar.id,
        slug=calendar.slug,
        name=calendar.name,
        dates=_dates(calendar),
        created_by=calendar.created_by,
    )
    assert row is not None
    return _calendar(row)


async def find(tx: Tx, name: str) -> Calendar | None:
    """The calendar of this id or slug."""
    row = await tx.one("calendars.find", name=name)
    return None if row is None else _calendar(row)


async def page(tx: Tx, after: str, limit: int) -> list[Calendar]:
    """Calendars in the order of their making, after an id."""
    return [_calendar(row) for row in await tx.all("calendars.page", after=after, limit=limit)]


async def update(tx: Tx, calendar: Calendar) -> Calendar | None:
    """Write name and dates, if the version is still the record's; the record as it stands then."""
    row = await tx.one(
        "calendars.update",
        id=calendar.id,
        name=calendar.name,
        dates=_dates(calendar),
        version=calendar.version,
    )
    return None if row is None else _calendar(row)


async def users(tx: Tx, slug: str, limit: int) -> list[str]:
    """The ids of schedules and jobs that use a calendar."""
    return [row["id"] for row in await tx.all("calendars.users", slug=slug, limit=limit)]


async def delete(tx: Tx, calendar_id: str) -> None:
    """Delete a calendar."""
    await tx.run("calendars.delete", id=calendar_id)


def _dates(calendar: Calendar) -> str:
    return json.dumps([day.isoformat() for day in calendar.dates])


def _calendar(row: Row) -> Calendar:
    return Calendar(
        id=row["id"],
        slug=row["slug"],
        name=row["name"],
        dates=tuple(date.fromisoformat(day) for day in json.loads(row["dates"])),
        version=row["version"],
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
    )
