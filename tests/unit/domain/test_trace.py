"""A run's trace context is derived from its id, in the forms of W3C Trace Context (RUN-9)."""

import re

from gnomon.domain.trace import trace_id, traceparent


def test_the_same_run_has_the_same_trace_and_another_has_another() -> None:
    """RUN-9."""
    assert trace_id("run_a") == trace_id("run_a")
    assert trace_id("run_a") != trace_id("run_b")
    assert re.fullmatch(r"[0-9a-f]{32}", trace_id("run_a"))


def test_each_attempt_is_a_span_of_its_own_inside_the_trace() -> None:
    """RUN-9."""
    trace = trace_id("run_a")
    first, second = traceparent(trace, "run_a", 1), traceparent(trace, "run_a", 2)
    assert re.fullmatch(rf"00-{trace}-[0-9a-f]{{16}}-01", first)
    assert first.split("-")[1] == second.split("-")[1]
    assert first.split("-")[2] != second.split("-")[2]


def test_a_trace_of_the_caller_is_kept() -> None:
    """OPS-6."""
    assert traceparent("a" * 32, "run_a", 1).split("-")[1] == "a" * 32
