"""The tool of whoever can't go on without a person: ask, and let the task wait for the answer."""

from pydantic import Field

from gnomon.domain.scopes import Scope
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tasks import TaskShown, shown_task
from gnomon.edges.mcp.tool import Given, Seat, Side, tool
from gnomon.edges.mcp.work import HeldAsked
from gnomon.services.questions import QUESTION_CHARACTERS, SO_FAR_CHARACTERS


class QuestionAsked(HeldAsked):
    """Which claim, and what a person has to say."""

    question: str = Field(
        description="The question, with all that a person needs to answer it",
        min_length=1,
        max_length=QUESTION_CHARACTERS,
    )
    so_far: str = Field(
        "", description="What is done and what is left, for whoever goes on", max_length=SO_FAR_CHARACTERS
    )


class QuestionGiven(Given):
    """The question, and the task that waits for its answer."""

    question_id: str = Field(
        description="The question is a task too: get_task shows its answer in last_report"
    )
    task: TaskShown


@tool(Side.WORKER, Scope.TASKS_CLAIM, destroys=True, repeats=True)
async def ask_human(services: Services, seat: Seat, asked: QuestionAsked) -> QuestionGiven:
    """Ask a person, and give the task back until the answer is there.

    The question becomes a task of the role human, and yours waits in the backlog until that is done; then next_task hands
    it out again, to you or another, with the answer. Do not wait for it.
    """
    found = await services.questions.ask(
        seat.caller, asked.task_id, asked.fence, asked.question, asked.so_far
    )
    return QuestionGiven(
        question_id=found.question.id,
        task=shown_task(found.task),
        next="The task is out of your hands until a person has answered: do nothing more for it. Call next_task for other "
        "work.",
    )


TOOLS = (ask_human,)
