"""What the instances of one simulation saw: what was pushed to them, which tasks they held, what they were told."""

from dataclasses import dataclass, field
from typing import Any

from support.history import History


@dataclass(slots=True)
class Delivery:
    """One ``job_trigger`` as an instance got it. Instants are seconds of the history."""

    at: float
    worker: str
    instance_id: str
    epoch: int
    trigger_id: str
    job: str
    nominal: str
    dedup_key: str
    redelivered: bool
    revoked: bool = False


@dataclass(slots=True)
class Held:
    """A task, from the answer of its claim until the instance let go of it, by its own clock."""

    task_id: str
    fence: int
    worker: str
    begin: float
    end: float


@dataclass(slots=True)
class Told:
    """The answer to a report: ``taken``, ``replayed`` or the code of a refusal."""

    at: float
    task_id: str
    fence: int
    status: str
    answer: str


@dataclass
class BoardHistory(History):
    """All of it, for the checks."""

    deliveries: list[Delivery] = field(default_factory=list)
    holds: list[Held] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    effects: dict[str, set[str]] = field(default_factory=dict)  # dedup key: the tasks it was answered with
    jobs: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # that are left alone: anchor, step (microseconds)
    fell_silent: list[tuple[str, float]] = field(default_factory=list)  # instances that were killed, and when
    stopped_jobs_at: int = 0

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """The audit of one kind of subject, in its order."""
        return [entry for entry in self.rows("audit_entries") if entry["subject_kind"] == kind]
