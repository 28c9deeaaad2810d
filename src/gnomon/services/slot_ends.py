"""What a scan does beside recording its slots: the run before it cancelled, schedules stopped.

What is written for each slot of a batch is ``slot_rows``'s affair.
"""

from collections.abc import Mapping

import structlog

from gnomon.domain.audit import Action
from gnomon.services.settling import cancel
from gnomon.services.slot_plan import Stop
from gnomon.services.slot_rows import ACTOR
from gnomon.stores import audit, slots
from gnomon.stores.audit import new_entry
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


async def stop(tx: Tx, stops: Mapping[str, Stop]) -> None:
    """Schedules leave ``active``: with their last slot, with their target, or since their slots can't be computed (DSP-9a)."""
    landed = await slots.stop(tx, [_row(schedule_id, why) for schedule_id, why in stops.items()])
    told = [
        new_entry(ACTOR, why.action, "schedule", schedule_id, detail=_detail(why))
        for schedule_id, why in stops.items()
    ]
    await audit.append_many(tx, told, landed, list(stops))
    for schedule_id, why in stops.items():
        if why.error is not None:
            _log.error("schedule_set_aside", schedule_id=schedule_id, error=why.error)


def _row(schedule_id: str, why: Stop) -> slots.Stop:
    code = None if why.error is None else "cadence"
    return slots.Stop(schedule_id, why.status, ACTOR, why.reason, code, why.error)


def _detail(why: Stop) -> dict[str, object]:
    return {"reason": why.reason} if why.error is None else {"reason": why.reason, "error": why.error}
