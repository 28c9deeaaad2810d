"""One push of one slot of a job: its statuses, what moves it between them, and why it ended as it did (JOB-3, JOB-4)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from gnomon.domain.instants import maybe_rfc3339, rfc3339
from gnomon.domain.occurrence import Coalesced

NOTE_CHARACTERS = 10_000
# An instance says that it has a trigger before it does anything for it. One that does not say so is half open or hangs.
ACKNOWLEDGE_SECONDS = 10
# How long after it was pushed a trigger may still be pushed to another instance, whatever its grace.
REPEAT_SECONDS = 600
MOST_PUSHES = 5  # a trigger that kills whoever gets it is not passed on for ever


class TriggerStatus(StrEnum):
    """CONTRACT, "Trigger"."""

    PENDING = "pending"  # waits for an instance, or for the server that holds its instance's connection
    PUSHED = "pushed"
    ACKNOWLEDGED = "acknowledged"  # the instance has it: nobody else gets it
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    MISSED = "missed"


ENDED = frozenset({TriggerStatus.SUCCEEDED, TriggerStatus.FAILED, TriggerStatus.MISSED})


class TriggerEvent(StrEnum):
    """What moves a trigger from one status to another."""

    PUSH = "push"
    TAKE_BACK = "take_back"
    ACKNOWLEDGE = "acknowledge"
    SUCCEED = "succeed"
    FAIL = "fail"
    LOSE = "lose"
    MISS = "miss"


_S, _E = TriggerStatus, TriggerEvent
# What is not in the table is refused. A result may come without an acknowledgement: it says that and more.
TRANSITIONS: dict[tuple[TriggerStatus, TriggerEvent], TriggerStatus] = {
    (_S.PENDING, _E.PUSH): _S.PUSHED,
    (_S.PENDING, _E.MISS): _S.MISSED,
    (_S.PUSHED, _E.TAKE_BACK): _S.PENDING,
    (_S.PUSHED, _E.ACKNOWLEDGE): _S.ACKNOWLEDGED,
    (_S.PUSHED, _E.SUCCEED): _S.SUCCEEDED,
    (_S.PUSHED, _E.FAIL): _S.FAILED,
    (_S.PUSHED, _E.LOSE): _S.FAILED,
    (_S.ACKNOWLEDGED, _E.SUCCEED): _S.SUCCEEDED,
    (_S.ACKNOWLEDGED, _E.FAIL): _S.FAILED,
    (_S.ACKNOWLEDGED, _E.LOSE): _S.FAILED,
}


def after(status: TriggerStatus, event: TriggerEvent) -> TriggerStatus | None:
    """The status that ``event`` leads to, or ``None`` where it is not allowed."""
    return TRANSITIONS.get((status, event))


class TriggerReason(StrEnum):
    """Why a trigger waits, was missed or failed."""

    MISSED = "missed"  # its slot was seen later than the grace
    NO_INSTANCE = "no_instance"  # no instance of the role was online
    NO_ROOM = "no_room"  # those that were online had as much as they take
    JOB_DISABLED = "job_disabled"
    JOB_DELETED = "job_deleted"
    REPORTED = "reported"  # the instance said that it failed
    INSTANCE_LOST = "instance_lost"  # it had acknowledged, and never came back
    NOT_ACKNOWLEDGED = "not_acknowledged"  # by as many instances as it may be pushed to


@dataclass(frozen=True, slots=True)
class Trigger:
    """What became of one slot of a job.

    ``coalesced`` are older slots that were missed with it; ``pushes`` counts how often it was sent, under this one id.
    """

    id: str
    job_id: str
    nominal_fire_at: datetime
    dedup_key: str
    instance_id: str | None
    status: TriggerStatus
    reason: TriggerReason | None
    note: str | None
    coalesced: Coalesced | None
    pushes: int
    pushed_at: datetime | None
    acknowledged_at: datetime | None
    finished_at: datetime | None
    created_at: datetime


def to_json(trigger: Trigger) -> dict[str, Any]:
    """The read form (CONTRACT, "Trigger")."""
    older = trigger.coalesced
    return {
        "id": trigger.id,
        "job_id": trigger.job_id,
        "nominal_fire_at": rfc3339(trigger.nominal_fire_at),
        "dedup_key": trigger.dedup_key,
        "instance_id": trigger.instance_id,
        "status": trigger.status.value,
        "reason": None if trigger.reason is None else trigger.reason.value,
        "note": trigger.note,
        "coalesced": None
        if older is None
        else {"first": rfc3339(older.first), "last": rfc3339(older.last), "count": older.count},
        "pushes": trigger.pushes,
        "pushed_at": maybe_rfc3339(trigger.pushed_at),
        "acknowledged_at": maybe_rfc3339(trigger.acknowledged_at),
        "finished_at": maybe_rfc3339(trigger.finished_at),
        "created_at": rfc3339(trigger.created_at),
    }
