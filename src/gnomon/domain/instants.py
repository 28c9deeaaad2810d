"""Instants: integers of microseconds since 1970 (UTC) in the stores, aware datetimes in the records.

Must not know any clock: an instant is always an argument.
"""

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """Microseconds since the epoch of an aware datetime, exactly (no float on the way)."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC datetime of an integer of microseconds since the epoch."""
    return _EPOCH + timedelta(0, 0, micros)  # by place: twice as fast, and done for each run


def maybe_micros(instant: datetime | None) -> int | None:
    """``to_micros`` where the instant may be missing."""
    return None if instant is None else to_micros(instant)


def maybe_instant(micros: int | None) -> datetime | None:
    """``from_micros`` where the integer may be missing."""
    return None if micros is None else from_micros(micros)


def rfc3339(instant: datetime) -> str:
    """RFC 3339 in UTC with ``Z``, microseconds only where there are some (CONTRACT, forms)."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return f"{instant.isoformat()[:-6]}Z"


def maybe_rfc3339(instant: datetime | None) -> str | None:
    """``rfc3339`` where the instant may be missing."""
    return None if instant is None else rfc3339(instant)
