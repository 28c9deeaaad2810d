"""The length of a run's lease, twice: a function, and the same formula as SQL (DSP-4).

The lease covers the whole retry envelope: every attempt's timeout, every backoff, headroom. The SQL is plain integer
arithmetic over the columns ``timeout_seconds``, ``max_attempts``, ``backoff_seconds`` and ``backoff_max_seconds``; both
engines splice the same text, and a test holds the two equal over a matrix. It is the only SQL in the domain, so that
whoever changes one half has the other before their eyes.
"""

from gnomon.domain.retry import MAX_ATTEMPTS, RetryPolicy, backoff_seconds

HEADROOM_SECONDS = 30  # SCH-14


def lease_seconds(timeout_seconds: int, policy: RetryPolicy) -> int:
    """Seconds for which a claim of a run must hold: attempts x timeout, the backoffs between them, headroom."""
    backoffs = sum(backoff_seconds(policy, attempt) for attempt in range(1, policy.max_attempts))
    return policy.max_attempts * timeout_seconds + backoffs + HEADROOM_SECONDS


def _backoff_sql(attempt: int) -> str:
    doubled = f"backoff_seconds * {1 << (attempt - 1)}"
    return (
        f"CASE WHEN max_attempts <= {attempt} THEN 0 "
        f"WHEN {doubled} > backoff_max_seconds THEN backoff_max_seconds ELSE {doubled} END"
    )


LEASE_SECONDS_SQL = (
    f"(max_attempts * timeout_seconds + {HEADROOM_SECONDS} + "
    + " + ".join(_backoff_sql(attempt) for attempt in range(1, MAX_ATTEMPTS[1]))
    + ")"
)
