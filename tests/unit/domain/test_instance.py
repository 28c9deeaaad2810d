"""An instance's statuses, row by row, and the form in which it is read (JOB-5; CONTRACT, "Instance")."""

import itertools

import pytest

from gnomon.domain.form import Form
from gnomon.domain.instance import TRANSITIONS, Instance, InstanceStatus, read_name, to_json
from support.databases import START

ALLOWED = {
    ("online", "draining"),
    ("online", "offline"),
    ("draining", "online"),
    ("draining", "offline"),
    ("offline", "online"),
}


@pytest.mark.parametrize(("before", "then"), list(itertools.product(InstanceStatus, InstanceStatus)))
def test_each_pair_of_statuses(before: InstanceStatus, then: InstanceStatus) -> None:
    """JOB-5: who is offline comes back online; nobody goes from there to draining."""
    assert (then in TRANSITIONS[before]) is ((before.value, then.value) in ALLOWED)


def test_it_is_read_as_the_contract_says() -> None:
    """CONTRACT, "Instance"."""
    instance = Instance(
        "ins_1", "pm", "pm-1", InstanceStatus.ONLINE, 2, "prc_1", "1.0", 4, 1, START, START, None, START
    )
    shown = to_json(instance)
    assert {"id", "name", "role", "status", "epoch", "last_heartbeat_at", "in_flight", "server"} <= set(shown)
    assert (shown["status"], shown["last_heartbeat_at"]) == ("online", "2026-11-29T09:00:00Z")
    assert shown["drain_asked_at"] is None


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, None, 7])
def test_a_name_is_one_line(name: object) -> None:
    form = Form({"instance": name})
    assert read_name(form, "instance") is None
    assert [fault.field for fault in form.faults] == ["instance"]
