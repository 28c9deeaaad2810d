"""Whatever comes in, `parse` gives a rule or a `CadenceError`, and a rule survives its way through JSON."""

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.cadence import Cadence, CadenceError
from support.cadence_rules import dated, imported, json_values, left_out, once, rolling

FIELDS = [
    "unit", "every", "at", "zone", "days", "day", "short_month", "weekday", "nth", "cron", "rrule", "anchor", "exclude",
    "calendar", "other",
]  # fmt: skip
VALID = st.one_of(dated, rolling, once, imported)


def _holds(given_rule: Any) -> None:
    try:
        rule = Cadence.parse(given_rule)
    except CadenceError as error:
        faults = error.faults
    else:
        assert Cadence.parse(rule.to_json()) == rule
        rule.compile()
        return
    assert faults
    for fault in faults:
        (fault.field + fault.message).encode()
        assert len(fault.message) < 400


@settings(max_examples=400, deadline=None)
@given(json_values | st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_any_json_is_a_rule_or_a_cadence_error(value: Any) -> None:
    """CAD-1, CAD-6, CAD-9, CAD-11: and every message can be encoded."""
    _holds(value)


@settings(max_examples=400, deadline=None)
@given(VALID, st.sampled_from(FIELDS), json_values)
def test_a_valid_rule_with_one_field_spoilt_is_a_rule_or_a_cadence_error(
    rule: Any, field: str, value: Any
) -> None:
    """CAD-1, CAD-6, CAD-9, CAD-11."""
    _holds({**rule, field: value})


@settings(max_examples=300, deadline=None)
@given(st.text(), st.sampled_from(["cron", "rrule", "zone", "anchor", "calendar"]))
def test_any_text_is_a_rule_or_a_cadence_error(text: str, field: str) -> None:
    """CAD-9, CAD-11."""
    rule: dict[str, Any] = {"unit": "day", "at": "09:00"} if field not in {"cron", "rrule"} else {}
    _holds({**rule, field: text})


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("0123456789*,-/L#WMONFRI", min_size=1, max_size=9), min_size=5, max_size=5))
def test_anything_like_cron_is_a_rule_or_a_cadence_error(fields: list[str]) -> None:
    """CAD-9: the library that reads it may be wrong about a field, never loud."""
    _holds({"cron": " ".join(fields)})


@settings(max_examples=300, deadline=None)
@given(left_out(VALID.filter(lambda rule: rule.get("unit") not in {"minute", "hour"})) | rolling)
def test_a_rule_survives_json(rule: Any) -> None:
    parsed = Cadence.parse(rule)
    text = json.dumps(parsed.to_json())
    assert Cadence.parse(json.loads(text)) == parsed
    assert Cadence.from_stored(text) == parsed
    assert Cadence.from_stored(json.loads(text)).to_json() == parsed.to_json()
    assert hash(Cadence.from_stored(text)) == hash(parsed)


@settings(max_examples=300, deadline=None)
@given(json_values | st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_anything_stored_is_a_rule_or_a_cadence_error(value: Any) -> None:
    with contextlib.suppress(CadenceError):
        Cadence.from_stored(value).compile()
