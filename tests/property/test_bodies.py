"""Reading bodies: whatever bytes come, the answer is a value that every reader agrees on, or a refusal (OPS-8)."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.domain.errors import Invalid
from gnomon.edges.json_input import DEPTH, parse

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_good_json_is_read_as_it_was_meant(value: Any, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0d8e19.-+ntfaINf ', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_a_refusal(body: bytes) -> None:
    """Reliability 69: nothing but ``Invalid``, and what is read holds no number, text or name that breaks later."""
    try:
        value = parse(body)
    except Invalid:
        return
    again = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(again) == value


@given(
    VALUES, st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 20, "-" + "9" * 400])
)
def test_a_number_that_others_can_not_read_is_refused_wherever_it_stands(value: Any, number: str) -> None:
    text = json.dumps([value, {"x": ["@"]}]).replace('"@"', number)
    with pytest.raises(Invalid):
        parse(text.encode())


@given(st.integers(1, 200))
def test_the_depth_is_bounded(depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    if depth <= DEPTH:
        parse(body)
    else:
        with pytest.raises(Invalid):
            parse(body)


@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=3), st.data())
def test_a_name_that_stands_twice_is_refused(fields: dict[str, Any], data: st.DataObject) -> None:
    """Reliability 17: readers differ on which of the two counts."""
    twice = data.draw(st.sampled_from(sorted(fields)))
    pairs = [*fields.items(), (twice, 1)]
    text = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in pairs)
    with pytest.raises(Invalid):
        parse(f'{{"outer":{{{text}}}}}'.encode())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_fits_is_kept_to_the_last_bit(number: float) -> None:
    found = parse(json.dumps(number).encode())
    assert found == number
    assert math.copysign(1, found) == math.copysign(1, number)
