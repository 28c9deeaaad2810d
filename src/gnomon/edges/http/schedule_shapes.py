"""Schedules, their ledger and their revisions as JSON: how they are written out, and how the API describes them."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from gnomon.cadence import Slot
from gnomon.domain import definition as definitions
from gnomon.domain.instants import from_micros, rfc3339
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.run import RunError
from gnomon.domain.schedule import CatchUp, OnLost, Overlap, Revision, Schedule, ScheduleStatus, SessionMode
from gnomon.services.explain import Explanation, Verdict
from gnomon.services.timetable import Told


class TargetModel(BaseModel):
    """What a schedule fires."""

    kind: Literal["agent", "team"]
    id: str = Field(description="An id or a slug; answered as the id")


class RetryModel(BaseModel):
    """How often a run is tried in all, and how long it waits in between: doubling, up to the maximum."""

    max_attempts: int = Field(1, ge=1, le=10)
    backoff_seconds: int = Field(10, ge=0, le=86_400)
    backoff_max_seconds: int = Field(600, ge=0, le=86_400)


class ScheduleEdit(BaseModel):
    """The fields of a schedule that people write; in an edit, those that change."""

    name: str | None = Field(None, min_length=1, max_length=200)
    target: TargetModel | None = None
    cadence: dict[str, Any] | None = Field(None, description="The rule that yields its slots")
    query: str = Field(
        "", max_length=100_000, description="{{now}}, {{date}}, {{lastRunAt}}, {{runCount}} are filled in"
    )
    session_mode: SessionMode = SessionMode.FRESH
    session_id: str | None = Field(None, description="With session_mode fixed; made if it is not given")
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000_000)
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LATEST
    misfire_grace_seconds: int | None = Field(
        None, ge=1, le=86_400, description="Null: half the distance to the next slot, from 60 to 3,600"
    )
    timeout_seconds: int = Field(300, ge=1, le=86_400)
    retry: RetryModel = Field(default_factory=lambda: RetryModel.model_validate({}))
    failure_limit: int = Field(5, ge=1, le=100)
    on_lost: OnLost = OnLost.FAIL
    jitter_seconds: int = Field(0, ge=0, le=86_400)
    invoke_as: str | None = Field(None, max_length=254, description="The e-mail address of a known principal")
    scopes: list[str] = Field(default_factory=list, max_length=50)
    dedup_key: str | None = Field(
        None, min_length=1, max_length=500, description="A template, as the query is"
    )


class ScheduleWrite(ScheduleEdit):
    """A schedule as it is made."""

    name: str = Field(min_length=1, max_length=200)
    target: TargetModel
    cadence: dict[str, Any] = Field(description="The rule that yields its slots")


class StatusDetailModel(BaseModel):
    """Who set the status, when and why; ``until`` for a pause that ends by itself."""

    by: str
    at: datetime
    reason: str | None
    until: datetime | None


class ErrorModel(BaseModel):
    """A stable code and a sentence."""

    code: str
    message: str


class ScheduleModel(ScheduleWrite):
    """A schedule as it stands."""

    id: str
    status: ScheduleStatus
    status_detail: StatusDetailModel
    revision: int
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    run_count: int
    failure_streak: int
    last_error: ErrorModel | None
    in_flight_run_id: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str


class ScheduleList(BaseModel):
    """A page of schedules."""

    items: list[ScheduleModel]
    next_cursor: str | None


class PauseWrite(BaseModel):
    """Why, and until when."""

    reason: str | None = Field(None, min_length=1, max_length=1_000)
    until: datetime | None = None


class CoalescedModel(BaseModel):
    """Older slots that were missed and are recorded with this one."""

    first: datetime
    last: datetime
    count: int


class OccurrenceModel(BaseModel):
    """What became of one slot."""

    schedule_id: str
    nominal_fire_at: datetime
    local_time: str
    revision: int
    disposition: Disposition
    reason: Reason | None
    coalesced: CoalescedModel | None
    run_id: str | None
    session_id: str | None
    links_erased_at: datetime | None
    created_at: datetime


class OccurrenceList(BaseModel):
    """A page of the ledger, the newest slot first."""

    items: list[OccurrenceModel]
    next_cursor: str | None


class RevisionModel(BaseModel):
    """One revision of a definition."""

    revision: int
    author: str
    created_at: datetime
    definition: ScheduleWrite


class RevisionList(BaseModel):
    """A page of revisions, the newest first."""

    items: list[RevisionModel]
    next_cursor: str | None


class SlotModel(BaseModel):
    """One slot to come."""

    at: datetime
    local_time: str
    offset: str
    note: str | None


class SlotList(BaseModel):
    """The next slots."""

    items: list[SlotModel]


class ExplanationStatus(BaseModel):
    """The status that stood in a slot's way."""

    status: ScheduleStatus
    at: datetime
    by: str
    reason: str | None


