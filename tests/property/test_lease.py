"""The lease covers the whole envelope, whatever the policy (DSP-4)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.lease import lease_seconds
from gnomon.domain.retry import RetryPolicy

POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 10),
    backoff_seconds=st.integers(0, 86_400),
    backoff_max_seconds=st.integers(0, 86_400),
)


@given(st.integers(1, 86_400), POLICIES)
@settings(max_examples=300, deadline=None)
def test_it_is_what_a_run_that_uses_everything_up_takes(timeout: int, policy: RetryPolicy) -> None:
    """DSP-4: the oracle lives through the worst run, second by second of waiting."""
    clock, wait = 0, policy.backoff_seconds
    for attempt in range(policy.max_attempts):
        if attempt:
            clock += min(policy.backoff_max_seconds, wait)
            wait += wait
        clock += timeout
    assert lease_seconds(timeout, policy) == clock + 30


@given(st.integers(1, 86_399), POLICIES)
@settings(max_examples=100, deadline=None)
def test_more_of_anything_never_shortens_it(timeout: int, policy: RetryPolicy) -> None:
    """DSP-4."""
    base = lease_seconds(timeout, policy)
    assert lease_seconds(timeout + 1, policy) > base
    more = RetryPolicy(policy.max_attempts + 1, policy.backoff_seconds, policy.backoff_max_seconds)
    assert lease_seconds(timeout, more) > base
