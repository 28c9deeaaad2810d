"""What ``gnomon audit`` shows of an entry."""

from gnomon.cli.audit import COLUMNS


def test_an_instant_in_a_detail_is_shown_as_one() -> None:
    """SEC-7: the dispatcher writes microseconds, which no person reads."""
    entry = {"detail": {"nominal_fire_at": 1_796_042_700_000_000, "reason": "already_running"}}
    assert COLUMNS[-1].text(entry) == "nominal_fire_at 2026-11-30 12:45:00Z, reason already_running"
    assert COLUMNS[-1].text({"detail": {"attempt": 1}}) == "attempt 1"
    assert COLUMNS[-1].text({"detail": None}) == "-"
