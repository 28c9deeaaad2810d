"""Backoff against a sum that doubles step by step (SCH-14; casebook ret-02, ret-03)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.retry import RetryPolicy, backoff_seconds


@given(st.integers(0, 86_400), st.integers(0, 86_400), st.integers(1, 60))
@settings(max_examples=300, deadline=None)
def test_it_is_the_base_doubled_and_capped(base: int, cap: int, attempt: int) -> None:
    """SCH-14: the oracle adds, it takes no power and shifts nothing."""
    wait = base
    for _ in range(attempt - 1):
        wait += wait
    assert backoff_seconds(RetryPolicy(10, base, cap), attempt) == (min(cap, wait))


@given(st.integers(1, 86_400), st.integers(0, 86_400), st.integers(18, 10**30))
@settings(max_examples=200, deadline=None)
def test_beyond_the_largest_range_it_stays_at_the_cap(base: int, cap: int, attempt: int) -> None:
    """Casebook ret-02: one second doubled 17 times is past any cap there can be."""
    assert backoff_seconds(RetryPolicy(10, base, cap), attempt) == cap
