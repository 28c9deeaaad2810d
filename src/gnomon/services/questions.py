"""A holder that can't go on without a person asks one: the task goes back to the backlog and waits for the answer (BRD-8).

The question is a task of the role ``human``, and a prerequisite of the task it was asked for. So nobody has to move
anything when the answer is there: whoever reports the question as done opens the gate, and the next holder finds the
answer in that report.
"""

from dataclasses import dataclass

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault, FenceStale, Invalid
from gnomon.domain.form import Form
from gnomon.domain.ids import Kind
from gnomon.domain.task import Task, TaskStatus
from gnomon.domain.task_form import LARGEST_FENCE, TITLE_CHARACTERS, ReportForm, TaskDraft
from gnomon.ports.wakeup import Wakeup
from gnomon.services import task_claims, task_writing
from gnomon.services.mint import Mint
from gnomon.services.tasks import landed, require_role_of
from gnomon.stores.database import Database, Tx
from gnomon.stores.tasks import Hold

HUMAN = "human"
QUESTION_CHARACTERS = 4_000
SO_FAR_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Asked:
    """The task that waits now, and the question as it stands on the board."""

    task: Task
    question: Task


class Questions:
    """The questions on the board of one database."""

    def __init__(self, database: Database, mint: Mint, signal: Wakeup) -> None:
        self._database = database
        self._mint = mint
        self._signal = signal

    async def ask(self, caller: Caller, task_id: str, fence: int, question: str, so_far: str) -> Asked:
        """Give a task back and let it wait for a person's answer. The same question again is the same one (IDM-2).

        Raises:
            Invalid: with every fault; also where the task is a question itself.
            Missing: there is no such task.
            FenceStale: somebody else holds it, or nobody: nothing was changed but the audit.
            Refused: ``key_bound_to_role``.
        """
        form = Form({"fence": fence, "question": question, "so_far": so_far})
        form.integer("fence", 0, LARGEST_FENCE, required=True)
        form.text("question", 1, QUESTION_CHARACTERS, required=True, line=False)
        form.text("so_far", 0, SO_FAR_CHARACTERS, line=False)
        form.finish()

        async def work(tx: Tx) -> Asked | FenceStale:
            await require_role_of(tx, caller, task_id)
            return await self._ask(tx, caller, Hold(task_id, fence, caller.actor), question, so_far)

        asked = landed(await self._database.write_guarded(work))
        self._signal.notify()
        return asked

    async def _ask(
        self, tx: Tx, caller: Caller, held: Hold, question: str, so_far: str
    ) -> Asked | FenceStale:
        if (await task_claims.there(tx, held.task_id)).role == HUMAN:
            raise Invalid([Fault("task_id", "is a question itself: report what you know of the answer")])
        note = f"Asked a person: {question}" + (f"\n\nSo far: {so_far}" if so_far else "")
        report = ReportForm(held.fence, TaskStatus.BACKLOG, note, None, None, None)
        done = await task_claims.report(tx, held, report)
        if isinstance(done, FenceStale):
            return done
        made = await task_writing.create(
            tx, caller, self._mint.make(Kind.TASK), _question(done.task, held.fence, question, so_far)
        )
        needs = [need.task_id for need in done.task.needs]
        if made.task.id not in needs:
            patch = {"prerequisites": [*needs, made.task.id]}
            return Asked(await task_writing.edit(tx, caller, held.task_id, patch), made.task)
        return Asked(done.task, made.task)


def _question(task: Task, fence: int, question: str, so_far: str) -> TaskDraft:
    told = [question, f"Asked while working on task {task.id}, {task.title!r}."]
    if so_far:
        told.append(f"What was done so far: {so_far}")
    told.append(
        "Report this task as done, with the answer as its note: the other one is handed out again then."
    )
    return TaskDraft(
        role=HUMAN,
        title=_line(question),
        body="\n\n".join(told),
        priority=task.priority,
        prerequisites=(),
        dedup_key=f"question:{task.id}:{fence}",
    )


def _line(question: str) -> str:
    """The question as a title: one line, cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in question).split()) or "A question"
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"
