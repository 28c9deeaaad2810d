"""What a schedule learns when a run of it has ended: its lock is off, its streak moved, too many failures stop it (SCH-8).

Every way a run can end leads here, inside the transaction that ended it: closed by its holder, completed by its target,
cancelled in the queue, swept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from gnomon.domain import streak
from gnomon.domain.audit import Action
from gnomon.domain.occurrence import Reason
from gnomon.domain.run import RunError, RunStatus, Trigger
from gnomon.services import pending
from gnomon.stores import audit, processes, runs, schedules, slots
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Tx

ACTOR = "watchdog"
_log = structlog.get_logger()


@dataclass(slots=True)  # not frozen: one is made for each run, and freezing triples the cost
class Closed:
    """A run that has just been closed, by whoever: what its schedule must learn."""

    run_id: str
    schedule_id: str | None
    trigger: str
    status: RunStatus
    error: RunError | None
    parallel: bool = True


async def settle(tx: Tx, closed: Sequence[Closed]) -> None:
    """What the schedules of ended runs learn: the lock is off, the streak moved, too many failures stop it (SCH-8).

    A run that a person started moves no streak (SCH-11); a cancel moves it in neither direction.
    """
    of_schedules = [run for run in closed if run.schedule_id is not None]
    if not of_schedules:
        return
    await runs.settle(
        tx,
        [
            {
                "run_id": run.run_id,
                "schedule_id": run.schedule_id,
                "clears": int(run.trigger == Trigger.SCHEDULE and run.status is RunStatus.SUCCEEDED),
            }
            for run in of_schedules
        ],
        parallel=any(run.parallel for run in of_schedules),
    )
    for run in of_schedules:
        if run.trigger == Trigger.SCHEDULE and streak.moved(0, run.status):
            await _failed(tx, run)


async def cancel(tx: Tx, run_id: str, by: str, why: str) -> None:
    """End an unfinished run: one in the queue is closed here, one in work is asked to stop (RUN-10)."""
    error = RunError("cancelled", why)
    closed = await runs.close_queued(tx, run_id, RunStatus.CANCELLED, error.code, error.message)
    if closed is None:
        await runs.ask_cancel(tx, run_id, by)
        return
    await settle(
        tx, [Closed(run_id, closed["schedule_id"], closed["trigger_kind"], RunStatus.CANCELLED, error)]
    )


async def _account(tx: Tx, schedule_id: str) -> None:
    """A slot that has come due and is not claimed yet goes into the ledger before the stop overtakes it (DSP-9)."""
    schedule = await schedules.get(tx, schedule_id)
    if schedule is not None:
        await pending.account(tx, schedule, await processes.now(tx), Reason.PAUSED, ACTOR)


async def _failed(tx: Tx, run: Closed) -> None:
    assert run.schedule_id is not None
    row = await runs.streak(tx, run.schedule_id)
    if row is None:
        return
    now, limit = streak.moved(row["failure_streak"], run.status), row["failure_limit"]
    error = run.error or RunError(run.status, f"The run ended {run.status}.")
    await runs.move_streak(tx, run.schedule_id, now, error.code, error.message)
    detail: dict[str, object] = {"run_id": run.run_id, "failures": now, "limit": limit, "error": error.code}
    if streak.stops(now, limit):
        reason = f"{now} failures in a row"
        await _account(tx, run.schedule_id)
        stopped = await slots.stop(tx, [slots.Stop(run.schedule_id, "error", ACTOR, reason)])
        told = new_entry(ACTOR, Action.FAIL_OUT, "schedule", run.schedule_id, None, detail)
        await audit.append_many(tx, [told], stopped, [run.schedule_id])
    elif streak.warns(now, limit):
        _log.warning("schedule_keeps_failing", schedule_id=run.schedule_id, **detail)
        await audit.append_many(
            tx, [new_entry(ACTOR, Action.WARN, "schedule", run.schedule_id, None, detail)]
        )
