"""The streak over any history: it is the number of failures since the last success (SCH-8, SCH-9)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.run import RunStatus
from gnomon.domain.streak import moved, stops, warns

ENDINGS = st.lists(
    st.sampled_from(["succeeded", "failed", "timed_out", "lost", "cancelled"]).map(RunStatus), max_size=40
)


@given(ENDINGS, st.integers(1, 100))
@settings(max_examples=300, deadline=None)
def test_it_counts_the_failures_since_the_last_success(endings: list[RunStatus], limit: int) -> None:
    """SCH-8: the oracle cuts the history after its last success and counts what is left."""
    streak = 0
    for ending in endings:
        streak = moved(streak, ending)
    names = [ending.value for ending in endings]
    after_success = names[len(names) - names[::-1].index("succeeded") :] if "succeeded" in names else names
    expected = sum(after_success.count(name) for name in ("failed", "timed_out", "lost"))
    assert streak == expected
    assert stops(streak, limit) == (expected >= limit)
    assert not (warns(streak, limit) and stops(streak, limit))


@given(st.integers(2, 100))
@settings(max_examples=50, deadline=None)
def test_there_is_one_warning_on_the_way_to_the_limit(limit: int) -> None:
    """SCH-8: at least half of the limit is reached, and at least one failure is left to act in."""
    warnings = [streak for streak in range(1, limit + 1) if warns(streak, limit)]
    assert len(warnings) == 1
    assert limit / 2 <= warnings[0] < limit
