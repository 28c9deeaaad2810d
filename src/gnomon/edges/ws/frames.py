"""The frames of ``/v1/connect``, both ways: their shapes, and the JSON schema of each (CONTRACT, "WebSocket").

A frame is one JSON object in one text message. An instance may say more than is read here; what it says of these fields
has to have their shape.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from gnomon.domain.errors import Fault, Invalid

_LARGEST = 2**63 - 1
_Slug = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$")]
_Id = Annotated[str, Field(min_length=1, max_length=200)]
_Fence = Annotated[int, Field(ge=0, le=_LARGEST)]
_Count = Annotated[int, Field(ge=0, le=_LARGEST)]


class _Heard(BaseModel):
    """What an instance says: other fields are passed over, so that a newer one may say more."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Said(BaseModel):
    """What the centre says."""

    model_config = ConfigDict(extra="allow")


class InFlight(_Heard):
    """One piece of work that goes on over a reconnect: a run with its fence, or a trigger."""

    run_id: _Id | None = None
    fence: _Fence | None = None
    trigger_id: _Id | None = None


class Usage(_Heard):
    """What an attempt has cost so far, or in all."""

    model_calls: _Count = 0
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cost: float = Field(0.0, ge=0, le=1_000_000_000, description="US dollars", strict=False)


class Hello(_Heard):
    """The first frame of a connection: who connects."""

    type: Literal["hello"]
    role: _Slug
    instance: str = Field(
        min_length=1,
        max_length=200,
        description="Its name: whoever comes again under it is the same instance",
    )
    version: str | None = Field(None, min_length=1, max_length=200)
    max_in_flight: int | None = Field(
        None, ge=1, le=1_000, description="How much it works on at once; missing: as much as there is"
    )
    in_flight: list[_Id | InFlight] | None = Field(
        None,
        max_length=2_000,
        description="What it still works on, as ids or with fences. Missing: what it has acknowledged goes on; a list "
        "without something that it has acknowledged: that was lost",
    )


class Heartbeat(_Heard):
    """The instance lives: to be sent every ``heartbeat_seconds`` of the welcome. Any other frame says so too."""

    type: Literal["heartbeat"]


class Ack(_Heard):
    """The instance has a trigger."""

    type: Literal["ack"]
    trigger_id: _Id


class Result(_Heard):
    """How a trigger ended."""

    type: Literal["result"]
    trigger_id: _Id
    status: Literal["succeeded", "failed"]
    note: str | None = Field(None, max_length=10_000)


class Drain(_Heard):
    """The instance wants nothing new; what it has goes on."""

    type: Literal["drain"]


class RunAck(_Heard):
    """The instance works on a run: it is given to nobody else."""

    type: Literal["run_ack"]
    run_id: _Id
    fence: _Fence


class RunProgress(_Heard):
    """A line for the run's event stream, or its usage so far."""

    type: Literal["run_progress"]
    run_id: _Id
    fence: _Fence
    text: str | None = Field(None, max_length=100_000, description="Cut after 2,000 characters")
    usage: Usage | None = None


class RunResult(_Heard):
    """How a run's attempt ended: its output, or why there is none."""

    type: Literal["run_result"]
    run_id: _Id
    fence: _Fence
    status: Literal["succeeded", "failed", "cancelled"]
    output: str | None = Field(None, max_length=1_000_000)
    error: str | None = Field(None, max_length=100_000, description="Cut after 2,000 characters")
    retryable: bool = Field(False, description="Whether the run's retry policy may try again")
    usage: Usage | None = None


class Welcome(_Said):
    """The answer to hello."""

    type: Literal["welcome"]
    instance_id: str
    epoch: int = Field(description="Which of the instance's connections this is")
    heartbeat_seconds: float = Field(description="How often the instance says heartbeat")
    heartbeat_timeout_seconds: float = Field(
        description="An instance that was silent for so long is given up: what it works on may be another's by then"
    )


