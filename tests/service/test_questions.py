"""A holder asks a person: one transaction gives the task back, puts the question and closes the gate (BRD-3, BRD-8)."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import FenceStale, Invalid, Missing, Refused
from gnomon.domain.filters import TaskFilter
from gnomon.domain.task import Task, TaskGrant, TaskStatus
from gnomon.services.mint import Mint
from gnomon.services.questions import HUMAN, QUESTION_CHARACTERS, Questions
from gnomon.services.signal import Signal
from gnomon.services.tasks import Tasks
from gnomon.stores import audit
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock

ADA = system("ada")
WRITER: Mapping[str, Any] = {"role": "writer", "title": "Write it", "priority": 3}


class Board:
    """A board with one task on it."""

    def __init__(self, database: Database, clock: FrozenClock, mint: Mint) -> None:
        signal = Signal()
        self.database = database
        self.tasks = Tasks(database, clock, mint, signal, lock_seconds=120, heartbeat_timeout_seconds=120)
        self.questions = Questions(database, mint, signal)

    async def claimed(self, role: str = "writer", caller: Caller = ADA) -> TaskGrant | None:
        found = await self.tasks.claim(caller, {"role": role, "instance": caller.actor})
        return found[0] if found else None

    async def all(self) -> list[Task]:
        return await self.tasks.page(ADA, TaskFilter(), "", 100)

    async def told(self, task_id: str, action: Action) -> list[dict[str, object]]:
        found = await self.database.read(
            lambda tx: audit.after(tx, 0, 100, action=action, subject_id=task_id)
        )
        return [entry.detail for entry in found]

    async def actions(self, task_id: str) -> list[str]:
        found = await self.database.read(lambda tx: audit.after(tx, 0, 100, subject_id=task_id))
        return [str(entry.action) for entry in found]


@pytest.fixture
async def board(database: Database, clock: FrozenClock, mint: Mint) -> Board:
    made = Board(database, clock, mint)
    await made.tasks.create(ADA, WRITER)
    return made


async def test_the_answer_opens_the_gate_and_nobody_else_has_to(board: Board) -> None:
    """BRD-8."""
    grant = await board.claimed()
    assert grant is not None
    asked = await board.questions.ask(ADA, grant.task.id, grant.fence, "Which colour?", "the frame")
    assert (asked.task.status, asked.task.held_by) == (TaskStatus.BACKLOG, None)
    assert [need.task_id for need in asked.task.waits_for] == [asked.question.id]
    assert (asked.question.role, asked.question.priority) == (HUMAN, 3)
    assert "the frame" in asked.question.body
    assert await board.claimed() is None
    person = await board.claimed(HUMAN)
    assert person is not None
    await board.tasks.report(ADA, person.task.id, {"fence": person.fence, "status": "done", "note": "Blue."})
    resumed = await board.claimed()
    assert resumed is not None
    assert (resumed.task.id, resumed.fence) == (grant.task.id, grant.fence + 1)


async def test_each_claim_has_one_end_in_the_audit(board: Board) -> None:
    """BRD-7."""
    grant = await board.claimed()
    assert grant is not None
    asked = await board.questions.ask(ADA, grant.task.id, grant.fence, "Why?", "")
    assert await board.actions(grant.task.id) == [Action.CREATE, Action.CLAIM, Action.RELEASE, Action.UPDATE]
    assert await board.actions(asked.question.id) == [Action.CREATE]
    assert await board.told(grant.task.id, Action.CLAIM) == [{"instance": ADA.actor, "role": "writer"}]


async def test_of_the_same_question_twice_at_once_one_is_put(board: Board) -> None:
    """IDM-2: a repeat after a lost answer, or beside the first."""
    grant = await board.claimed()
    assert grant is not None
    asked = await asyncio.gather(
        *(board.questions.ask(ADA, grant.task.id, grant.fence, "Why?", "so far") for _ in range(4))
    )
    assert len({each.question.id for each in asked}) == 1
    assert len(await board.all()) == 2


async def test_another_question_under_the_same_claim_comes_too_late(board: Board) -> None:
    """BRD-3: the first one was the release."""
    grant = await board.claimed()
    assert grant is not None
    await board.questions.ask(ADA, grant.task.id, grant.fence, "Why?", "")
    with pytest.raises(FenceStale):
        await board.questions.ask(ADA, grant.task.id, grant.fence, "And when?", "")
    assert len(await board.all()) == 2


@pytest.mark.parametrize(("caller", "step"), [(system("eve"), 0), (ADA, 1), (ADA, -1)])
async def test_who_does_not_hold_the_task_asks_nothing(board: Board, caller: Caller, step: int) -> None:
    """BRD-3: remembered in the audit, and nothing else is written."""
    grant = await board.claimed()
    assert grant is not None
    with pytest.raises(FenceStale):
        await board.questions.ask(caller, grant.task.id, grant.fence + step, "May I?", "")
    (task,) = await board.all()
    assert (task.status, task.needs, task.last_report) == (TaskStatus.IN_PROGRESS, (), None)
    assert await board.actions(task.id) == [Action.CREATE, Action.CLAIM, Action.FENCED]


async def test_a_question_asks_no_question(board: Board) -> None:
    grant = await board.claimed()
    assert grant is not None
    await board.questions.ask(ADA, grant.task.id, grant.fence, "Why?", "")
    person = await board.claimed(HUMAN)
    assert person is not None
    with pytest.raises(Invalid, match="is a question itself"):
        await board.questions.ask(ADA, person.task.id, person.fence, "Why do you ask?", "")


async def test_bad_input_is_told_at_its_field(board: Board) -> None:
    """OPS-8."""
    grant = await board.claimed()
    assert grant is not None
    for fence, question, field in (
        (-1, "Why?", "fence"),
        (grant.fence, " ", "question"),
        (grant.fence, "?" * (QUESTION_CHARACTERS + 1), "question"),
    ):
        with pytest.raises(Invalid) as caught:
            await board.questions.ask(ADA, grant.task.id, fence, question, "")
        assert [fault.field for fault in caught.value.faults] == [field]
    with pytest.raises(Missing):
        await board.questions.ask(ADA, "tsk_nothing", 1, "Why?", "")
    with pytest.raises(Refused):
        await board.questions.ask(
            Caller("key_r", ("tasks:*",), role="reader"), grant.task.id, grant.fence, "Why?", ""
        )


@pytest.mark.parametrize(
    ("question", "title"),
    [("Red\tor\n\nblue?", "Red or blue?"), ("\u200b\u2028", "A question"), ("x" * 300, "x" * 199 + "…")],
)
async def test_its_first_line_is_its_title(board: Board, question: str, title: str) -> None:
    grant = await board.claimed()
    assert grant is not None
    asked = await board.questions.ask(ADA, grant.task.id, grant.fence, question, "")
    assert asked.question.title == title
