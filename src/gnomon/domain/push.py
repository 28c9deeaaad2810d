"""One attempt of a run that is pushed to an instance, from the wait for one to its end (TGT-1). PURE.

A push is known on the wire by the run's id and its fence; that of a team's node by the run's id, a slash and the node's
id, so that whatever an instance answers names one push.
"""

from dataclasses import dataclass
from enum import StrEnum

from gnomon.domain.invocation import Usage

REASON_CHARACTERS = 2_000


class PushStatus(StrEnum):
    """Where a push stands."""

    WAITING = "waiting"  # for an instance that has room
    PENDING = "pending"  # an instance was chosen; the server that holds its connection sends it
    PUSHED = "pushed"
    ACKNOWLEDGED = "acknowledged"  # the instance works on it
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"  # nobody wants its result any more


ENDED = frozenset({PushStatus.SUCCEEDED, PushStatus.FAILED, PushStatus.WITHDRAWN})

# From each status to the ones it may become. Back to waiting: its connection ended before it was acknowledged (JOB-4).
TRANSITIONS: dict[PushStatus, frozenset[PushStatus]] = {
    PushStatus.WAITING: frozenset({PushStatus.PENDING, PushStatus.WITHDRAWN}),
    PushStatus.PENDING: frozenset({PushStatus.PUSHED, PushStatus.WAITING, PushStatus.WITHDRAWN}),
    PushStatus.PUSHED: frozenset(
        {PushStatus.ACKNOWLEDGED, PushStatus.WAITING, *ENDED}
    ),  # who answers at once need not acknowledge
    PushStatus.ACKNOWLEDGED: ENDED,
    **{status: frozenset() for status in ENDED},
}


class Withdrawal(StrEnum):
    """What an instance is told of a push that is withdrawn; the value is the frame's type."""

    CANCEL = "cancel"  # a person, or the run's timeout
    REVOKE = "revoke"  # the run is over, or somebody else has it


@dataclass(frozen=True, slots=True)
class PushKey:
    """What names a push: the run, the node where it is one of a team, the fence."""

    run_id: str
    node: str
    fence: int

    @property
    def wire_id(self) -> str:
        """The ``run_id`` of its frames; the key under which a target does the work once is the same."""
        return f"{self.run_id}/{self.node}" if self.node else self.run_id


def key_of(wire_id: str, fence: int) -> PushKey:
    """The key of the push that a frame names."""
    run_id, _, node = wire_id.partition("/")
    return PushKey(run_id, node, fence)


@dataclass(frozen=True, slots=True)
class PushEnd:
    """How a push ended. ``error_code`` and ``error`` say why it failed; ``retryable`` whether another try makes sense."""

    key: PushKey
    status: PushStatus
    output: str | None = None
    usage: Usage | None = None
    error_code: str | None = None
    error: str | None = None
    retryable: bool = False
