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
    Task,
    TaskGrant,
    TaskStatus,
    cycle_from,
    to_json,
)
from gnomon.domain.task_form import TaskDraft, draft_of, read_edit, read_new, read_report
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
