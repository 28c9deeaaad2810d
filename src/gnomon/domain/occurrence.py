"""The immutable record of what became of one slot, keyed (schedule_id, nominal_fire_at) (DSP-6, DSP-7)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Disposition(StrEnum):
    """What became of a slot."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"


class Reason(StrEnum):
    """Why a slot did not fire (CONTRACT, "Occurrence")."""

    ALREADY_RUNNING = "already_running"
    MISSED = "missed"
    OUTSIDE_WINDOW = "outside_window"
    EXCLUDED = "excluded"
    OVER_QUOTA = "over_quota"
    RATE_LIMITED = "rate_limited"
    OVER_BUDGET = "over_budget"
    AUTHORITY_DENIED = "authority_denied"
    TARGET_INVALID = "target_invalid"
    TARGET_GONE = "target_gone"
    TENANT_SUSPENDED = "tenant_suspended"
    NO_INSTANCE = "no_instance"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Coalesced:
    """Older slots that were missed and are recorded with this one: the first, the last, how many."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What became of one slot. ``run_id`` and ``session_id`` are both there, or both cleared with a stamp (RUN-12)."""

    schedule_id: str
    nominal_fire_at: datetime
    revision: int
    disposition: Disposition
    reason: Reason | None
    coalesced: Coalesced | None
    run_id: str | None
    session_id: str | None
    links_erased_at: datetime | None
    created_at: datetime
