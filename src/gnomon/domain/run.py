"""One execution of a target, whatever started it: its states, their transitions, its record (RUN-1, RUN-9)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gnomon.domain.invocation import Usage
from gnomon.domain.target import Target

INTERACTIVE = 0  # a person waits: run-now, invoke
SCHEDULED = 10
PREVIEW_CHARACTERS = 500


class RunStatus(StrEnum):
    """RUN-1's one state machine."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"


TERMINAL = frozenset(
    {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.CANCELLED, RunStatus.LOST}
)
FAILURES = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.LOST})  # these move the streak (SCH-8)

# From each status to the ones it may become. Back to queued: a retry's backoff, a release, a resume.
TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.FAILED}),
    RunStatus.RUNNING: TERMINAL | {RunStatus.QUEUED},
    **{status: frozenset() for status in TERMINAL},
}


class Trigger(StrEnum):
    """What started a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    INVOKE = "invoke"


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run or an attempt failed: a stable code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try inside a run. ``outcome`` is a terminal status, or ``None`` while it works."""

    number: int
    fence: int
    worker: str | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: RunStatus | None
    error: RunError | None


@dataclass(frozen=True, slots=True)
class Run:
    """The record of one run as people read it (CONTRACT, "Run")."""

    id: str
    trigger: Trigger
    status: RunStatus
    target: Target
    schedule_id: str | None
    revision: int | None
    nominal_fire_at: datetime | None
    session_id: str | None
    scheduled_for: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_seconds: float | None
    fence: int
    attempts: tuple[Attempt, ...]
    possibly_half_done: bool
    cancel_requested_at: datetime | None
    trace_id: str | None
    usage: Usage
    response_preview: str | None
    error: RunError | None
    invoked_by: str | None
    api_key_id: str | None
    source: str | None
    idempotency_key: str
    dedup_key: str | None


def preview(output: str) -> str:
    """The beginning of an answer, for lists; the full one is in the session (RUN-9)."""
    return output if len(output) <= PREVIEW_CHARACTERS else output[: PREVIEW_CHARACTERS - 1] + "…"
