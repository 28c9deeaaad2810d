"""The lease's length: the whole retry envelope (DSP-4). Its SQL twin is held against it in tests/contract."""

import pytest

from gnomon.domain.agent import TIMEOUT_SECONDS
from gnomon.domain.lease import HEADROOM_SECONDS, LEASE_SECONDS_SQL, lease_seconds
from gnomon.domain.retry import BACKOFF_MAX_SECONDS, BACKOFF_SECONDS, MAX_ATTEMPTS, RetryPolicy


def test_the_headroom_is_thirty_seconds() -> None:
    """SCH-14."""
    assert HEADROOM_SECONDS == 30


@pytest.mark.parametrize(
    ("timeout", "policy", "expected"),
    [
        (300, RetryPolicy(), 300 + 30),
        (1, RetryPolicy(1, 86_400, 86_400), 1 + 30),
        (1_200, RetryPolicy(3, 60, 600), 3 * 1_200 + 60 + 120 + 30),
        (60, RetryPolicy(5, 100, 300), 5 * 60 + 100 + 200 + 300 + 300 + 30),
        (86_400, RetryPolicy(10, 86_400, 86_400), 10 * 86_400 + 9 * 86_400 + 30),
    ],
)
def test_it_is_attempts_times_timeout_the_backoffs_between_them_and_headroom(
    timeout: int, policy: RetryPolicy, expected: int
) -> None:
    """DSP-4; casebook lea-01: three attempts of twenty minutes are more than an hour."""
    assert lease_seconds(timeout, policy) == expected


def test_the_longest_lease_fits_any_integer_column_in_microseconds() -> None:
    """Casebook ret-04: of all that a definition may ask for; there is no endless retry, which no lease could cover."""
    longest = RetryPolicy(MAX_ATTEMPTS[1], BACKOFF_SECONDS[1], BACKOFF_MAX_SECONDS[1])
    assert lease_seconds(TIMEOUT_SECONDS[1], longest) * 1_000_000 < 2**63
    assert lease_seconds(TIMEOUT_SECONDS[1], longest) < 30 * 86_400


def test_the_sql_has_a_term_for_each_backoff_there_can_be() -> None:
    """DSP-4: raising MAX_ATTEMPTS lengthens both halves together."""
    assert LEASE_SECONDS_SQL.count("CASE WHEN") == MAX_ATTEMPTS[1] - 1
    assert ":" not in LEASE_SECONDS_SQL, "the formula reads columns, never parameters"
