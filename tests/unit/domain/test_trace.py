"""A run's trace context is derived from its id, in the forms of W3C Trace Context (RUN-9)."""

import re

import pytest

from gnomon.domain.trace import given_trace, trace_id, traceparent


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


_TRACE, _SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header", [f"00-{_TRACE}-{_SPAN}-01", f"00-{_TRACE}-{_SPAN}-00", f"cc-{_TRACE}-{_SPAN}-01-more"]
)
def test_the_header_of_a_caller_names_its_trace(header: str) -> None:
    """OPS-6."""
    assert given_trace(header) == _TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "x",
        f"ff-{_TRACE}-{_SPAN}-01",
        f"00-{_TRACE}-{_SPAN}-01-more",
        f"00-{_TRACE.upper()}-{_SPAN}-01",
        f"00-{'0' * 32}-{_SPAN}-01",
        f"00-{_TRACE}-{'0' * 16}-01",
        f"00-{_TRACE}-{_SPAN}-01\n",
    ],
)
def test_a_header_that_w3c_says_to_leave_alone_names_none(header: str | None) -> None:
    """OPS-6."""
    assert given_trace(header) is None
