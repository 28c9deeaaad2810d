"""Reading written records: every fault at once, no value taken for another (IDM, OPS-8; reliability 17)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.domain.errors import Invalid
from gnomon.domain.form import Form, merged, read_instant

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def faults_of(form: Form) -> dict[str, str]:
    return {fault.field: fault.message for fault in form.faults}


def test_every_fault_is_found_in_one_pass() -> None:
    form = Form({"a": 1, "b": "x" * 9, "c": "5", "d": 1, "e": [], "f": "2026", "zzz": 0})
    form.only(("a", "b", "c", "d", "e", "f", "g"))
    form.text("a", 1, 8)
    form.text("b", 1, 8)
    form.integer("c", 0, 9)
    form.boolean("d", default=False)
    form.part("e")
    form.instant("f")
    form.text("g", 1, 8, required=True)
    with pytest.raises(Invalid) as caught:
        form.finish()
    assert [fault.field for fault in caught.value.faults] == ["zzz", "a", "b", "c", "d", "e", "f", "g"]


@pytest.mark.parametrize("value", [True, False, 5.0, "5", [5], {}, -1, 10, 2**70])
def test_an_integer_is_a_whole_number_in_its_range_and_nothing_like_one(value: Any) -> None:
    """Reliability 17: "5" for 5, true for 1."""
    form = Form({"n": value})
    assert form.integer("n", 0, 9) is None
    assert len(form.faults) == 1


def test_a_number_that_is_not_whole_is_not_told_that_it_is_none() -> None:
    form = Form({"n": 1e9})
    form.integer("n", 0, 9)
    assert faults_of(form) == {"n": "must be a whole number, not a number with a fraction or an exponent"}


def test_a_form_knows_what_of_it_is_wrong_already() -> None:
    form = Form({"n": "none", "m": {}})
    form.integer("n", 0, 9)
    part = form.part("m")
    assert part is not None
    part.fault("k", "is wrong")
    assert form.has_fault("n")
    assert form.has_fault("m")
    assert not form.has_fault("k")


@pytest.mark.parametrize(("value", "read"), [(0, 0.0), (9, 9.0), (0.5, 0.5)])
def test_a_number_may_be_whole_or_not(value: float, read: float) -> None:
    form = Form({"n": value})
    assert form.number("n", 0, 9) == read
    assert form.faults == []


@pytest.mark.parametrize("value", [True, "5", -0.1, 9.01, float("nan"), float("inf")])
def test_what_is_no_number_of_the_range_is_refused(value: Any) -> None:
    form = Form({"n": value})
    assert form.number("n", 0, 9) is None
    assert list(faults_of(form)) == ["n"]


def test_a_form_without_a_fault_is_let_through() -> None:
    form = Form({"a": "x"})
    assert form.text("a", 1, 8) == "x"
    form.finish()


@pytest.mark.parametrize("value", [1, 0, "true", [], {}])
def test_a_boolean_is_true_or_false_alone(value: Any) -> None:
    form = Form({"b": value})
    assert form.boolean("b", default=True) is True
    assert faults_of(form)["b"].startswith("must be true or false")


@pytest.mark.parametrize("text", ["a\nb", "a\tb", "\x1b[31m", "a\x85b", "a\u2028b", "a\x7f"])
def test_a_line_holds_no_control_character(text: str) -> None:
    form = Form({"t": text})
    assert form.text("t", 1, 99) is None
    assert Form({"t": text}).text("t", 1, 99, line=False) == text


@pytest.mark.parametrize("value", [" ", "\u3000 ", ""])
def test_a_required_text_is_not_blank(value: str) -> None:
    form = Form({"t": value})
    form.text("t", 1, 9, required=True)
    assert form.faults


def test_nested_faults_carry_their_path() -> None:
    form = Form({"limits": {"cost": "much"}, "nodes": [{"id": 1}, 5], "words": ["a", 2], "env": {"K": 3}})
    limits = form.part("limits")
    assert limits is not None
    limits.number("cost", 0, 1)
    for node in form.objects("nodes", 1, 9):
        node.text("id", 1, 9)
    form.texts("words", 0, 9, 1, 9)
    form.mapping("env", 9, 9)
    assert set(faults_of(form)) == {"limits.cost", "nodes.0.id", "nodes.1", "words.1", "env.K"}


def test_an_unknown_field_is_named_with_a_near_one_and_a_read_only_one_as_such() -> None:
    form = Form({"timout": 1, "id": "x"})
    form.only(("timeout",), ("id",))
    assert 'did you mean "timeout"' in faults_of(form)["timout"]
    assert "set by the centre" in faults_of(form)["id"]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-29T09:00:00Z", datetime(2026, 11, 29, 9, tzinfo=UTC)),
        ("2026-11-29T09:00Z", datetime(2026, 11, 29, 9, tzinfo=UTC)),
        ("2026-11-29T10:00:00.5+01:00", datetime(2026, 11, 29, 9, 0, 0, 500_000, tzinfo=UTC)),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_to_utc(text: str, instant: datetime) -> None:
    assert read_instant(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29",
        "2026-11-29T09:00:00",
        "2026-11-29 09:00:00Z",
        "2026-W48-7T09:00:00Z",
        "2026-02-30T09:00:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T09:00:00.1234567Z",
        "1970-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59Z",
        "٢٠٢٦-11-29T09:00:00Z",
        "2026-11-29T09:00:00+25:00",
        "",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_instant(text)


@given(st.dictionaries(st.sampled_from(["a", "b"]), ANY_JSON))
def test_no_json_value_breaks_a_form(value: dict[str, Any]) -> None:
    """OPS-8: bad input costs a fault, never more."""
    form = Form(value)
    form.only(("a",))
    form.text("a", 1, 5)
    form.slug("a")
    form.integer("a", 0, 5)
    form.number("a", 0, 5)
    form.boolean("a", default=True)
    form.choice("a", ("x", "y"))
    form.instant("a")
    form.texts("a", 0, 2, 0, 3)
    form.mapping("a", 2, 3)
    for inner in form.objects("a", 0, 2):
        inner.text("b", 0, 3, required=True)
    assert all(isinstance(fault.message, str) for fault in form.faults)


@given(st.text(min_size=12))
def test_a_message_never_quotes_a_value(secret: str) -> None:
    """Casebook sec-03: a validation error must not carry the key that stood in the wrong field."""
    form = Form(dict.fromkeys("ncibltsf", secret) | {"u": f"{secret}\n", "p": secret})
    form.integer("n", 0, 1)
    form.choice("c", ("x", "y"))
    form.instant("i")
    form.boolean("b", default=False)
    form.texts("l", 0, 1, 0, 1)
    form.text("t", 0, 1)
    form.text("u", 0, 1_000_000)
    form.slug("s")
    form.number("f", 0, 1)
    form.part("p")
    assert not any(secret in fault.message for fault in form.faults if secret.strip())


def test_a_patch_merges_objects_resets_with_null_and_replaces_what_has_a_kind() -> None:
    current = {"name": "a", "limits": {"cost": 1, "calls": 2}, "runtime": {"kind": "http", "url": "u"}}
    limits = merged(current, {"limits": {"cost": None, "bytes": 3}})["limits"]
    assert limits == {"cost": None, "calls": 2, "bytes": 3}
    assert merged(current, {"name": None})["name"] is None
    for runtime in ({"kind": "http", "url": "v"}, {"kind": "python", "path": "m:f"}, {"url": "v"}, 5, None):
        assert merged(current, {"runtime": runtime})["runtime"] == runtime
    assert current["limits"] == {"cost": 1, "calls": 2}
