"""What a scan does beside recording its slots: the run before it cancelled, a schedule stopped.

Rare, and one by one; what is written for each slot of a batch is ``slot_rows``'s affair.
"""

import structlog

from gnomon.domain.audit import Action
from gnomon.services.settling import cancel
from gnomon.services.slot_plan import Stop
from gnomon.services.slot_rows import ACTOR
from gnomon.stores import audit, slots
from gnomon.stores.database import Tx

_log = structlog.get_logger()


async def cancel_running(tx: Tx, run_id: str) -> None:
    """``cancel_running``: a queued run is closed here, a running one is asked to stop (DSP-8)."""
    await cancel(tx, run_id, ACTOR, "A newer slot came due.")
    await audit.append(
        tx,
        actor=ACTOR,
        action=Action.CANCEL,
        subject_kind="run",
        subject_id=run_id,
        detail={"reason": "cancel_running"},
    )


async def stop(tx: Tx, schedule_id: str, why: Stop) -> None:
    """The schedule leaves ``active``: with its last slot, with its target, or since its slots can't be computed (DSP-9a)."""
    code = None if why.error is None else "cadence"
    if not await slots.stop(tx, schedule_id, "active", why.status, ACTOR, why.reason, code, why.error):
        return
    detail = {"reason": why.reason}
    if why.error is not None:
        _log.error("schedule_set_aside", schedule_id=schedule_id, error=why.error)
        detail["error"] = why.error
    await audit.append(
        tx,
        actor=ACTOR,
        action=why.action,
        subject_kind="schedule",
        subject_id=schedule_id,
        detail=dict(detail),
    )
