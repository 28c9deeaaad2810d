"""How a target's answer is read, and the limits held against it (TGT-2, TGT-5)."""

import pytest

from gnomon.domain.invocation import Failing, Limits, Result, TargetFailure, Usage
from gnomon.domain.limits import breach
from gnomon.runtimes.answers import excerpt, read_json, read_mapping, read_usage, storable


def test_output_and_usage_are_read_tgt_2() -> None:
    found = read_mapping(
        {
            "output": "yes",
            "usage": {"model_calls": 1, "input_tokens": 2.0, "cost": 0.5, "other": "x"},
            "z": 1,
        },
        "it",
    )
    assert found == Result("yes", Usage(1, 2, 0, 0.5))
    assert read_mapping({"usage": None}, "it", default="text") == Result("text")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "a list"),
        ("x", "text"),
        (None, "nothing"),
        ({}, "no output"),
        ({"output": 5}, "a number"),
        ({"output": {"a": 1}}, "an object"),
        ({"output": "\ud800"}, "surrogate"),
        ({"output": "x", "usage": 3}, "the usage of it is a number"),
        ({"output": "x", "usage": {"model_calls": -1}}, "model_calls"),
        ({"output": "x", "usage": {"input_tokens": 1.5}}, "input_tokens"),
        ({"output": "x", "usage": {"output_tokens": True}}, "output_tokens"),
        ({"output": "x", "usage": {"output_tokens": "7"}}, "output_tokens"),
        ({"output": "x", "usage": {"input_tokens": 2**63}}, "input_tokens"),
        ({"output": "x", "usage": {"cost": float("nan")}}, "cost"),
        ({"output": "x", "usage": {"cost": float("inf")}}, "cost"),
        ({"output": "x", "usage": {"cost": -0.1}}, "cost"),
        ({"output": "x", "usage": {"cost": "1"}}, "cost"),
    ],
)
def test_nonsense_says_what_is_wrong(answer: object, said: str) -> None:
    with pytest.raises(TargetFailure) as caught:
        read_mapping(answer, "it")
    assert caught.value.code is Failing.NONSENSE
    assert not caught.value.retryable
    assert said in caught.value.message


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe\x00", b"[" * 200_000, b'{"a":' + b"1" * 5_000 + b"}"])
def test_json_that_is_none(data: bytes) -> None:
    with pytest.raises(TargetFailure) as caught:
        read_json(data, "the answer")
    assert caught.value.code is Failing.NONSENSE
    assert len(caught.value.message) < 300


def test_a_nul_is_made_storable_and_usage_passes_through() -> None:
    assert storable("a\0b") == "a\ufffdb"
    assert read_usage(Usage(1), "it") == Usage(1)


def test_six_characters_stay_six_and_a_real_zero_byte_is_replaced_pay_03() -> None:
    """RUN-9: what JSON has unescaped once is not unescaped again."""
    escaped = read_mapping(read_json(rb'{"output": "a\\u0000b"}', "it"), "it")
    real = read_mapping(read_json(rb'{"output": "a\u0000b"}', "it"), "it")
    assert (escaped.output, real.output) == ("a\\u0000b", "a\ufffdb")


def test_an_excerpt_is_one_harmless_line() -> None:
    assert excerpt("a\r\nb\x1b[31mc\u2028d") == "a  b [31mc d"
    assert excerpt("x" * 300) == "x" * 200 + "…"


def test_a_result_inside_its_limits_passes_tgt_5() -> None:
    limits = Limits(output_bytes=4, model_calls=2, cost=1.0)
    assert breach(Result("äö", Usage(2, 9, 9, 1.0)), limits) is None
    assert breach(Result("x" * 10_000), Limits()) is None


@pytest.mark.parametrize(
    ("result", "code", "said"),
    [
        (Result("äöx"), Failing.OUTPUT_TOO_LARGE, "5 bytes; the limit is 4"),
        (Result("", Usage(model_calls=3)), Failing.MODEL_CALLS_EXCEEDED, "3 model calls"),
        (Result("", Usage(cost=1.01)), Failing.COST_EXCEEDED, "1.01 dollars; the limit is 1"),
    ],
)
def test_past_a_limit_the_outcome_says_which_tgt_5(result: Result, code: Failing, said: str) -> None:
    failure = breach(result, Limits(output_bytes=4, model_calls=2, cost=1.0))
    assert failure is not None
    assert failure.code is code
    assert said in failure.message
    assert failure.usage == result.usage
    assert not failure.retryable
