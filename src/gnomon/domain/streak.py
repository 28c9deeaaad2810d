"""The failure streak of a schedule: what moves it, when it warns, when it stops the schedule (SCH-8)."""

from gnomon.domain.run import FAILURES, RunStatus


def moved(streak: int, outcome: RunStatus) -> int:
    """The streak after a run ended: a failure adds one, a success clears it, a cancel leaves it."""
    if outcome in FAILURES:
        return streak + 1
    return 0 if outcome is RunStatus.SUCCEEDED else streak


def warns(streak: int, limit: int) -> bool:
    """Whether this streak is the one to warn at: half of the limit, rounded up, and not yet the limit itself."""
    return streak == (limit + 1) // 2 and streak < limit


def stops(streak: int, limit: int) -> bool:
    """Whether the schedule has failed often enough to be paused by itself."""
    return streak >= limit
