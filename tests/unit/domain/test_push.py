"""A push's statuses, row by row, and the name under which it travels (TGT-1)."""

import itertools

import pytest

from gnomon.domain.push import ENDED, TRANSITIONS, PushKey, PushStatus, Withdrawal, key_of

OPEN = {
    ("waiting", "pending"),
    ("pending", "pushed"),
    ("pending", "waiting"),
    ("pushed", "acknowledged"),
    ("pushed", "waiting"),
}
ENDS = {
    *((status, "withdrawn") for status in ("waiting", "pending", "pushed", "acknowledged")),
    *((status, end) for status in ("pushed", "acknowledged") for end in ("succeeded", "failed")),
}


@pytest.mark.parametrize(("before", "then"), list(itertools.product(PushStatus, PushStatus)))
def test_each_pair_of_statuses(before: PushStatus, then: PushStatus) -> None:
    """JOB-4: what was acknowledged never goes back to wait for somebody else."""
    assert (then in TRANSITIONS[before]) is ((before.value, then.value) in OPEN | ENDS)
    assert not (before in ENDED and TRANSITIONS[before])


@pytest.mark.parametrize(
    ("key", "wire_id"), [(PushKey("run_1", "", 7), "run_1"), (PushKey("run_1", "draft", 7), "run_1/draft")]
)
def test_what_travels_names_one_push(key: PushKey, wire_id: str) -> None:
    """TGT-1: two nodes of one run are told apart, whatever an instance answers."""
    assert key.wire_id == wire_id
    assert key_of(wire_id, 7) == key


def test_what_an_instance_is_told_is_a_frame() -> None:
    """CONTRACT, "WebSocket"."""
    assert {each.value for each in Withdrawal} == {"cancel", "revoke"}
