"""The default workflow as a table, row by row; cycles by name; what a report may say (BRD-3, BRD-8)."""

from typing import Any

import pytest

from gnomon.domain.errors import Invalid
from gnomon.domain.form import Form
from gnomon.domain.task import (
    OVER,
    REPORTABLE,
    TRANSITIONS,
    Need,
    Report,
    Task,
    TaskGrant,
    TaskStatus,
    cycle_from,
    report_json,
    to_json,
)
from gnomon.domain.task_form import (
    RESULT_CHARACTERS,
    TaskDraft,
    draft_of,
    read_claim,
    read_edit,
    read_new,
    read_renew,
    read_report,
)
from support.databases import START

S = TaskStatus
TASK = Task("tsk_1", "pm", "Look", "", 0, S.BACKLOG, (), "key", 3, False, None, None, START, "key_1", START)


@pytest.mark.parametrize(
    ("status", "following"),
    [
        (S.BACKLOG, {S.IN_PROGRESS, S.BLOCKED, S.DONE, S.CANCELLED}),
        (S.IN_PROGRESS, {S.BACKLOG, S.IN_REVIEW, S.BLOCKED, S.DONE, S.CANCELLED}),
        (S.IN_REVIEW, {S.BACKLOG, S.BLOCKED, S.DONE, S.CANCELLED}),
        (S.BLOCKED, {S.BACKLOG, S.DONE, S.CANCELLED}),
        (S.DONE, {S.BACKLOG}),
        (S.CANCELLED, {S.BACKLOG}),
    ],
)
def test_the_workflow_is_a_table(status: TaskStatus, following: set[TaskStatus]) -> None:
    """BRD-3."""
    assert TRANSITIONS[status] == following


def test_only_a_claim_leads_into_progress_and_a_report_may_say_what_leads_out() -> None:
    """BRD-1, BRD-3: what is over stays so until a person opens it again."""
    assert set(TRANSITIONS) == set(TaskStatus)
    assert [status for status, following in TRANSITIONS.items() if S.IN_PROGRESS in following] == [S.BACKLOG]
    assert set(TaskStatus) - {S.IN_PROGRESS} == REPORTABLE
    assert all(TRANSITIONS[status] == {S.BACKLOG} for status in OVER)


@pytest.mark.parametrize(
    ("needs", "cycle"),
    [
        ({}, None),
        ({"a": ["b"], "b": ["c"]}, None),
        ({"a": ["a"]}, ("a", "a")),
        ({"a": ["b"], "b": ["a"]}, ("a", "b", "a")),
        ({"a": ["x", "b"], "b": ["c"], "c": ["a"], "x": []}, ("a", "b", "c", "a")),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, {("b", "c", "b"), ("c", "b", "c")}),
        ({"b": ["c"], "c": ["b"]}, None),
    ],
)
def test_a_cycle_is_named_from_the_task_on(needs: dict[str, list[str]], cycle: Any) -> None:
    """BRD-8: each needs the next; what can't be reached from the task is not its affair."""
    found = cycle_from("a", needs)
    assert found in cycle if isinstance(cycle, set) else found == cycle


def test_a_cycle_of_any_length_is_found() -> None:
    """BRD-8: any depth."""
    chain = {f"t{n}": [f"t{n + 1}"] for n in range(20_000)}
    assert cycle_from("t0", chain) is None
    found = cycle_from("t0", {**chain, "t20000": ["t0"]})
    assert found is not None
    assert (len(found), found[0], found[-1]) == (20_002, "t0", "t0")


def test_prerequisites_are_a_set() -> None:
    form = Form({"role": "pm", "title": "t", "prerequisites": ["tsk_2", "tsk_1", "tsk_2"]})
    assert read_new(form) == TaskDraft("pm", "t", "", 0, ("tsk_1", "tsk_2"))
    form.finish()


@pytest.mark.parametrize("status", sorted(status.value for status in REPORTABLE))
def test_a_role_goes_with_the_backlog_alone(status: str) -> None:
    """BRD-3: a hand-over is claimable by the other role at once."""
    form = Form({"fence": 1, "status": status, "role": "qa"})
    read_report(form)
    assert bool(form.faults) == (status != S.BACKLOG)


def test_an_edit_lies_over_what_stands() -> None:
    assert read_edit(TASK, {"title": "New", "priority": None}) == TaskDraft(
        "pm", "New", "", 0, (), "key", S.BACKLOG
    )
    assert read_edit(TASK, {}) == draft_of(TASK)
    with pytest.raises(Invalid) as refused:
        read_edit(TASK, {"dedup_key": "other", "fence": 4, "title": "", "nonsense": 1})
    assert {fault.field for fault in refused.value.faults} == {"dedup_key", "fence", "title", "nonsense"}


def test_what_is_not_done_is_waited_for() -> None:
    """BRD-1: a cancelled prerequisite is told as such and opens nothing."""
    needs = tuple(Need(f"tsk_{status}", status) for status in TaskStatus)
    task = Task("tsk_9", "pm", "t", "", 0, S.BACKLOG, needs, None, 0, True, None, None, START, "key_1", START)
    assert {need.status for need in task.waits_for} == set(TaskStatus) - {S.DONE}
    assert {"id": "tsk_cancelled", "status": "cancelled"} in to_json(task)["waits_for"]
    assert TaskGrant(task, 1, "c", START).verify_first


def test_a_claim_is_read_with_its_defaults() -> None:
    """BRD-1."""
    form = Form({"role": "pm", "instance": "anna"})
    claim = read_claim(form)
    form.finish()
    assert (claim.role, claim.instance, claim.limit, claim.claim_id, claim.wait_seconds) == (
        "pm",
        "anna",
        1,
        None,
        0.0,
    )


def test_a_claim_tells_every_fault_at_once() -> None:
    form = Form({"role": "No Slug", "limit": 0, "wait_seconds": 31, "more": 1})
    read_claim(form)
    assert {fault.field for fault in form.faults} == {"role", "instance", "limit", "wait_seconds", "more"}


def test_a_renewal_may_say_how_far_it_is() -> None:
    """BRD-2."""
    form = Form({"fence": 3, "note": "half"})
    renewal = read_renew(form)
    form.finish()
    assert (renewal.fence, renewal.instance, renewal.note) == (3, None, "half")


def test_a_result_that_is_too_large_is_refused() -> None:
    """BRD-3."""
    form = Form({"fence": 3, "status": "done", "result": "x" * (RESULT_CHARACTERS + 1)})
    read_report(form)
    assert [fault.field for fault in form.faults] == ["result"]


def test_what_a_holder_said_last_is_read_in_full() -> None:
    """BRD-6."""
    said = Report(S.BLOCKED, "why", [1], None, "anna", 3, START)
    found = report_json(said)
    assert (found["status"], found["note"], found["result"]) == ("blocked", "why", [1])