class JobTrigger(_Said):
    """One slot of a job, for this instance and no other. It answers ack, then result."""

    type: Literal["job_trigger"]
    trigger_id: str
    job: str
    nominal_at: datetime
    dedup_key: str = Field(description="The name of its effect")
    payload: Any
    redelivered: bool = Field(description="Whether it may have been pushed before: the same id, the same key")


class RunTrigger(_Said):
    """One attempt of a run, for this instance and no other. It answers run_ack, then run_result."""

    type: Literal["run_trigger"]
    run_id: str = Field(description="Of a team's node it ends in a slash and the node's id")
    fence: int
    attempt: int
    idempotency_key: str = Field(description="The same over all attempts")
    dedup_key: str | None
    nominal_fire_at: datetime | None
    deadline: datetime
    tenant: str | None
    query: str
    session_id: str | None
    messages: list[dict[str, str]]
    role: str
    limits: dict[str, float]
    traceparent: str | None
    redelivered: bool


class Cancel(_Said):
    """Stop this: a person wants it, or it is out of time."""

    type: Literal["cancel"]
    run_id: str | None = None
    fence: int | None = None
    trigger_id: str | None = None


class Revoke(_Said):
    """Drop this: it is not yours any more, and what you say of it changes nothing."""

    type: Literal["revoke"]
    run_id: str | None = None
    fence: int | None = None
    trigger_id: str | None = None


class Error(_Said):
    """A frame that changed nothing, and why; ``about`` is its type where it could be read."""

    type: Literal["error"]
    code: str = Field(description="Stable, for programs")
    detail: str
    about: str | None = None
    errors: list[dict[str, str]] = Field(default_factory=list, description="Every fault, field by field")


HEARD: dict[str, type[_Heard]] = {
    "hello": Hello,
    "heartbeat": Heartbeat,
    "ack": Ack,
    "result": Result,
    "drain": Drain,
    "run_ack": RunAck,
    "run_progress": RunProgress,
    "run_result": RunResult,
}
SAID: dict[str, type[_Said]] = {
    "welcome": Welcome,
    "job_trigger": JobTrigger,
    "run_trigger": RunTrigger,
    "cancel": Cancel,
    "revoke": Revoke,
    "error": Error,
}


def read(value: Any) -> dict[str, Any]:
    """A frame of an instance, its shape checked; fields that are missing are null.

    Raises:
        Invalid: ``not_a_frame``; ``unknown_type``; ``invalid_frame`` with every fault at its field.
    """
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise Invalid('A frame is a JSON object with a "type".', code="not_a_frame")
    model = HEARD.get(value["type"])
    if model is None:
        raise Invalid(
            f'There is no frame of the type "{value["type"][:64]}"; there are {", ".join(HEARD)}.',
            code="unknown_type",
        )
    try:
        return model.model_validate(value).model_dump()
    except ValidationError as error:
        raise Invalid(
            [Fault(_field(each["loc"]), _in_words(each)) for each in error.errors()],
            code="invalid_frame",
        ) from None


def _field(where: tuple[int | str, ...]) -> str:
    """Where a fault is, without the name of the shape that was tried."""
    return ".".join(
        str(part) for part in where if part != "InFlight" and not str(part).startswith("constrained")
    )


def _in_words(fault: ErrorDetails) -> str:
    """What is wrong with a field, said as it is of a field of a body."""
    words = _WORDS.get(fault["type"])
    return fault["msg"] if words is None else words.format(**fault.get("ctx") or {})


_WORDS = {
    "missing": "is required",
    "literal_error": "must be one of {expected}",
    "string_pattern_mismatch": "must be lower-case letters, digits, - and _, at most 64, the first and last none of - and _",
    "string_too_short": "must have at least {min_length:,} character",
    "string_too_long": "must have at most {max_length:,} characters",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
    "too_long": "must have at most {max_length:,} items",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be an object",
}


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of every frame, by direction and type."""
    return {
        "from_instance": {name: model.model_json_schema() for name, model in HEARD.items()},
        "from_centre": {name: model.model_json_schema() for name, model in SAID.items()},
    }
