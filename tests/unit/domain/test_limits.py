"""The limits of one run, held against what came back: past one, a clear outcome that says which (TGT-5)."""

import pytest

from gnomon.domain.invocation import Failing, Limits, Result, Usage
from gnomon.domain.limits import breach

USED = Usage(model_calls=3, input_tokens=10, output_tokens=20, cost=0.5)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(), None),
        (Limits(output_bytes=4, model_calls=3, cost=0.5), None),  # a limit that is reached is not passed
        (Limits(output_bytes=3), Failing.OUTPUT_TOO_LARGE),
        (Limits(output_bytes=0), Failing.OUTPUT_TOO_LARGE),
        (Limits(model_calls=2), Failing.MODEL_CALLS_EXCEEDED),
        (Limits(cost=0.499), Failing.COST_EXCEEDED),
        (Limits(output_bytes=3, model_calls=2, cost=0.1), Failing.OUTPUT_TOO_LARGE),
        (Limits(model_calls=2, cost=0.1), Failing.MODEL_CALLS_EXCEEDED),
    ],
)
def test_each_limit_and_which_one_is_told(limits: Limits, code: Failing | None) -> None:
    """TGT-5: output is measured in bytes, not characters; what was spent is kept, and nothing is tried again."""
    failure = breach(Result("üx!", USED), limits)
    assert (None if failure is None else failure.code) == code
    if failure is not None:
        assert (failure.usage, failure.retryable) == (USED, False)


def test_without_usage_only_the_output_is_judged() -> None:
    """TGT-5."""
    assert breach(Result("x" * 10), Limits(output_bytes=10, model_calls=0, cost=0.0)) is None
    assert breach(Result("x" * 11), Limits(output_bytes=10)) is not None


def test_the_sentence_names_both_numbers() -> None:
    """TGT-5."""
    failure = breach(Result("x" * 12_345), Limits(output_bytes=1_000))
    assert failure is not None
    assert failure.message == "the output has 12,345 bytes; the limit is 1,000"
