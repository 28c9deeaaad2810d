"""Tools over runs: list, read."""

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import BaseModel, Field

from gnomon.domain.errors import Invalid
from gnomon.domain.filters import EVER, LAST, RunFilter, RunPlace
from gnomon.domain.instants import maybe_rfc3339, rfc3339
from gnomon.domain.run import TERMINAL, Attempt, Run, RunError, RunStatus, Trigger
from gnomon.domain.scopes import Scope
from gnomon.edges.mcp.paging import CURSOR, LIMIT, page_of
from gnomon.edges.mcp.services import Services
from gnomon.edges.mcp.tool import Asked, Given, Instant, Seat, Side, tool

OUTPUT_CHARACTERS = 20_000
_Named = Field(description="The run's id (run_…)", min_length=1, max_length=64)


class ErrorShown(BaseModel):
    """Why a run or one of its attempts failed."""

    code: str
    message: str


class RunShown(BaseModel):
    """What an agent needs of a run; the whole of it is in the API."""

    id: str
    status: RunStatus
    trigger: Trigger
    target: dict[str, str]
    schedule_id: str | None
    nominal_fire_at: Instant | None
    scheduled_for: Instant
    started_at: Instant | None
    finished_at: Instant | None
    possibly_half_done: bool
    cancel_requested: bool
    error: ErrorShown | None
    response_preview: str | None


class AttemptShown(BaseModel):
    """One try inside a run."""

    number: int
    started_at: Instant | None
    finished_at: Instant | None
    outcome: RunStatus | None
    error: ErrorShown | None


class UsageShown(BaseModel):
    """What a run consumed; ``cost`` in US dollars."""

    model_calls: int
    input_tokens: int
    output_tokens: int
    cost: float


class RunsAsked(Asked):
    """Which runs."""

    status: RunStatus | None = Field(None, strict=False, description="Only those in this status")
    schedule_id: str | None = Field(
        None, description="Only those of this schedule (sch_…)", min_length=1, max_length=64
    )
    target: str | None = Field(
        None,
        description="Only those of this agent or team, by id or slug; not together with schedule_id",
        min_length=1,
        max_length=64,
    )
    limit: int = LIMIT
    cursor: str | None = CURSOR


class RunsGiven(Given):
    """A page of runs."""

    runs: list[RunShown]
    next_cursor: str | None


@tool(Side.OPERATOR, Scope.RUNS_READ, reads=True)
async def list_runs(services: Services, _seat: Seat, asked: RunsAsked) -> RunsGiven:
    """List runs, the newest first.

    Of everything, of one schedule, or of one agent or team.
    """
    if asked.schedule_id is not None:
        if asked.target is not None:
            raise Invalid("Give schedule_id or target, not both.")
        part = await services.runs.of_schedule(
            asked.schedule_id, asked.status, _place(asked.cursor), asked.limit
        )
        shown: Sequence[Run] = part.runs
        rest = part.rest
        cursor = None if rest is None else f"{rest.before_slot} {rest.before_id}"
    else:
        chosen = RunFilter(status=asked.status, target=asked.target)
        found = await services.runs.page(chosen, asked.cursor or LAST, asked.limit + 1)
        shown, cursor = page_of(found, asked.limit, lambda run: run.id)
    last = (
        "More follow: call list_runs with this next_cursor as cursor and the same filters."
        if cursor
        else "These are all. get_run shows one with its attempts and its answer in full."
    )
    return RunsGiven(runs=[_shown(run) for run in shown], next_cursor=cursor, next=last)


class RunAsked(Asked):
    """Which run."""

    run_id: str = _Named


class RunGiven(Given):
    """One run."""

    run: RunShown


class RunDetailGiven(RunGiven):
    """One run with its attempts and its answer."""

    attempts: list[AttemptShown]
    usage: UsageShown
    output: str | None = Field(description=f"Its answer, the first {OUTPUT_CHARACTERS:,} characters")
    output_is_whole: bool


@tool(Side.OPERATOR, Scope.RUNS_READ, reads=True)
async def get_run(services: Services, _seat: Seat, asked: RunAsked) -> RunDetailGiven:
    """Read one run.

    How it stands, its attempts with their errors, what it used, and its answer.
    """
    run, output = await services.runs.get(asked.run_id)
    over = run.status in TERMINAL
    return RunDetailGiven(
        run=_shown(run),
        attempts=[_attempt(attempt) for attempt in run.attempts],
        usage=UsageShown.model_validate(asdict(run.usage)),
        output=None if output is None else output[:OUTPUT_CHARACTERS],
        output_is_whole=output is None or len(output) <= OUTPUT_CHARACTERS,
        next="It is over: tell how it went."
        if over
        else "It is not over. Call get_run again in half a minute or later, not sooner.",
    )


def run_given(run: Run) -> RunGiven:
    """A run as the answer of a tool."""
    over = run.status in TERMINAL
    last = f"It is {run.status.value}." if over else f"get_run with {run.id} shows how it goes."
    return RunGiven(run=_shown(run), next=last)


def _shown(run: Run) -> RunShown:
    return RunShown(
        id=run.id,
        status=run.status,
        trigger=run.trigger,
        target={"kind": run.target.kind.value, "id": run.target.id},
        schedule_id=run.schedule_id,
        nominal_fire_at=maybe_rfc3339(run.nominal_fire_at),
        scheduled_for=rfc3339(run.scheduled_for),
        started_at=maybe_rfc3339(run.started_at),
        finished_at=maybe_rfc3339(run.finished_at),
        possibly_half_done=run.possibly_half_done,
        cancel_requested=run.cancel_requested_at is not None,
        error=_error(run.error),
        response_preview=run.response_preview,
    )


def _attempt(attempt: Attempt) -> AttemptShown:
    return AttemptShown(
        number=attempt.number,
        started_at=maybe_rfc3339(attempt.started_at),
        finished_at=maybe_rfc3339(attempt.finished_at),
        outcome=attempt.outcome,
        error=_error(attempt.error),
    )


def _error(error: RunError | None) -> ErrorShown | None:
    return None if error is None else ErrorShown(code=error.code, message=error.message)


def _place(cursor: str | None) -> RunPlace:
    slot, _, run_id = (cursor or "").partition(" ")
    if not slot:
        return RunPlace()
    digits = slot.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Invalid("The cursor is not one that this list gave.", code="bad_cursor")
    return RunPlace(max(-EVER, min(EVER, int(slot))), run_id or LAST)


TOOLS = (list_runs, get_run)
