"""Scopes: what covers what (SEC-1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import Refused
from gnomon.domain.scopes import NAMES, Scope, allows, beyond


@pytest.mark.parametrize(
    ("held", "wanted", "covered"),
    [
        (["*"], "agents:write", True),
        (["*"], "*", True),
        (["agents:*"], "agents:write", True),
        (["agents:*"], "agents:*", True),
        (["agents:read"], "agents:read", True),
        (["agents:read"], "agents:write", False),
        (["agents:read"], "agents:*", False),
        (["agents:*"], "*", False),
        (["agents:*"], "teams:read", False),
        ([], "agents:read", False),
    ],
)
def test_what_covers_what(held: list[str], wanted: str, covered: bool) -> None:
    assert allows(held, wanted) is covered


@given(st.lists(st.sampled_from(NAMES)), st.lists(st.sampled_from(NAMES)))
def test_nobody_hands_out_more_than_they_have(held: list[str], wanted: list[str]) -> None:
    """SEC-3: whatever the given scopes allow, the giver's allow too."""
    given_out = [scope for scope in wanted if scope not in beyond(held, wanted)]
    assert all(allows(held, scope) for scope in Scope if allows(given_out, scope))


def test_a_caller_without_the_scope_is_refused_by_its_name() -> None:
    with pytest.raises(Refused) as caught:
        Caller("key_1", ("agents:read",)).require("agents:write")
    assert caught.value.code == "scope_missing"
    assert caught.value.data == {"scope": "agents:write"}
    system("cli").require("keys:write")
