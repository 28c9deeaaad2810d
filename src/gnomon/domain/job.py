"""Periodic work that the centre pushes to one instance of a role: the record that people write (JOB-1).

Its slots are those of the shared cadence; what becomes of each is a trigger (``domain/trigger.py``). A job never touches
the board.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gnomon.cadence import Cadence

GRACE_SECONDS = (1, 86_400)
PAYLOAD_CHARACTERS = 100_000  # of its JSON


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job as it was written. ``payload`` is any JSON value.

    ``grace_seconds`` is how long a slot waits for an instance; ``None`` is the misfire grace of SCH-14: half the distance
    to the next slot, within its bounds.
    """

    slug: str
    name: str
    role: str
    cadence: Cadence
    payload: Any
    dedup_key: str
    grace_seconds: int | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands (CONTRACT, "Job"); ``version`` is its ETag.

    ``next_fire_at`` is missing while it is not enabled, and where no slot is left; ``error`` says why its next slot can't
    be computed, where it was set aside for that (DSP-9a).
    """

    id: str
    written: JobDraft
    anchor_at: datetime
    version: int
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    error: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
