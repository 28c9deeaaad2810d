"""A stale edit is refused; one that does not say, or says "whatever", is not (SCH-4)."""

import pytest

from gnomon.domain.errors import RevisionStale
from gnomon.domain.versions import require, tag


@pytest.mark.parametrize(
    "match", [None, frozenset({"*"}), frozenset({"agt_1.2"}), frozenset({"x", "agt_1.2"})]
)
def test_an_edit_from_what_is_there_goes_on(match: frozenset[str] | None) -> None:
    require(match, "agt_1", 2)


@pytest.mark.parametrize(
    "match", [frozenset(), frozenset({"agt_1.1"}), frozenset({"agt_0.2"}), frozenset({"2"})]
)
def test_a_stale_edit_is_refused_with_the_present_version(match: frozenset[str]) -> None:
    """SCH-4; also one made from another record that had the same slug."""
    with pytest.raises(RevisionStale) as caught:
        require(match, "agt_1", 2)
    assert caught.value.data == {"version": 2}


def test_a_tag_names_record_and_version() -> None:
    assert tag("agt_1", 2) != tag("agt_1", 3)
    assert tag("agt_1", 2) != tag("agt_2", 2)
