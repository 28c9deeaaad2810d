"""Slots that have come due but are not recorded yet, when something stops them from being claimed (DSP-9, SCH-12a).

An edit, a pause or a deletion may land between a slot's instant and the dispatcher's tick. The slot then lies before it
and will not fire; in the same transaction it is written into the ledger, so that it stays accounted for.
"""

from gnomon.domain.audit import Action
from gnomon.domain.instants import to_micros
from gnomon.domain.occurrence import Disposition, Reason
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.services.timetable import timetable
from gnomon.stores import audit, schedules, slots
from gnomon.stores.database import Tx


async def account(tx: Tx, schedule: Schedule, now: int, reason: Reason, by: str) -> int:
    """Record what is due of an active schedule as skipped for ``reason``; how many slots that were."""
    if schedule.status is not ScheduleStatus.ACTIVE or schedule.next_fire_at is None:
        return 0
    first = to_micros(schedule.next_fire_at)
    if first > now:
        return 0
    table = await timetable(tx, schedule.definition, schedule.anchor_at)
    recorded = await schedules.recorded_until(tx, schedule.id)
    if recorded is not None and recorded <= now:
        first = max(first, recorded + 1)
    newest = table.walk.latest_at(now if table.ends_at is None else min(now, table.ends_at))
    if newest is None or newest < first:
        return 0
    older = table.walk.count_between(first, newest) or (None, None, None)
    missed = reason is Reason.MISSED
    await slots.record(
        tx,
        [
            {
                "schedule_id": schedule.id,
                "nominal_fire_at": newest,
                "revision": schedule.revision,
                "disposition": (Disposition.MISSED if missed else Disposition.SKIPPED).value,
                "reason": reason.value,
                "coalesced_first": older[0],
                "coalesced_last": older[1],
                "coalesced_count": older[2],
                "run_id": None,
                "session_id": None,
            }
        ],
    )
    await schedules.set_recorded(tx, schedule.id, newest)
    await audit.append(
        tx,
        actor=by,
        action=Action.SKIP,
        subject_kind="schedule",
        subject_id=schedule.id,
        detail={"nominal_fire_at": newest, "reason": reason.value, "coalesced": older[2] or 0},
    )
    return 1 + (older[2] or 0)
