"""What a target gets and gives back: usage adds up, a failure keeps what was spent (TGT-2, TGT-5)."""

import itertools
from datetime import UTC, datetime

import pytest

from gnomon.domain.invocation import Failing, Invocation, Limits, TargetFailure, Usage


def test_usage_adds_up_field_by_field() -> None:
    """TGT-2."""
    assert Usage(1, 20, 300, 0.5) + Usage(2, 3, 4, 0.25) == Usage(3, 23, 304, 0.75)
    assert sum([Usage(1), Usage(2)], Usage()) == Usage(3)


def test_no_usage_is_neutral() -> None:
    """TGT-2."""
    assert Usage() + Usage(1, 2, 3, 4.0) == Usage(1, 2, 3, 4.0)


def test_an_invocation_says_the_least_by_default() -> None:
    """TGT-1: nothing is made up for a run that no slot started."""
    made = Invocation("run_1", 1, 7, "run_1", "q", datetime(2026, 1, 1, tzinfo=UTC))
    assert (made.dedup_key, made.nominal_fire_at, made.tenant, made.session_id, made.traceparent) == (
        None,
    ) * 5
    assert made.messages == ()
    assert made.limits == Limits(None, None, None)


@pytest.mark.parametrize(
    ("retryable", "retry_after", "usage"),
    list(itertools.product([True, False], [None, 2.5], [None, Usage(1)])),
)
def test_a_failure_says_whether_another_try_makes_sense(
    retryable: bool, retry_after: float | None, usage: Usage | None
) -> None:
    failure = TargetFailure(
        Failing.HTTP_STATUS, "503", retryable=retryable, retry_after=retry_after, usage=usage
    )
    assert (failure.code, str(failure), failure.message) == (Failing.HTTP_STATUS, "503", "503")
    assert (failure.retryable, failure.retry_after, failure.usage) == (retryable, retry_after, usage)


def test_a_failure_is_final_unless_it_says_otherwise() -> None:
    failure = TargetFailure(Failing.EXCEPTION, "boom")
    assert (failure.retryable, failure.retry_after, failure.usage) == (False, None, None)
