"""Who asks, and what they are told where they may not (SEC-1, SEC-3)."""

import pytest

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Refused
from gnomon.domain.target import Target, TargetKind


def test_a_key_of_one_role_works_for_no_other() -> None:
    """BRD-1, JOB-5."""
    bound, free = Caller("key_1", role="pm"), Caller("key_2")
    bound.require_role("pm")
    free.require_role("dev")
    with pytest.raises(Refused) as caught:
        bound.require_role("dev")
    assert (caught.value.code, caught.value.data) == ("key_bound_to_role", {"role": "pm"})
    assert caught.value.message == 'This key serves the role "pm", not "dev".'
    assert bound.bound_to_role(None).message == 'This key serves the role "pm".'


def test_a_key_that_is_bound_to_a_target_is_told_to_which() -> None:
    """SEC-3."""
    told = Caller("key_1", target=Target(TargetKind.AGENT, "digest")).bound()
    assert isinstance(told, Refused)
    assert "agent" in told.message
    assert "digest" in told.message
