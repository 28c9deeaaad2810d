"""Runs as JSON: how they are written out, and how the API describes them."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from gnomon.domain.ids import Kind, sibling
from gnomon.domain.instants import rfc3339
from gnomon.domain.run import Attempt, Run, RunStatus, Trigger
from gnomon.edges.http.schedule_answers import error_json, instant
from gnomon.edges.http.schedule_shapes import ErrorShape
from gnomon.edges.http.shapes import Listing, TargetShape, Written


class AttemptShape(BaseModel):
    """One try inside a run; ``fence`` is the grant of the lease that it worked under."""

    number: int
    fence: int
    worker: str | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: RunStatus | None
    error: ErrorShape | None


class UsageShape(Written):
    """What a run consumed; ``cost`` in US dollars."""

    model_calls: int = Field(0, ge=0)
    input_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    cost: float = Field(0.0, ge=0)


class RunShape(BaseModel):
    """One execution of a target."""

    id: str
    trigger: Trigger
    status: RunStatus
    target: TargetShape
    schedule_id: str | None
    revision: int | None
    nominal_fire_at: datetime | None
    scheduled_for: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_seconds: float | None
    fence: int
    attempts: list[AttemptShape]
    possibly_half_done: bool
    cancel_requested_at: datetime | None
    session_id: str | None
    message_id: str | None
    trace_id: str | None
    usage: UsageShape
    response_preview: str | None
    error: ErrorShape | None
    invoked_by: str | None
    api_key_id: str | None
    source: str | None
    idempotency_key: str
    dedup_key: str | None


class RunDetail(RunShape):
    """A run with its answer in full."""

    output: str | None


class RunPage(Listing):
    """A page of runs, the newest first."""

    items: list[RunShape]


class CompleteWrite(Written):
    """How a run ended that its target took with a 202."""

    fence: int = Field(ge=0, le=2**63 - 1)
    status: Literal["succeeded", "failed", "cancelled"]
    output: str | None = Field(None, max_length=1_000_000)
    usage: UsageShape | None = None


def run_json(run: Run) -> dict[str, Any]:
    """A run as lists show it (CONTRACT, "Run")."""
    return {
        "id": run.id,
        "trigger": run.trigger.value,
        "status": run.status.value,
        "target": {"kind": run.target.kind.value, "id": run.target.id},
        "schedule_id": run.schedule_id,
        "revision": run.revision,
        "nominal_fire_at": instant(run.nominal_fire_at),
        "scheduled_for": rfc3339(run.scheduled_for),
        "started_at": instant(run.started_at),
        "finished_at": instant(run.finished_at),
        "duration_seconds": run.duration_seconds,
        "fence": run.fence,
        "attempts": [_attempt_json(attempt) for attempt in run.attempts],
        "possibly_half_done": run.possibly_half_done,
        "cancel_requested_at": instant(run.cancel_requested_at),
        "session_id": run.session_id,
        "message_id": None if run.session_id is None else sibling(Kind.MESSAGE, run.id),
        "trace_id": run.trace_id,
        "usage": asdict(run.usage),
        "response_preview": run.response_preview,
        "error": error_json(run.error),
        "invoked_by": run.invoked_by,
        "api_key_id": run.api_key_id,
        "source": run.source,
        "idempotency_key": run.idempotency_key,
        "dedup_key": run.dedup_key,
    }


def run_detail_json(run: Run, output: str | None) -> dict[str, Any]:
    """A run with its answer in full (RUN-11)."""
    return {**run_json(run), "output": output}


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "fence": attempt.fence,
        "worker": attempt.worker,
        "started_at": instant(attempt.started_at),
        "finished_at": instant(attempt.finished_at),
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "error": error_json(attempt.error),
    }
