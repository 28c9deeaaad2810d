"""A worker's own view of its lease: it begins when it was asked for, and ends before the server's (BRD-2, RUN-5)."""

import pytest

from gnomon.client.lease import Lease, granted, window

LEASE = granted(120, 1_000)


def test_it_is_renewed_after_a_third() -> None:
    """BRD-2."""
    assert not LEASE.is_due(1_039.9)
    assert LEASE.is_due(1_040)


def test_it_ends_here_before_it_ends_there() -> None:
    """RUN-5: the margin is for stopping what is at work."""
    assert LEASE.ends_at == 1_110
    assert not LEASE.is_over(1_109.9)
    assert LEASE.is_over(1_110)
    assert LEASE.seconds_left(1_110) == 10
    assert LEASE.seconds_left(2_000) == 0


def test_nobody_waits_past_a_look_at_the_clock() -> None:
    """RUN-5: a machine that slept does not count its sleep as waiting."""
    assert LEASE.wait(1_000) == 5
    assert LEASE.wait(1_038) == 2
    assert LEASE.wait(1_200) == 0


def test_a_failed_renewal_comes_again_soon_and_ends_nothing() -> None:
    failed = LEASE
    now, seen = 1_040.0, []
    for _ in range(20):
        failed = failed.failed(now, 1)
        seen.append(failed.renew_at - now)
        now = failed.renew_at
    assert seen[:3] == pytest.approx([0.2, 0.4, 0.8])
    assert max(seen) == pytest.approx(12)
    assert failed.ends_at == LEASE.ends_at


def test_a_request_that_hangs_does_not_hide_the_end() -> None:
    assert LEASE.patience(1_040) == 10
    assert LEASE.patience(1_100) == 2.5
    assert LEASE.patience(1_200) == 0.05
    short = granted(3, 0)
    assert short.patience(1) + 1 < short.ends_at


@pytest.mark.parametrize(
    ("since", "date", "seconds"),
    [
        ("2026-11-30T12:00:00.500000Z", "", 119.5),
        (None, "Mon, 30 Nov 2026 12:00:00 GMT", 120),
        (None, "", 120),
        ("2026-11-30T13:00:00Z", "", 120),
    ],
)
def test_its_length_is_told_in_the_servers_own_time(since: str | None, date: str, seconds: float) -> None:
    """The wall clock of this machine has no say."""
    task = {"held_by": None if since is None else {"since": since}}
    claim = {"task": task, "expires_at": "2026-11-30T12:02:00.000000Z"}
    assert window(claim, {"date": date} if date else {}) == seconds


def test_a_server_that_takes_from_the_silent_sooner_says_so() -> None:
    """BRD-4: a heartbeat's timeout that is shorter than the window."""
    claim = {"task": {"held_by": {"since": "2026-11-30T12:00:00Z"}}, "expires_at": "2026-11-30T12:02:00Z"}
    assert window({**claim, "renew_seconds": 40}, {}) == pytest.approx(120)
    assert window({**claim, "renew_seconds": 10}, {}) == pytest.approx(30)
    assert window({"renew_seconds": 10}, {}) == pytest.approx(30)


def test_a_lease_is_a_value() -> None:
    assert Lease(120, 1_000, 1_040) == LEASE
