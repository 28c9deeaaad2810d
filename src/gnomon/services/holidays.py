"""What a changed holiday calendar does to the schedules and jobs that use it: their next slots are computed anew (CAD-9).

In the transaction of the change, so that no slot fires on a day that has just become a holiday, and none on a day that
has just stopped being one is left out.
"""

from gnomon.domain.audit import Action
from gnomon.domain.instants import from_micros, rfc3339, to_micros
from gnomon.domain.job import Job
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.services.timetable import timetable, walk_of
from gnomon.stores import audit, jobs, processes, schedules
from gnomon.stores.database import Tx, Value
from gnomon.stores.schedules import Move

BATCH = 100


async def realign_users(tx: Tx, slug: str, by: str) -> None:
    """Realign every active schedule and job that names the calendar; the caller notifies after the commit.

    A slot that has come due is left to the dispatcher, which judges it by the calendar as it stands.
    """
    now = await processes.now(tx)
    after_id = ""
    while True:
        found = await schedules.of_calendar(tx, slug, after_id, BATCH)
        for schedule in found:
            await _realign(tx, schedule, now, by)
        if len(found) < BATCH:
            break
        after_id = found[-1].id
    after_id = ""
    while True:
        named = await jobs.of_calendar(tx, slug, after_id, BATCH)
        for job in named:
            await _realign_job(tx, job, now, by)
        if len(named) < BATCH:
            return
        after_id = named[-1].id


async def _realign_job(tx: Tx, job: Job, now: int, by: str) -> None:
    stored = job.next_fire_at
    if stored is None or to_micros(stored) <= now:
        return
    walk = await walk_of(tx, job.written.cadence, job.anchor_at)
    first = walk.next_after(now)
    if first == to_micros(stored):
        return
    change: dict[str, Value] = {"id": job.id, "claimed_at": to_micros(stored), "next_fire_at": first}
    await jobs.realign(tx, [change])
    to = None if first is None else rfc3339(from_micros(first))
    detail: dict[str, object] = {"from": rfc3339(stored), "to": to, "reason": "its calendar changed"}
    await audit.append(
        tx, actor=by, action=Action.REALIGN, subject_kind="job", subject_id=job.id, detail=detail
    )


async def _realign(tx: Tx, schedule: Schedule, now: int, by: str) -> None:
    stored = schedule.next_fire_at
    if stored is None or to_micros(stored) <= now:
        return
    table = await timetable(tx, schedule.definition, schedule.anchor_at)
    first = table.first_after(now)
    if first == to_micros(stored):
        return
    detail: dict[str, object] = {"from": rfc3339(stored), "reason": "its calendar changed"}
    if first is None:
        reason = "no slot is left: its calendar changed"
        await schedules.set_status(
            tx, schedule.id, Move(ScheduleStatus.ACTIVE, ScheduleStatus.COMPLETED, by, reason)
        )
        action = Action.COMPLETE
    else:
        await schedules.set_next(tx, schedule.id, first)
        action, detail["to"] = Action.REALIGN, rfc3339(from_micros(first))
    await audit.append(
        tx, actor=by, action=action, subject_kind="schedule", subject_id=schedule.id, detail=detail
    )
