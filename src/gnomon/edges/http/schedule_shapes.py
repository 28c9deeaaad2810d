"""How the API describes schedules, their ledger, their revisions and explanations."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.schedule import CatchUp, OnLost, Overlap, ScheduleStatus, SessionMode
from gnomon.edges.http.shapes import CadenceShape, Listing, TargetShape, Written
from gnomon.services.explain import Verdict


class RetryWrite(Written):
    """How often a run is tried in all, and how long it waits in between: doubling, up to the maximum."""

    max_attempts: int | None = Field(None, ge=1, le=10, description="1 unless it is given")
    backoff_seconds: int | None = Field(None, ge=0, le=86_400, description="10 unless it is given")
    backoff_max_seconds: int | None = Field(None, ge=0, le=86_400, description="600 unless it is given")


class _Fields(Written):
    query: str | None = Field(
        None, max_length=100_000, description="{{now}}, {{date}}, {{lastRunAt}}, {{runCount}} are filled in"
    )
    session_mode: SessionMode | None = Field(None, description="fresh unless it is given")
    session_id: str | None = Field(None, description="With session_mode fixed; made if it is not given")
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000_000)
    overlap: Overlap | None = Field(None, description="skip unless it is given")
    catch_up: CatchUp | None = Field(None, description="latest unless it is given")
    misfire_grace_seconds: int | None = Field(
        None, ge=1, le=86_400, description="Null: half the distance to the next slot, from 60 to 3,600"
    )
    timeout_seconds: int | None = Field(None, ge=1, le=86_400, description="300 unless it is given")
    retry: RetryWrite | None = None
    failure_limit: int | None = Field(None, ge=1, le=100, description="5 unless it is given")
    on_lost: OnLost | None = Field(None, description="fail unless it is given")
    jitter_seconds: int | None = Field(None, ge=0, le=86_400, description="0 unless it is given")
    invoke_as: str | None = Field(None, max_length=254, description="The e-mail address of a known principal")
    scopes: list[str] | None = Field(None, max_length=50)
    dedup_key: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        description="The name under which a slot's effect exists once: a template over the slot, as report-{{date}}",
    )


class ScheduleEdit(_Fields):
    """A patch of a schedule: null takes a field back to its default; target and cadence are replaced whole."""

    name: str | None = Field(None, min_length=1, max_length=200)
    target: TargetShape | None = None
    cadence: CadenceShape | None = None


class ScheduleWrite(_Fields):
    """A schedule as it is made."""

    name: str = Field(min_length=1, max_length=200)
    target: TargetShape
    cadence: CadenceShape = Field(description="The rule that yields its slots")


class RetryShape(BaseModel):
    """The retry policy as it stands."""

    max_attempts: int
    backoff_seconds: int
    backoff_max_seconds: int


class DefinitionShape(BaseModel):
    """The part of a schedule that people write and that is revisioned, its defaults filled in."""

    name: str
    target: TargetShape
    cadence: dict[str, Any]
    query: str
    session_mode: SessionMode
    session_id: str | None
    starts_at: datetime | None
    ends_at: datetime | None
    max_runs: int | None
    overlap: Overlap
    catch_up: CatchUp
    misfire_grace_seconds: int | None
    timeout_seconds: int
    retry: RetryShape
    failure_limit: int
    on_lost: OnLost
    jitter_seconds: int
    invoke_as: str | None
    scopes: list[str]
    dedup_key: str | None


class StatusDetailShape(BaseModel):
    """Who set the status, when and why; ``until`` for a pause that ends by itself."""

    by: str
    at: datetime
    reason: str | None
    until: datetime | None


class ErrorShape(BaseModel):
    """A stable code and a sentence."""

    code: str
    message: str


class ScheduleShape(DefinitionShape):
    """A schedule as it stands."""

    id: str
    status: ScheduleStatus
    status_detail: StatusDetailShape
    revision: int
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    run_count: int
    failure_streak: int
    last_error: ErrorShape | None
    in_flight_run_id: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str


class SchedulePage(Listing):
    """A page of schedules."""

    items: list[ScheduleShape]


class PauseWrite(Written):
    """Why, and until when."""

    reason: str | None = Field(None, min_length=1, max_length=1_000)
    until: datetime | None = None


class CoalescedShape(BaseModel):
    """Older slots that were missed and are recorded with this one."""

    first: datetime
    last: datetime
    count: int


class OccurrenceShape(BaseModel):
    """What became of one slot."""

    schedule_id: str
    nominal_fire_at: datetime
    local_time: str
    revision: int
    disposition: Disposition
    reason: Reason | None
    coalesced: CoalescedShape | None
    run_id: str | None
    session_id: str | None
    links_erased_at: datetime | None
    created_at: datetime


class OccurrencePage(Listing):
    """A page of the ledger, the newest slot first."""

    items: list[OccurrenceShape]


class RevisionShape(BaseModel):
    """One revision of a definition."""

    revision: int
    author: str
    created_at: datetime
    definition: DefinitionShape


class RevisionPage(Listing):
    """A page of revisions, the newest first."""

    items: list[RevisionShape]


class NextSlot(BaseModel):
    """One slot to come."""

    at: datetime
    local_time: str
    offset: str
    note: str | None


class NextSlots(BaseModel):
    """The next slots."""

    items: list[NextSlot]


class StandingStatus(BaseModel):
    """The status that stood in a slot's way."""

    status: ScheduleStatus
    at: datetime
    by: str
    reason: str | None


class ExplanationShape(BaseModel):
    """What became of an instant, and why."""

    schedule_id: str
    at: datetime
    local_time: str
    verdict: Verdict
    sentence: str
    revision: int | None
    occurrence: OccurrenceShape | None
    status: StandingStatus | None
    before: datetime | None
    after: datetime | None
