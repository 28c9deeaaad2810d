"""What a target gets and gives back: one attempt's invocation, its result, its usage, the ways it can fail.

The records are the same for every runtime (TGT-1, TGT-2); how they travel is the runtime's own affair.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run consumed; ``cost`` is in US dollars. Adding two sums them."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session: ``role`` is ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run (TGT-5): bytes of output, model calls, cost in dollars. ``None`` is no bound."""

    output_bytes: int | None = None
    model_calls: int | None = None
    cost: float | None = None


@dataclass(slots=True)  # not frozen: one is made for each run, and freezing triples the cost
class Invocation:
    """One attempt of a run, as a target sees it (CONTRACT, "What a target gets").

    ``idempotency_key`` is the same over all attempts and restarts of a run; ``fence`` grows with each grant of its
    lease; ``deadline`` is the instant at which the attempt is ended by force; ``nominal_fire_at`` is the slot, or
    ``None`` for a run that no slot started.
    """

    run_id: str
    attempt: int
    fence: int
    idempotency_key: str
    query: str
    deadline: datetime
    dedup_key: str | None = None
    nominal_fire_at: datetime | None = None
    tenant: str | None = None
    session_id: str | None = None
    messages: tuple[Message, ...] = ()
    traceparent: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)  # not frozen, for the same reason
class Result:
    """What a target answered: its text, and what it cost where it says so."""

    output: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The target took the work (HTTP 202) and will complete the run later through ``/runs/{id}/complete``."""


class Failing(StrEnum):
    """Why an attempt failed: the stable ``code`` of a run's error."""

    EXIT_STATUS = "exit_status"  # a command ended with another code than 0
    NOT_STARTED = "not_started"  # the command or callable could not be started at all
    HTTP_STATUS = "http_status"  # the target answered with a status that is no success
    UNREACHABLE = "unreachable"  # no connection, or it broke
    ADDRESS_REFUSED = "address_refused"  # a private address, or a redirect to one (TGT-4)
    REDIRECTED = "redirected"  # too many redirects, or one that can't be followed
    NONSENSE = "nonsense"  # the answer can't be read
    OUTPUT_TOO_LARGE = "output_too_large"  # TGT-5
    MODEL_CALLS_EXCEEDED = "model_calls_exceeded"  # TGT-5
    COST_EXCEEDED = "cost_exceeded"  # TGT-5
    EXCEPTION = "exception"  # the callable raised
    MODEL_ERROR = "model_error"  # the model's provider refused or failed
    NODE_FAILED = "node_failed"  # a node of a team failed
    TARGET_INVALID = "target_invalid"  # the agent's or the team's definition can't be invoked
    TIMEOUT = "timeout"  # the hard timeout; the run's status says timed_out
    NO_INSTANCE = "no_instance"  # nobody of the role took the run while there was time for it
    REPORTED = "reported"  # the target itself reported failure through /complete


class TargetFailure(Exception):  # noqa: N818 - it is the target's failure, not an error of ours
    """An attempt failed. ``retryable`` says whether the retry policy may try again, ``retry_after`` seconds from when.

    Usage that was spent before the failure is kept.
    """

    def __init__(
        self,
        code: Failing,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage = usage
