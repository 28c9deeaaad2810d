"""The board judged: each task with its lock and its gate, the needs of all, and the pairs of claims and ends (OPS-7).

Needs memory for what is held at once, for the needs that are not met, and for the tasks between their first claim and
their last; not for the number of tasks.
"""

from collections.abc import AsyncIterator, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from gnomon.domain.audit import Action
from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.task import TaskStatus
from gnomon.services.verify_facts import Facts
from gnomon.stores.database import Row

_I = Invariant
_ENDS = (Action.RELEASE.value, Action.EXPIRE.value)


def judge(row: Row) -> Iterator[Breach]:
    """Every breach that a task's own row shows, beside its lock and what it needs."""
    task_id, rows = row["id"], (At("tasks", row["id"]),)
    held = row["locked"] is not None
    if held != (row["status"] == TaskStatus.IN_PROGRESS):
        what = "has a lock" if held else "has no lock"
        yield Breach(_I.TASK_LOCK_WRONG, f"Task {task_id} is {row['status']} and {what}.", rows)
    elif held and row["lock_fence"] != row["fence"]:
        sentence = (
            f"Task {task_id} is held under fence {row['lock_fence']}, and its last fence is {row['fence']}."
        )
        yield Breach(_I.TASK_LOCK_WRONG, sentence, (*rows, At("task_locks", task_id)))
    elif held and row["instance"] is None:
        sentence = f"Task {task_id} is held by the instance {row['instance_id']}, which is not there."
        yield Breach(_I.TASK_LOCK_WRONG, sentence, (*rows, At("task_locks", task_id)))
    if row["unmet"] != row["needed"]:
        sentence = f"Task {task_id} counts {row['unmet']} prerequisites that are not done; there are {row['needed']}."
        yield Breach(_I.TASK_GATE_WRONG, sentence, rows)


async def judge_needs(needs: AsyncIterator[Row]) -> AsyncIterator[Breach]:
    """Needs of what is gone, and a cycle among those that are not met (BRD-8)."""
    graph: dict[str, list[str]] = {}
    async for row in needs:
        if row["task"] is None or row["prerequisite"] is None:
            sentence = (
                f"Task {row['task_id']} needs task {row['prerequisite_id']}, and one of them is not there."
            )
            key = f"{row['task_id']} {row['prerequisite_id']}"
            yield Breach(_I.STRAY_ROWS, sentence, (At("task_prerequisites", key),))
        else:
            graph.setdefault(row["task_id"], []).append(row["prerequisite_id"])
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        walk: list[str] = error.args[1][::-1]
        rows = tuple(At("task_prerequisites", f"{one} {other}") for one, other in pairwise(walk))
        yield Breach(_I.TASK_NEEDS_ITSELF, f"Tasks wait for each other: {' needs '.join(walk)}.", rows)


class TaskTrail:
    """The claims of tasks in the audit: feed it every entry in order, then ask ``rest`` for what the last one left open."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._open: dict[str, tuple[int, int]] = {}  # task: fence and number of the entry of its claim
        self._fences: dict[str, int] = {}

    def judge(self, entry: Row) -> Iterator[Breach]:
        """Every breach that this entry shows (BRD-7)."""
        if entry["subject_kind"] != "task":
            return
        if entry["action"] == Action.CLAIM:
            yield from self._claim(entry)
        elif entry["action"] in _ENDS:
            yield from self._end(entry)

    def rest(self, held: dict[str, int]) -> Iterator[Breach]:
        """What is open at the end, against the tasks that are held (id and fence)."""
        for task_id, (fence, seq) in self._open.items():
            if held.get(task_id) != fence:
                sentence = (
                    f"Claim {fence} of task {task_id} was never ended, and the task is not held under it."
                )
                yield Breach(_I.CLAIM_LEFT_OPEN, sentence, (_entry(seq), At("tasks", task_id)))
        for task_id, fence in held.items():
            if task_id not in self._open and not self._facts.audit_is_cleaned(task_id):
                sentence = (
                    f"Task {task_id} is held under fence {fence}, and the audit has no claim open for it."
                )
                yield Breach(_I.END_WITHOUT_CLAIM, sentence, (At("task_locks", task_id),))

    def _claim(self, entry: Row) -> Iterator[Breach]:
        task_id, fence = entry["subject_id"], entry["fence"] or 0
        rows = (_entry(entry["seq"]), At("tasks", task_id))
        if task_id in self._open:
            held, seq = self._open[task_id]
            sentence = f"Task {task_id} was claimed under fence {fence} while claim {held} of it was open."
            yield Breach(_I.CLAIM_LEFT_OPEN, sentence, (_entry(seq), *rows))
        last = self._fences.get(task_id, 0)
        if fence <= last or fence > (fence if entry["task_fence"] is None else entry["task_fence"]):
            sentence = f"Task {task_id} was claimed under fence {fence}, after fence {last}."
            yield Breach(_I.FENCE_NOT_GROWING, sentence, rows)
        self._open[task_id] = (fence, entry["seq"])
        self._fences[task_id] = max(fence, last)

    def _end(self, entry: Row) -> Iterator[Breach]:
        task_id, fence = entry["subject_id"], entry["fence"] or 0
        rows = (_entry(entry["seq"]), At("tasks", task_id))
        held = self._open.pop(task_id, None)
        if held is None and not self._facts.audit_is_cleaned(task_id):
            sentence = f"{entry['action']} of task {task_id} under fence {fence} ends no claim that was open."
            yield Breach(_I.END_WITHOUT_CLAIM, sentence, rows)
        elif held is not None and held[0] != fence:
            sentence = f"{entry['action']} of task {task_id} under fence {fence} ends its claim under fence {held[0]}."
            yield Breach(_I.END_WITHOUT_CLAIM, sentence, (_entry(held[1]), *rows))
        if entry["task_fence"] in (None, fence):  # its last claim: nothing is to be compared with it any more
            self._fences.pop(task_id, None)


def _entry(seq: int) -> At:
    return At("audit", str(seq))
