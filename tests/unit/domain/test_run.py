"""A run's state machine, row by row, every pair that is not in the table too (RUN-1), and its preview (RUN-9)."""

import itertools

import pytest

from gnomon.domain.run import (
    FAILURES,
    INTERACTIVE,
    PREVIEW_CHARACTERS,
    SCHEDULED,
    TERMINAL,
    TRANSITIONS,
    RunStatus,
    preview,
)

ALLOWED = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "failed"),
    ("running", "queued"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "timed_out"),
    ("running", "cancelled"),
    ("running", "lost"),
}


@pytest.mark.parametrize(("before", "then"), list(itertools.product(RunStatus, RunStatus)))
def test_each_pair_of_statuses(before: RunStatus, then: RunStatus) -> None:
    """RUN-1: what is not in the table is refused."""
    assert (then in TRANSITIONS[before]) is ((before.value, then.value) in ALLOWED)


def test_a_terminal_status_is_never_left() -> None:
    """RUN-1."""
    assert {status.value for status in TERMINAL} == {"succeeded", "failed", "timed_out", "cancelled", "lost"}
    assert all(TRANSITIONS[status] == frozenset() for status in TERMINAL)


def test_every_status_is_in_the_table_and_reachable() -> None:
    """RUN-1."""
    assert set(TRANSITIONS) == set(RunStatus)
    assert {then for ends in TRANSITIONS.values() for then in ends} == set(RunStatus)


def test_failures_are_the_endings_that_move_the_streak() -> None:
    """SCH-8."""
    assert {status.value for status in FAILURES} == {"failed", "timed_out", "lost"}


def test_a_person_who_waits_comes_before_the_schedule() -> None:
    """RUN-1: a lower number is claimed first."""
    assert (INTERACTIVE, SCHEDULED) == (0, 10)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("", ""),
        ("short", "short"),
        ("x" * PREVIEW_CHARACTERS, "x" * PREVIEW_CHARACTERS),
        ("x" * (PREVIEW_CHARACTERS + 1), "x" * (PREVIEW_CHARACTERS - 1) + "…"),
        ("ü" * 10_000, "ü" * (PREVIEW_CHARACTERS - 1) + "…"),
    ],
)
def test_a_preview_is_bounded_and_says_that_it_was_cut(output: str, shown: str) -> None:
    """RUN-9."""
    assert preview(output) == shown
    assert len(preview(output)) <= PREVIEW_CHARACTERS
