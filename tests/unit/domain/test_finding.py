"""What a doctor can find is told, each kind once (IDM-4)."""

import re

from gnomon.domain.finding import TOLD, Finding, Kind, Where


def test_each_kind_is_told_in_a_sentence() -> None:
    """IDM-4: what is printed has a meaning in the reference."""
    assert list(TOLD) == list(Kind)
    for kind, said in TOLD.items():
        assert re.fullmatch(r"[a-z_]+", kind.value)
        assert re.fullmatch(r"[A-Z].*\.", said)


def test_a_finding_says_where_what_and_what_to_do() -> None:
    """IDM-4."""
    found = Finding(Kind.KEY_ENDS, Where("key", "key_1", "ci"), "It ends.", "Make another.")
    assert (found.kind, found.where.id, found.advice) == (Kind.KEY_ENDS, "key_1", "Make another.")
