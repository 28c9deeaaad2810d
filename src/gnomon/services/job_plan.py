"""One due job turned into the rows that its scan writes: the trigger of its slot, and the job moved on (JOB-2, JOB-3).

Pure over its arguments. What becomes of the slot is decided as for a schedule that lets runs work side by side: older
missed ones are coalesced into the newest, which is missed itself where it is later than its grace (DSP-7).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from gnomon.cadence import Cadence
from gnomon.domain import dedup, misfire
from gnomon.domain.instants import from_micros
from gnomon.domain.misfire import Due, Slot
from gnomon.domain.occurrence import Disposition
from gnomon.domain.schedule import CatchUp, Overlap
from gnomon.domain.trigger import TriggerReason, TriggerStatus
from gnomon.stores.database import Row, Value


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What one scan writes for one job; ``error`` is why its slots can't be computed, where they can't."""

    job_id: str
    role: str
    version: int
    trigger: Mapping[str, Value] | None
    advance: Mapping[str, Value]
    error: str | None = None

    @property
    def waits(self) -> bool:
        """Whether the slot is to be pushed."""
        return self.trigger is not None and self.trigger["status"] == TriggerStatus.PENDING


def plan_job(row: Row, holidays: frozenset[date], trigger_id: str) -> JobPlan:
    """What becomes of one row of ``stores.jobs.due``."""
    try:
        cadence = Cadence.from_stored(row["cadence"])
        decision = misfire.decide(_due(row, cadence, holidays))
        slot = decision.slot
        trigger = None
        if slot is not None:
            trigger = _trigger(row, cadence, slot, decision.next_fire_at, trigger_id)
    except Exception as error:  # whatever a stored rule does, it stops no other job (DSP-9a)
        return _plan(row, None, None, None, f"{type(error).__name__}: {error}")
    return _plan(row, trigger, decision.next_fire_at, None if slot is None else slot.nominal)


def _plan(
    row: Row,
    trigger: Mapping[str, Value] | None,
    next_fire_at: int | None,
    recorded: int | None,
    error: str | None = None,
) -> JobPlan:
    advance = {
        "id": row["id"],
        "claimed_at": row["next_fire_at"],
        "next_fire_at": next_fire_at,
        "recorded_until": recorded,
        "seen_version": row["version"],
        "seen_recorded": row["recorded_until"],
    }
    return JobPlan(row["id"], row["role"], row["version"], trigger, advance, error)


def _due(row: Row, cadence: Cadence, holidays: frozenset[date]) -> Due:
    return Due(
        walk=cadence.compile(row["anchor_at"], holidays),
        next_fire_at=row["next_fire_at"],
        now=row["now"],
        starts_at=None,
        ends_at=None,
        runs_left=None,
        in_flight=False,
        waiting=False,
        recorded_until=row["recorded_until"],
        overlap=Overlap.ALLOW,
        catch_up=CatchUp.LATEST,
        misfire_grace_seconds=row["grace_seconds"],
    )


def _trigger(
    row: Row, cadence: Cadence, slot: Slot, following: int | None, trigger_id: str
) -> dict[str, Value]:
    missed = slot.disposition is not Disposition.FIRED
    return trigger_row(
        row,
        trigger_id,
        slot.nominal,
        slot.older,
        dedup_key=dedup_key(row, cadence, json.loads(row["payload"]), slot.nominal),
        wait_until=slot.nominal + misfire.grace_micros(slot.nominal, following, row["grace_seconds"]),
        missed=TriggerReason.MISSED if missed else None,
    )


def trigger_row(
    row: Mapping[str, Any],
    trigger_id: str,
    nominal: int,
    older: tuple[int, int, int] | None,
    *,
    dedup_key: str,
    wait_until: int,
    missed: TriggerReason | None,
) -> dict[str, Value]:
    """The row of a slot's trigger, as ``stores.triggers.record`` takes it; ``row`` has the job's id and payload."""
    first, last, count = older or (None, None, None)
    return {
        "id": trigger_id,
        "job_id": row["id"],
        "nominal_fire_at": nominal,
        "dedup_key": dedup_key,
        "payload": row["payload"] if missed is None else None,
        "status": TriggerStatus.PENDING if missed is None else TriggerStatus.MISSED,
        "reason": missed,
        "coalesced_first": first,
        "coalesced_last": last,
        "coalesced_count": count,
        "wait_until": wait_until,
    }


def dedup_key(row: Mapping[str, Any], cadence: Cadence, payload: Any, nominal: int) -> str:
    """The name of one slot's effect (IDM-1)."""
    own = {"job": row["slug"]}
    return dedup.render(row["dedup_key"], from_micros(nominal), cadence.zone, payload, own)
