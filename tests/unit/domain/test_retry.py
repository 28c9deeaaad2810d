"""Retry backoff: capped, doubling, finite for any attempt number (SCH-14; casebook ret-02, ret-03, ret-04)."""

import dataclasses

import pytest

from gnomon.domain.retry import (
    BACKOFF_MAX_SECONDS,
    BACKOFF_SECONDS,
    MAX_ATTEMPTS,
    RetryPolicy,
    backoff_seconds,
)


def test_the_default_is_one_attempt() -> None:
    """SCH-14."""
    assert dataclasses.astuple(RetryPolicy()) == (1, 10, 600)
    assert (MAX_ATTEMPTS, BACKOFF_SECONDS, BACKOFF_MAX_SECONDS) == ((1, 10), (0, 86_400), (0, 86_400))


def test_it_doubles_up_to_the_cap() -> None:
    """SCH-14."""
    policy = RetryPolicy(10, 10, 600)
    assert [backoff_seconds(policy, n) for n in range(1, 10)] == [10, 20, 40, 80, 160, 320, 600, 600, 600]


@pytest.mark.parametrize("attempt", [46, 47, 1_075, 10**6, 10**18, 10**4_000])
def test_a_huge_attempt_number_stays_at_the_cap(attempt: int) -> None:
    """Casebook ret-02: the exponent is bounded before the power is taken; 2**(10**4000) would never come back."""
    assert backoff_seconds(RetryPolicy(10, 1, 3_600), attempt) == 3_600


@pytest.mark.parametrize("attempt", [20, 43, 200])
def test_the_order_of_operations_holds_for_ten_seconds_too(attempt: int) -> None:
    """Casebook ret-03."""
    assert backoff_seconds(RetryPolicy(10, 10, 300), attempt) == 300


@pytest.mark.parametrize("attempt", [0, -1, -(10**9)])
def test_an_attempt_below_the_first_counts_as_the_first(attempt: int) -> None:
    assert backoff_seconds(RetryPolicy(3, 7, 600), attempt) == 7


def test_no_base_means_no_wait_at_all() -> None:
    assert {backoff_seconds(RetryPolicy(10, 0, 600), n) for n in range(1, 200)} == {0}


def test_a_cap_below_the_base_wins() -> None:
    assert backoff_seconds(RetryPolicy(3, 100, 30), 1) == 30
