"""Templates: one pass, nothing expanded twice, nothing else touched (SCH-6)."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.domain.placeholders import NAMES, SlotFacts, resolve, unknown

AT = datetime(2026, 11, 29, 8, 0, tzinfo=UTC)
NASTY = st.text(alphabet="{} nowdateRunCountlastAt\n\\g<1>", max_size=40)
ANY = st.one_of(NASTY, st.text(max_size=60))


def facts(local_date: str = "2026-11-29") -> SlotFacts:
    return SlotFacts(AT, local_date, None, 3)


@given(st.text().filter(lambda text: "{{" not in text))
@settings(max_examples=200, deadline=None)
def test_a_query_without_a_placeholder_comes_back_as_it_is(query: str) -> None:
    """SCH-6."""
    assert resolve(query, facts()) is query
    assert unknown(query) == []


@given(
    st.lists(
        st.tuples(st.text(max_size=20).filter(lambda t: "{" not in t and "}" not in t), NASTY), max_size=6
    )
)
@settings(max_examples=300, deadline=None)
def test_a_value_that_looks_like_a_template_is_never_expanded(parts: list[tuple[str, str]]) -> None:
    """SCH-6: the oracle joins the pieces itself; the value may hold anything."""
    value = "".join(nasty for _, nasty in parts)
    query = "".join(plain + "{{date}}" for plain, _ in parts)
    assert resolve(query, facts(value)) == "".join(plain + value for plain, _ in parts)


@given(ANY)
@settings(max_examples=300, deadline=None)
def test_resolving_never_fails_and_a_query_without_known_names_keeps_its_text(query: str) -> None:
    """SCH-6: whatever was stored, a slot comes out of it."""
    resolved = resolve(query, facts())
    if not any(name in query for name in NAMES):
        assert resolved == query


@given(st.lists(st.from_regex(r"\A[a-z]{1,8}\Z"), max_size=6))
@settings(max_examples=200, deadline=None)
def test_each_unknown_name_is_reported_once_in_order(names: list[str]) -> None:
    """SCH-6."""
    query = " ".join(f"{{{{ {name} }}}}" for name in names)
    expected: list[str] = []
    for name in names:
        if name not in ("now", "date") and name not in expected:
            expected.append(name)
    assert unknown(query) == expected
