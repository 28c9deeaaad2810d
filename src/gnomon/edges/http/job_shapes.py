"""How the API describes jobs and their triggers (CONTRACT, "Job" and "Trigger")."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from gnomon.domain.trigger import TriggerReason, TriggerStatus
from gnomon.edges.http.schedule_shapes import CoalescedShape
from gnomon.edges.http.shapes import SLUG, CadenceShape, Listing, Written

_KEY = "The name under which a slot's effect exists once: a template over the slot and the payload, as {{job}}-{{date}}"


class _Fields(Written):
    name: str | None = Field(None, min_length=1, max_length=200)
    payload: Any = Field(None, description="Any JSON, up to 100,000 characters; {} unless it is given")
    grace_seconds: int | None = Field(
        None,
        ge=1,
        le=86_400,
        description="How long a slot waits for an instance. Null: half the distance to the next slot, from 60 to 3,600",
    )
    enabled: bool | None = Field(None, description="true unless it is given")


class JobEdit(_Fields):
    """A patch of a job: null takes a field back to its default; cadence and payload are replaced whole."""

    role: str | None = Field(None, pattern=SLUG)
    cadence: CadenceShape | None = None
    dedup_key: str | None = Field(None, min_length=1, max_length=500, description=_KEY)


class JobWrite(_Fields):
    """A job as it is made; a missing slug is made from the name."""

    slug: str | None = Field(None, pattern=SLUG)
    role: str = Field(pattern=SLUG, description="Whose instances get it")
    cadence: CadenceShape = Field(description="The rule that yields its slots")
    dedup_key: str = Field(min_length=1, max_length=500, description=_KEY)


class JobShape(BaseModel):
    """A job as it stands."""

    id: str
    slug: str
    name: str
    role: str
    cadence: dict[str, Any]
    payload: Any
    dedup_key: str
    grace_seconds: int | None
    enabled: bool
    version: int
    next_fire_at: datetime | None = Field(
        description="Null while it is not enabled, and where no slot is left"
    )
    last_fire_at: datetime | None = Field(description="The newest slot that was given to an instance")
    error: str | None = Field(
        description="Why its next slot can't be computed, where it was set aside for that"
    )
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str


class JobPage(Listing):
    """One page of jobs."""

    items: list[JobShape]


class TriggerShape(BaseModel):
    """What became of one slot of a job."""

    id: str
    job_id: str
    nominal_fire_at: datetime
    dedup_key: str
    instance_id: str | None = Field(description="The instance that has it, or had it")
    status: TriggerStatus
    reason: TriggerReason | None
    note: str | None = Field(description="What the instance said of its end")
    coalesced: CoalescedShape | None = Field(description="Older slots that were missed with it")
    pushes: int = Field(description="How often it was sent, under this one id")
    pushed_at: datetime | None
    acknowledged_at: datetime | None
    finished_at: datetime | None
    created_at: datetime


class TriggerPage(Listing):
    """One page of triggers."""

    items: list[TriggerShape]
