"""Dedup keys against a library that shares no code: dates, hours and ISO weeks in every zone (IDM-1)."""

from datetime import UTC, datetime

import pytest
import whenever
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.cadence import zone_names
from gnomon.domain.dedup import MOST_CHARACTERS, SLOT_NAMES, Loop, check, render

ZONES = sorted(zone_names())
TEMPLATE = "{{date}} {{hour}} {{iso_week}} {{month}} {{year}}"
FIRST, LAST = (
    int(datetime(1971, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2090, 1, 1, tzinfo=UTC).timestamp()),
)
DAY = 86_400
ANY = st.one_of(
    st.text(alphabet="{} nowdateisoweekhourpayload.._\n", max_size=60),
    st.lists(
        st.sampled_from(["{{date}}", "{{ now }}", "{{payload.a}}", "{{", "}}", "x", "{{week}}"]), max_size=6
    ).map("".join),
)


def expected(second: int, zone: str) -> str:
    """The same five, by the library."""
    shown = whenever.Instant.from_timestamp(second).to_tz(zone)
    day = shown.date()
    iso = day.iso_week_date()
    offset = int(shown.offset.to_stdlib().total_seconds())
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    text = f"{sign}{size // 3600:02}:{size // 60 % 60:02}" + (f":{size % 60:02}" if size % 60 else "")
    return (
        f"{day.format_iso()} {day.format_iso()}T{shown.hour:02}{text} {iso.year:04}-W{iso.week:02} "
        f"{day.year:04}-{day.month:02} {day.year:04}"
    )


def rendered(second: int, zone: str) -> str:
    return render(TEMPLATE, datetime.fromtimestamp(second, UTC), zone)


@pytest.fixture(autouse=True)
def pinned_zone_data() -> None:
    whenever.reset_tzpath([])  # the pinned package, as ours
    whenever.clear_tzcache()


def test_every_day_of_a_century_has_the_week_that_the_library_gives_it() -> None:
    """IDM-1: ISO weeks over all days, in turn in all zones, at both ends of the day."""
    for number, second in enumerate(range(FIRST, LAST, DAY)):
        zone = ZONES[number % len(ZONES)]
        for at in (second, second + DAY - 1):
            assert rendered(at, zone) == expected(at, zone), (at, zone)


@given(st.integers(FIRST, LAST), st.sampled_from(ZONES))
@settings(max_examples=500, deadline=None)
def test_any_instant_in_any_zone_is_named_as_the_library_names_it(second: int, zone: str) -> None:
    """IDM-1."""
    assert rendered(second, zone) == expected(second, zone)


@given(st.integers(FIRST, LAST), st.integers(1, 3 * DAY), st.sampled_from(ZONES))
@settings(max_examples=300, deadline=None)
def test_two_slots_an_hour_or_more_apart_never_share_an_hour(second: int, apart: int, zone: str) -> None:
    """IDM-1: whatever the clock does between them."""
    keys = {
        render("{{hour}}", datetime.fromtimestamp(at, UTC), zone)
        for at in (second, second + max(3600, apart))
    }
    assert len(keys) == 2


@given(
    ANY, st.dictionaries(st.sampled_from("ab"), st.one_of(st.text(max_size=250), st.integers(), st.none()))
)
@settings(max_examples=500, deadline=None)
def test_what_is_accepted_comes_out_as_one_line_within_its_bound(
    template: str, payload: dict[str, object]
) -> None:
    """IDM-1: a slot that comes due always has a key; one that was checked has a good one."""
    key = render(template, datetime(2026, 11, 29, 9, tzinfo=UTC), "Asia/Kathmandu", payload, {"job": "j"})
    if not check(template, Loop.JOB, payload):
        assert 1 <= len(key) <= MOST_CHARACTERS
        assert key.isprintable() or not any(ord(c) < 32 for c in key)


@given(st.lists(st.sampled_from(SLOT_NAMES), min_size=1, max_size=4), st.text(alphabet="{}ab", max_size=9))
@settings(max_examples=200, deadline=None)
def test_a_payload_that_looks_like_a_template_is_never_expanded(names: list[str], value: str) -> None:
    """IDM-1, SCH-6: the oracle joins the pieces itself."""
    at = datetime(2026, 11, 29, 9, tzinfo=UTC)
    template = "".join(f"{{{{{name}}}}}|{{{{payload.v}}}}|" for name in names)
    pieces = [render(f"{{{{{name}}}}}", at, "UTC") for name in names]
    assert render(template, at, "UTC", {"v": value}) == "".join(f"{piece}|{value}|" for piece in pieces)
