"""The closed list of audit actions. An entry is appended and never changes (SEC-7)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Action(StrEnum):
    """What an audit entry can say (CONTRACT, "Audit entry")."""

    CLAIM = "CLAIM"  # a run or a task was claimed: its fence is the entry's
    RELEASE = "RELEASE"  # a claim ended by its holder; detail.status says how
    EXPIRE = "EXPIRE"  # a claim ended because its lease did, or its holder's heartbeat
    RENEW = "RENEW"  # the holder of a task renewed its claim
    FENCED = "FENCED"  # a write came with an old fence and changed nothing
    FIRE = "FIRE"  # a slot was recorded as fired
    SKIP = "SKIP"  # a slot was recorded as skipped or missed; detail.reason says why
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    COMPLETE = "COMPLETE"  # a schedule ran out of slots
    FAIL_OUT = "FAIL_OUT"  # a schedule was stopped after failures
    WARN = "WARN"  # half of a failure limit is reached
    DISABLE = "DISABLE"  # a schedule lost its target
    SET_ASIDE = "SET_ASIDE"  # a schedule's next slot can't be computed
    REALIGN = "REALIGN"  # a schedule's next slot was computed anew
    RUN_NOW = "RUN_NOW"
    CANCEL = "CANCEL"  # a run was asked to stop
    ERASE = "ERASE"  # a session was erased
    REVOKE = "REVOKE"  # a key was revoked
    TRIGGER = "TRIGGER"  # a slot of a job got its trigger
    GIVE = "GIVE"  # a trigger that waited got an instance
    PUSH = "PUSH"  # a trigger was sent to its instance: the fence is the epoch of the connection
    TAKE_BACK = "TAKE_BACK"  # a trigger waits for another instance: detail.why says what became of the first
    ACKNOWLEDGE = "ACKNOWLEDGE"  # an instance has a trigger
    FINISH = "FINISH"  # a trigger ended; detail.status says how
    CONNECT = "CONNECT"  # an instance connected: the fence is the epoch of its connection
    DISCONNECT = "DISCONNECT"  # that connection is over
    DRAIN = "DRAIN"  # an instance gets nothing new
    OFFLINE = "OFFLINE"  # an instance was silent for the heartbeat's timeout
    CLOCK_JUMP = "CLOCK_JUMP"  # the clock guard saw the wall clock jump


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry as people read it."""

    seq: int
    at: datetime
    actor: str
    action: Action
    subject_kind: str
    subject_id: str
    fence: int | None
    detail: dict[str, object]
