"""What is written of a run in batches, as rows in the order of the columns of their queries in ``sql/runs.sql``."""

from dataclasses import dataclass
from typing import NamedTuple

from gnomon.stores.database import Value


@dataclass(slots=True)  # not frozen: one is made for each slot of each batch, and freezing doubles the cost
class NewRun:
    """A run to insert, in a session that may be new. Instants are microseconds.

    With ``owner`` it is born claimed: running under ``fence``, its lease stamped by the database's clock.
    """

    id: str
    trigger: str
    priority: int
    target_kind: str
    target_id: str
    schedule_id: str | None
    revision: int | None
    nominal_fire_at: int | None
    session_id: str
    query: str
    scheduled_for: int
    claimable_at: int | None
    lease_seconds: int
    waits_for: str | None = None
    parallel: bool = False
    owner: str | None = None
    claim_id: str | None = None
    fence: int = 0
    trace_id: str | None = None
    invoked_by: str | None = None
    api_key_id: str | None = None
    source: str | None = None
    dedup_key: str | None = None

    def row(self) -> tuple[Value, ...]:
        """The row of ``runs.insert``."""
        claimed = self.owner is not None
        return (
            self.id,
            self.trigger,
            "running" if claimed else "queued",
            self.priority,
            self.target_kind,
            self.target_id,
            self.schedule_id,
            self.revision,
            self.nominal_fire_at,
            # one that is the run's own shares its tail, and is not written
            None if self.session_id[4:] == self.id[4:] else self.session_id,
            self.scheduled_for,
            None if claimed else self.claimable_at,
            self.waits_for,
            int(self.parallel),
            self.lease_seconds,
            self.owner,
            self.claim_id,
            self.fence,
            int(claimed),
            self.trace_id,
            self.invoked_by,
            self.api_key_id,
            self.source,
            self.dedup_key,
            self.query,
        )


class Closing(NamedTuple):
    """How a held run ended, as the row of ``runs.close``."""

    id: str
    owner: str
    fence: int
    status: str
    duration_us: int
    model_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    response_preview: str | None = None
    error_code: str | None = None
    error: str | None = None
    output: str | None = None
