"""Which tasks a list shows."""

from dataclasses import replace

import pytest

from gnomon.domain.filters import TaskFilter
from gnomon.domain.task import Holder, Task, TaskStatus
from support.databases import START

FREE = Task(
    "tsk_1", "pm", "Look", "", 0, TaskStatus.BACKLOG, (), "key", 3, False, None, None, START, "key_1", START
)
HELD = replace(FREE, status=TaskStatus.IN_PROGRESS, held_by=Holder("ins_1", "anna", 3, START, START))


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        (TaskFilter(), (True, True)),
        (TaskFilter(role="pm"), (True, True)),
        (TaskFilter(role="dev"), (False, False)),
        (TaskFilter(status=TaskStatus.IN_PROGRESS), (False, True)),
        (TaskFilter(holder="anna"), (False, True)),
        (TaskFilter(holder="ins_1"), (False, True)),
        (TaskFilter(holder="ben"), (False, False)),
        (TaskFilter(dedup_key="key"), (True, True)),
        (TaskFilter(dedup_key="other"), (False, False)),
    ],
)
def test_a_task_is_shown_where_it_fits_each_bound(chosen: TaskFilter, shown: tuple[bool, bool]) -> None:
    """BRD-1."""
    assert (chosen.takes(FREE), chosen.takes(HELD)) == shown
