"""What a scan does beside recording its slots: the run before it cancelled, a schedule stopped or set aside.

Rare, and one by one; what is written for each slot of a batch is ``slot_rows``'s affair.
"""

import structlog

from gnomon.domain.audit import Action
from gnomon.services.slot_plan import SetAside, Stop
from gnomon.services.slot_rows import ACTOR
from gnomon.stores import audit, runs, slots
from gnomon.stores.database import Row, Tx

_log = structlog.get_logger()


async def cancel_running(tx: Tx, run_id: str, schedule_id: str) -> None:
    """``cancel_running``: a queued run is closed here, a running one is asked to stop (DSP-8)."""
    closed = await runs.close_queued(tx, run_id, "cancelled", "cancelled", "A newer slot came due.")
    if closed is not None:
        await runs.settle(tx, [{"run_id": run_id, "schedule_id": schedule_id, "clears": 0}])
    else:
        await runs.ask_cancel(tx, run_id, ACTOR)
    await audit.append(
        tx,
        actor=ACTOR,
        action=Action.CANCEL,
        subject_kind="run",
        subject_id=run_id,
        detail={"reason": "cancel_running"},
    )


async def stop(tx: Tx, schedule_id: str, why: Stop) -> None:
    """The schedule leaves ``active`` with its last slot, or with its target."""
    if await slots.stop(tx, schedule_id, "active", why.status, ACTOR, why.reason):
        await audit.append(
            tx,
            actor=ACTOR,
            action=why.action,
            subject_kind="schedule",
            subject_id=schedule_id,
            detail={"reason": why.reason},
        )


async def set_aside(tx: Tx, row: Row, plan: SetAside) -> None:
    """A schedule whose next slot can't be computed stops alone, and says why (DSP-9a)."""
    _log.error("schedule_set_aside", schedule_id=row["id"], error=plan.error)
    await slots.stop(
        tx, row["id"], "active", "error", ACTOR, "its next slot can't be computed", "cadence", plan.error
    )
    await audit.append(
        tx,
        actor=ACTOR,
        action=Action.SET_ASIDE,
        subject_kind="schedule",
        subject_id=row["id"],
        detail={"error": plan.error, "next_fire_at": row["next_fire_at"]},
    )
