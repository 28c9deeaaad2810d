"""Instants: exact integers of microseconds, aware datetimes, RFC 3339 with Z (HOUSE rule 4; CONTRACT, forms)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gnomon.domain.instants import from_micros, maybe_instant, maybe_micros, rfc3339, to_micros

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("micros", "instant"),
    [
        (0, EPOCH),
        (1, EPOCH + timedelta(microseconds=1)),
        (-1, EPOCH - timedelta(microseconds=1)),
        (1_782_000_000_123_457, datetime(2026, 6, 21, 0, 0, 0, 123_457, tzinfo=UTC)),
        (253_402_300_799_999_999, datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_both_ways_exactly(micros: int, instant: datetime) -> None:
    assert from_micros(micros) == instant
    assert from_micros(micros).tzinfo is UTC
    assert to_micros(instant) == micros


def test_another_offset_is_the_same_instant() -> None:
    berlin = datetime(2026, 6, 21, 2, 0, tzinfo=timezone(timedelta(hours=2)))
    assert to_micros(berlin) == 1_782_000_000_000_000


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(TypeError):
        to_micros(datetime(2026, 6, 21))  # noqa: DTZ001 - naive is what is refused


def test_what_may_be_missing_stays_missing() -> None:
    assert maybe_micros(None) is None
    assert maybe_instant(None) is None
    assert maybe_micros(EPOCH) == 0
    assert maybe_instant(0) == EPOCH


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(2026, 6, 21, 9, 0, tzinfo=UTC), "2026-06-21T09:00:00Z"),
        (datetime(2026, 6, 21, 9, 0, 0, 5, tzinfo=UTC), "2026-06-21T09:00:00.000005Z"),
        (datetime(2026, 6, 21, 9, 0, tzinfo=timezone(timedelta(hours=2))), "2026-06-21T07:00:00Z"),
    ],
)
def test_rfc3339_is_utc_with_z_and_microseconds_only_where_there_are_some(
    instant: datetime, text: str
) -> None:
    assert rfc3339(instant) == text
