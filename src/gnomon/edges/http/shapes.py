"""Shapes that many routes share, for the OpenAPI document: problems, faults, cadences, what is written strictly.

A shape describes; what reads a body is the domain's form. Schemathesis holds the two together in a test.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SLUG = r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$"


class Written(BaseModel):
    """A body: a field that is not named here is refused."""

    model_config = ConfigDict(extra="forbid")


class FaultShape(BaseModel):
    """One thing wrong with one field."""

    field: str = Field(description="A dotted path, such as runtime.url or nodes.0.id")
    message: str


class Problem(BaseModel):
    """What went wrong (RFC 9457); what is known besides stands beside these under its own name."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="urn:gnomon:problem: and the code")
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable, for programs")
    errors: list[FaultShape] = Field(description="Every fault, field by field; empty where no field is wrong")
    request_id: str


class TargetShape(Written):
    """What is fired: an agent or a team, by id or slug."""

    kind: Literal["agent", "team"]
    id: str


class LimitsShape(Written):
    """Bounds of one run; null is no bound."""

    output_bytes: int | None = Field(None, ge=1, le=100_000_000)
    model_calls: int | None = Field(None, ge=1, le=1_000_000)
    cost: float | None = Field(None, ge=0, le=1_000_000, description="US dollars")


_Times = Annotated[str | list[str], Field(description="HH:MM or HH:MM:SS, one or several")]
_Days = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class _Cadence(Written):
    zone: str = Field("UTC", description="An IANA zone")
    anchor: str | None = Field(None, description="The instant from which phases count")


class _OnDates(_Cadence):
    exclude: list[str] = Field(default_factory=list, description="Local dates without a slot")
    calendar: str | None = Field(None, description="The slug of a holiday calendar")


class EveryMinutes(_Cadence):
    """Every so many minutes, in elapsed time."""

    unit: Literal["minute"]
    every: int = Field(1, ge=5, le=1_440)


class EveryHours(_Cadence):
    """Every so many hours, in elapsed time."""

    unit: Literal["hour"]
    every: int = Field(1, ge=1, le=168)


class EveryDays(_OnDates):
    """At times of day, every so many days."""

    unit: Literal["day"]
    every: int = Field(1, ge=1, le=365)
    at: _Times


class EveryWeeks(_OnDates):
    """On days of the week, every so many weeks."""

    unit: Literal["week"]
    every: int = Field(1, ge=1, le=52)
    days: list[_Days]
    at: _Times


class EveryMonths(_OnDates):
    """On a day of the month, or on its n-th or last weekday, every so many months."""

    unit: Literal["month"]
    every: int = Field(1, ge=1, le=24)
    day: int | Literal["last"] | None = None
    short_month: Literal["clamp", "skip"] | None = None
    weekday: _Days | None = None
    nth: Literal[1, 2, 3, 4, 5, -1] | None = None
    at: _Times


class Once(_OnDates):
    """Once, at a local date and time."""

    unit: Literal["once"]
    at: str


class CronLine(_OnDates):
    """Five-field cron."""

    cron: str


class RRule(_OnDates):
    """A part of RFC 5545."""

    rrule: str
    at: _Times | None = None


CadenceShape = EveryMinutes | EveryHours | EveryDays | EveryWeeks | EveryMonths | Once | CronLine | RRule


class Listing(BaseModel):
    """One page of a list; ``next_cursor`` is null on the last."""

    items: list[Any]
    next_cursor: str | None
