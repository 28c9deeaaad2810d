"""Cron against cronsim, which reads it for us but never walks for us."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gnomon.cadence import Cadence, CadenceError, next_after, preview
from gnomon.cadence.civil import zone_named
from support import cadence_oracle as oracle
from support.cadence_rules import cron_texts, edges, zones

CENTURY = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - UTC is beside
FIXED = st.tuples(
    st.sampled_from(["0", "30", "15,45", "59"]),
    st.sampled_from(["0", "2", "1-3", "0,23", "23"]),
    st.just("*"),
    st.just("*"),
    st.sampled_from(["*", "1-5", "0"]),
).map(" ".join)


def _once_each(found: Iterator[datetime]) -> Iterator[datetime]:
    previous = None
    for slot in found:
        instant = slot.astimezone(UTC)
        if instant != previous:
            yield instant
        previous = instant


def _month_number(slot: datetime) -> int:
    return slot.year * 12 + slot.month - 1


@settings(max_examples=400, deadline=None)
@given(cron_texts, CENTURY)
def test_cron_in_utc_gives_what_cronsim_gives(text: str, asked: datetime) -> None:
    """CAD-9: days by number, weekday, L, LW, # and the two day fields of cron."""
    try:
        cadence = Cadence.parse({"cron": text})
    except CadenceError as error:
        assert "floor" in str(error) or "Bad" in str(error)  # noqa: PT017 - a refusal is one of the two outcomes
        return
    cron = CronSim(text, asked)
    expected = list(islice(cron, 6))
    found = [slot.at for slot in preview(cadence, asked, 6)]
    assert found == expected[: len(found)]
    if len(found) < len(expected):
        # CAD-7: ours gives up after 26 months that match; cronsim walks on for fifty years.
        low, high = (_month_number(slot) for slot in ([asked, *found][-1], expected[len(found)]))
        assert sum(month % 12 + 1 in cron.months for month in range(low, high + 1)) > 26


@settings(max_examples=300, deadline=None)
@given(FIXED, zones, st.data())
def test_cron_at_fixed_times_follows_the_civil_rule_of_cronsim(
    text: str, zone: str, data: st.DataObject
) -> None:
    """CAD-4, CAD-9: cronsim keeps the same rule at the edges for fixed times."""
    assume(not zone_named(zone).missing)  # a date that does not exist has no slot: cronsim moves it
    asked = data.draw(edges(zone, 1990, 2038)) - timedelta(days=2)
    try:
        cadence = Cadence.parse({"cron": text, "zone": zone})
    except CadenceError:
        return
    local = asked.replace(second=0, microsecond=0).astimezone(oracle.zone(zone))
    expected = [slot for slot in islice(_once_each(CronSim(text, local)), 12) if slot > asked]
    found = [slot.at for slot in preview(cadence, asked, 12)]
    shared = min(len(expected), len(found))
    assert found[:shared] == expected[:shared]


@settings(max_examples=150, deadline=None)
@given(cron_texts, CENTURY)
def test_accepted_cron_keeps_five_minutes(text: str, asked: datetime) -> None:
    """CAD-9: walked, not read off the pattern."""
    try:
        cadence = Cadence.parse({"cron": text})
    except CadenceError:
        return
    for _ in range(100):
        found = next_after(cadence, asked)
        if found is None:
            break
        following = next_after(cadence, found)
        assert following is None or following - found >= timedelta(minutes=5)
        asked = found
