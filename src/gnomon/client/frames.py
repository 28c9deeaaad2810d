"""The frames of ``/v1/connect`` as an instance says and hears them (CONTRACT, "WebSocket"). PURE.

What is unknown is passed over: a newer centre may say more.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gnomon.domain.invocation import Invocation, Limits, Message, Result, Usage

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trigger:
    """One slot of a job, pushed to this instance and to no other (JOB-3).

    ``dedup_key`` is the name of its effect: a push that is repeated has the same one, and the same ``id`` (JOB-4).
    """

    id: str
    job: str
    nominal_at: datetime
    dedup_key: str
    payload: Any = None
    redelivered: bool = False

    @property
    def idempotency_key(self) -> str:
        """The name of this one trigger over all its pushes."""
        return self.id


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a piece of pushed work ended: ``succeeded``, ``failed`` or ``cancelled``, and what to say of it."""

    status: str
    text: str | None = None
    usage: Usage | None = None
    is_retryable: bool = field(default=False)


def encode(frame: Frame) -> str:
    """A frame as it is sent."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def read(text: str | bytes) -> Frame | None:
    """A frame, or ``None`` for what is none."""
    try:
        frame = json.loads(text)
    except ValueError:
        return None
    return frame if isinstance(frame, dict) else None


def trigger(frame: Mapping[str, Any]) -> Trigger:
    """The trigger of a ``job_trigger``."""
    return Trigger(
        id=str(frame["trigger_id"]),
        job=str(frame["job"]),
        nominal_at=datetime.fromisoformat(frame["nominal_at"]),
        dedup_key=str(frame["dedup_key"]),
        payload=frame.get("payload"),
        redelivered=bool(frame.get("redelivered")),
    )


def invocation(frame: Mapping[str, Any]) -> Invocation:
    """The invocation of a ``run_trigger``: the same record as every other kind of agent gets."""
    nominal = frame.get("nominal_fire_at")
    limits = frame.get("limits") or {}
    return Invocation(
        run_id=str(frame["run_id"]),
        attempt=int(frame.get("attempt", 1)),
        fence=int(frame["fence"]),
        idempotency_key=str(frame["idempotency_key"]),
        query=str(frame["query"]),
        deadline=datetime.fromisoformat(frame["deadline"]),
        dedup_key=frame.get("dedup_key"),
        nominal_fire_at=None if nominal is None else datetime.fromisoformat(nominal),
        tenant=frame.get("tenant"),
        session_id=frame.get("session_id"),
        messages=tuple(Message(each["role"], each["content"]) for each in frame.get("messages") or ()),
        traceparent=frame.get("traceparent"),
        limits=Limits(limits.get("output_bytes"), limits.get("model_calls"), limits.get("cost")),
    )


def outcome(answer: object) -> Outcome:
    """What a handler answered: nothing, a text, a mapping of ``output``/``note``, ``status`` and ``usage``, a ``Result``."""
    if answer is None:
        return Outcome("succeeded")
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, Result):
        return Outcome("succeeded", answer.output, answer.usage)
    if isinstance(answer, Mapping):
        text = answer.get("output", answer.get("note"))
        return Outcome(
            str(answer.get("status", "succeeded")),
            None if text is None else str(text),
            _usage(answer.get("usage")),
        )
    return Outcome("succeeded", str(answer))


def failure(error: BaseException) -> Outcome:
    """What a handler raised."""
    return Outcome("failed", f"{type(error).__name__}: {error}".rstrip(": "))


def _usage(found: object) -> Usage | None:
    if not isinstance(found, Mapping):
        return None
    names = ("model_calls", "input_tokens", "output_tokens", "cost")
    return Usage(**{name: found[name] for name in names if name in found})
