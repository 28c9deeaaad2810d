"""The one record type that fires a target: its definition, its five statuses and their transitions (SCH-1, SCH-2)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gnomon.cadence import Cadence
from gnomon.domain.agent import TIMEOUT_SECONDS_DEFAULT
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import RunError
from gnomon.domain.target import Target

MISFIRE_GRACE_SECONDS = (1, 86_400)
FAILURE_LIMIT = (1, 100)  # SCH-14
JITTER_SECONDS = (0, 86_400)
MAX_RUNS = (1, 1_000_000_000)
NAME_CHARACTERS = (1, 200)
QUERY_CHARACTERS = (0, 100_000)


class ScheduleStatus(StrEnum):
    """SCH-2's five statuses."""

    ACTIVE = "active"
    PAUSED = "paused"  # by a person
    COMPLETED = "completed"  # ran out of slots
    ERROR = "error"  # auto-paused after failures, or its next slot can't be computed
    DISABLED = "disabled"  # its target was deleted


class ScheduleEvent(StrEnum):
    """What moves a schedule from one status to another."""

    PAUSE = "pause"
    RESUME = "resume"
    EXHAUST = "exhaust"
    FAIL_OUT = "fail_out"
    LOSE_TARGET = "lose_target"
    REVISE = "revise"  # an edit that gives a finished schedule slots again


_S, _E = ScheduleStatus, ScheduleEvent
# What is not in the table is refused. A finished schedule comes back by an edit alone, a disabled one by a resume
# once its target exists again: neither by itself.
TRANSITIONS: dict[tuple[ScheduleStatus, ScheduleEvent], ScheduleStatus] = {
    (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
    (_S.ACTIVE, _E.EXHAUST): _S.COMPLETED,
    (_S.ACTIVE, _E.FAIL_OUT): _S.ERROR,
    (_S.ACTIVE, _E.LOSE_TARGET): _S.DISABLED,
    (_S.PAUSED, _E.PAUSE): _S.PAUSED,
    (_S.PAUSED, _E.RESUME): _S.ACTIVE,
    (_S.PAUSED, _E.EXHAUST): _S.COMPLETED,
    (_S.PAUSED, _E.LOSE_TARGET): _S.DISABLED,
    (_S.ERROR, _E.PAUSE): _S.PAUSED,
    (_S.ERROR, _E.RESUME): _S.ACTIVE,
    (_S.ERROR, _E.EXHAUST): _S.COMPLETED,
    (_S.ERROR, _E.LOSE_TARGET): _S.DISABLED,
    (_S.COMPLETED, _E.REVISE): _S.ACTIVE,
    (_S.COMPLETED, _E.LOSE_TARGET): _S.DISABLED,
    (_S.DISABLED, _E.RESUME): _S.ACTIVE,
    (_S.DISABLED, _E.EXHAUST): _S.COMPLETED,
}


def after(status: ScheduleStatus, event: ScheduleEvent) -> ScheduleStatus | None:
    """The status that ``event`` leads to, or ``None`` where it is not allowed."""
    return TRANSITIONS.get((status, event))


class SessionMode(StrEnum):
    """SCH-7: a session for each run, or one that every run appends to."""

    FRESH = "fresh"
    FIXED = "fixed"


class Overlap(StrEnum):
    """DSP-8: what becomes of a slot that comes due while a run of the schedule is unfinished."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    CANCEL_RUNNING = "cancel_running"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """DSP-7: whether the newest late slot inside the grace still fires."""

    LATEST = "latest"
    NONE = "none"


class OnLost(StrEnum):
    """RUN-8: what becomes of a run whose process died."""

    FAIL = "fail"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Definition:
    """The part of a schedule that people write and that is revisioned (SCH-4). The defaults are SCH-14's."""

    name: str
    target: Target
    cadence: Cadence
    query: str = ""
    session_mode: SessionMode = SessionMode.FRESH
    session_id: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    misfire_grace_seconds: int | None = None
    timeout_seconds: int = TIMEOUT_SECONDS_DEFAULT
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    failure_limit: int = 5
    on_lost: OnLost = OnLost.FAIL
    jitter_seconds: int = 0
    invoke_as: str | None = None
    scopes: tuple[str, ...] = ()
    dedup_key: str | None = None


@dataclass(frozen=True, slots=True)
class StatusDetail:
    """Who set the present status, when and why; ``until`` for a pause that ends by itself."""

    by: str
    at: datetime
    reason: str | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands (CONTRACT, "Schedule")."""

    id: str
    definition: Definition
    anchor_at: datetime
    status: ScheduleStatus
    status_detail: StatusDetail
    revision: int
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    run_count: int
    failure_streak: int
    last_error: RunError | None
    in_flight_run_id: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a schedule's definition, with its author (SCH-4). ``definition`` is its JSON form."""

    schedule_id: str
    revision: int
    definition: dict[str, object]
    author: str
    created_at: datetime