class ExplanationModel(BaseModel):
    """What became of an instant, and why."""

    schedule_id: str
    at: datetime
    local_time: str
    verdict: Verdict
    sentence: str
    revision: int | None
    occurrence: OccurrenceModel | None
    status: ExplanationStatus | None
    before: datetime | None
    after: datetime | None


def instant(at: datetime | None) -> str | None:
    """An instant that may be missing."""
    return None if at is None else rfc3339(at)


def error_json(error: RunError | None) -> dict[str, str] | None:
    """An error that may be missing."""
    return None if error is None else {"code": error.code, "message": error.message}


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    """A schedule as it is read (CONTRACT, "Schedule")."""
    detail = schedule.status_detail
    return {
        "id": schedule.id,
        **definitions.to_json(schedule.definition),
        "status": schedule.status.value,
        "status_detail": {
            "by": detail.by,
            "at": rfc3339(detail.at),
            "reason": detail.reason,
            "until": instant(detail.until),
        },
        "revision": schedule.revision,
        "next_fire_at": instant(schedule.next_fire_at),
        "last_fire_at": instant(schedule.last_fire_at),
        "run_count": schedule.run_count,
        "failure_streak": schedule.failure_streak,
        "last_error": error_json(schedule.last_error),
        "in_flight_run_id": schedule.in_flight_run_id,
        "created_at": rfc3339(schedule.created_at),
        "created_by": schedule.created_by,
        "updated_at": rfc3339(schedule.updated_at),
        "updated_by": schedule.updated_by,
    }


def occurrence_json(told: Told) -> dict[str, Any]:
    """A record of the ledger (CONTRACT, "Occurrence")."""
    record = told.occurrence
    older = record.coalesced
    return {
        "schedule_id": record.schedule_id,
        "nominal_fire_at": rfc3339(record.nominal_fire_at),
        "local_time": told.local_time,
        "revision": record.revision,
        "disposition": record.disposition.value,
        "reason": None if record.reason is None else record.reason.value,
        "coalesced": None
        if older is None
        else {"first": rfc3339(older.first), "last": rfc3339(older.last), "count": older.count},
        "run_id": record.run_id,
        "session_id": record.session_id,
        "links_erased_at": instant(record.links_erased_at),
        "created_at": rfc3339(record.created_at),
    }


def revision_json(revision: Revision) -> dict[str, Any]:
    """One revision of a definition (SCH-4)."""
    return {
        "revision": revision.revision,
        "author": revision.author,
        "created_at": rfc3339(revision.created_at),
        "definition": revision.definition,
    }


def slot_json(slot: Slot) -> dict[str, Any]:
    """One slot to come, as the preview shows it (CAD-8)."""
    return {"at": rfc3339(slot.at), "local_time": slot.local_time, "offset": slot.offset, "note": slot.note}


def explanation_json(found: Explanation) -> dict[str, Any]:
    """The answer to why (DSP-9)."""
    status = found.status
    return {
        "schedule_id": found.schedule_id,
        "at": rfc3339(found.at),
        "local_time": found.local_time,
        "verdict": found.verdict.value,
        "sentence": found.sentence,
        "revision": found.revision,
        "occurrence": None if found.told is None else occurrence_json(found.told),
        "status": None
        if status is None
        else {
            "status": status.status,
            "at": rfc3339(from_micros(status.at)),
            "by": status.by,
            "reason": status.reason,
        },
        "before": instant(found.before),
        "after": instant(found.after),
    }
