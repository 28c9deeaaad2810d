"""The overview's day and week, its bound, and usage in its window (UI-1)."""

from datetime import UTC, datetime, timedelta

import pytest

from gnomon.domain.errors import Invalid
from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import from_micros, to_micros
from gnomon.domain.usage import Grouping
from gnomon.services import overview
from gnomon.services.overview import Overview, starts
from gnomon.services.usage import DAYS_MOST, Usage
from gnomon.stores.database import Database
from support.databases import START
from support.rows import AT, RUN, SECOND, add_many

pytestmark = pytest.mark.anyio
DAY = 86_400 * SECOND
BY_DAY = Grouping.of({"day"})


@pytest.mark.parametrize(
    ("at", "zone", "today", "week"),
    [
        ("2026-11-29T09:00:00", "UTC", "2026-11-29T00:00:00", "2026-11-23T00:00:00"),
        ("2026-11-30T00:00:00", "UTC", "2026-11-30T00:00:00", "2026-11-30T00:00:00"),
        # Monday already, in Kiritimati
        ("2026-11-29T11:00:00", "Pacific/Kiritimati", "2026-11-29T10:00:00", "2026-11-29T10:00:00"),
        # the clock went back on this Sunday in Berlin: the day is 25 hours long, its week began in summer time
        ("2026-10-25T22:30:00", "Europe/Berlin", "2026-10-24T22:00:00", "2026-10-18T22:00:00"),
        # Nuuk's clock goes forward from 23:00 to 24:00: the next day begins in the gap's end
        ("2026-03-29T05:00:00", "America/Nuuk", "2026-03-29T01:00:00", "2026-03-23T02:00:00"),
        ("1970-01-01T00:00:00", "UTC", "1970-01-01T00:00:00", "1969-12-29T00:00:00"),
    ],
)
def test_a_day_and_a_week_begin_where_the_zone_has_them(at: str, zone: str, today: str, week: str) -> None:
    """UI-1, CAD-4."""
    now = to_micros(datetime.fromisoformat(at).replace(tzinfo=UTC))
    found = [from_micros(micros).replace(tzinfo=None).isoformat() for micros in starts(now, zone)]
    assert found == [today, week]


async def test_a_zone_that_is_none_is_refused(database: Database) -> None:
    """OPS-8."""
    with pytest.raises(Invalid) as caught:
        await Overview(database, 120).numbers("Europe/Berln")
    assert [fault.field for fault in caught.value.faults] == ["zone"]


async def test_where_more_than_the_bound_may_have_ended_it_is_said(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-1: a look costs no more than so many rows."""
    monkeypatch.setattr(overview, "MOST", 3)
    rows = [
        {
            **RUN,
            "id": make_id(Kind.RUN, AT // 1_000, n),
            "status": status,
            "claimable_at": None,
            "finished_at": AT,
        }
        for n, status in enumerate(("succeeded", "failed"))
    ]
    await add_many(database, "runs", rows)
    numbers = await Overview(database, 120).numbers()
    assert (numbers.runs.well_this_week, numbers.runs.failed_today, numbers.runs.at_least) == (1, 1, False)
    await add_many(database, "runs", [{**rows[0], "id": make_id(Kind.RUN, AT // 1_000, 9)}])
    numbers = await Overview(database, 120).numbers()
    assert (numbers.runs.well_this_week, numbers.runs.at_least) == (2, True)


async def test_usage_ends_now_and_begins_thirty_days_before(database: Database) -> None:
    """UI-1: what ended at this very instant counts."""
    ends = (AT, AT - 30 * DAY + 1, AT - 30 * DAY)
    rows = [
        {
            **RUN,
            "id": make_id(Kind.RUN, at // 1_000, n),
            "status": "succeeded",
            "claimable_at": None,
            "finished_at": at,
            "model_calls": 2,
        }
        for n, at in enumerate(ends)
    ]
    await add_many(database, "runs", rows)
    found = await Usage(database).spent(None, None, BY_DAY, 0, 9)
    assert [used.usage.model_calls for used in found.items] == [2, 2]
    assert (found.total.runs, found.total.usage.model_calls, found.total.day) == (2, 4, None)
    assert found.items[-1].day == START.date()
    nothing = await Usage(database).spent(START + timedelta(days=1), START + timedelta(days=2), BY_DAY, 0, 9)
    assert (nothing.items, nothing.total.runs) == ([], 0)


@pytest.mark.parametrize(
    ("since", "until", "field"),
    [
        (START, START, "until"),
        (START, START - timedelta(days=1), "until"),
        (START - timedelta(days=DAYS_MOST + 1), START, "since"),
    ],
)
async def test_a_window_that_is_none_is_refused(
    database: Database, since: datetime, until: datetime, field: str
) -> None:
    """OPS-8."""
    with pytest.raises(Invalid) as caught:
        await Usage(database).spent(since, until, BY_DAY, 0, 9)
    assert [fault.field for fault in caught.value.faults] == [field]
