"""The retry policy of a run and its backoff: capped, doubling, the exponent bounded before the power is taken."""

from dataclasses import dataclass

MAX_ATTEMPTS = (1, 10)  # SCH-14
BACKOFF_SECONDS = (0, 86_400)
BACKOFF_MAX_SECONDS = (0, 86_400)
_LARGEST_EXPONENT = 62


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a run is tried in all, and how long it waits in between (SCH-14). Seconds are whole."""

    max_attempts: int = 1
    backoff_seconds: int = 10
    backoff_max_seconds: int = 600


def backoff_seconds(policy: RetryPolicy, attempt: int) -> int:
    """The wait after failed attempt number ``attempt`` (from 1): base, doubling, never above the cap.

    Any attempt number is answered in constant time; there is no power above 2**62.
    """
    exponent = min(max(attempt - 1, 0), _LARGEST_EXPONENT)
    return min(policy.backoff_max_seconds, policy.backoff_seconds << exponent)
