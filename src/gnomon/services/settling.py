"""What a schedule learns when a run of it has ended: its lock is off, its streak moved, too many failures stop it (SCH-8).

Every way a run can end leads here, inside the transaction that ended it: closed by its holder, completed by its target,
cancelled in the queue, swept.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from gnomon.cadence import CadenceError
from gnomon.domain import streak
from gnomon.domain.audit import Action
from gnomon.domain.occurrence import Reason
from gnomon.domain.run import RunError, RunStatus, Trigger
from gnomon.services import pending
from gnomon.stores import audit, processes, runs, schedules, slots
from gnomon.stores.audit import NewEntry, new_entry
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
    failed = [run for run in of_schedules if run.trigger == Trigger.SCHEDULE and streak.moved(0, run.status)]
    if failed:
        await _failed(tx, failed)


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
    """A slot that has come due and is not claimed yet goes into the ledger before the stop overtakes it (DSP-9).

    Where the rule can't be computed any more there is none, and the run ends all the same (DSP-9a).
    """
    with suppress(CadenceError):
        schedule = await schedules.get(tx, schedule_id)
        if schedule is not None:
            await pending.account(tx, schedule, await processes.now(tx), Reason.PAUSED, ACTOR)


async def _failed(tx: Tx, failed: Sequence[Closed]) -> None:
    """The streaks of these runs' schedules, in the order in which they ended."""
    standing = await runs.streaks(tx, {run.schedule_id for run in failed if run.schedule_id is not None})
    moved: dict[str, tuple[str, int, str, str]] = {}
    told: list[NewEntry] = []
    stopped: list[tuple[str, int, NewEntry]] = []
    for run in failed:
        schedule_id = run.schedule_id
        if schedule_id is None or schedule_id not in standing:
            continue
        before, limit = standing[schedule_id]
        now = streak.moved(before, run.status)
        standing[schedule_id] = now, limit
        error = run.error or RunError(run.status, f"The run ended {run.status}.")
        moved[schedule_id] = schedule_id, now, error.code, error.message
        detail = {"run_id": run.run_id, "failures": now, "limit": limit, "error": error.code}
        if streak.stops(now, limit):
            entry = new_entry(ACTOR, Action.FAIL_OUT, "schedule", schedule_id, None, detail)
            stopped.append((schedule_id, now, entry))
        elif streak.warns(now, limit):
            _log.warning("schedule_keeps_failing", schedule_id=schedule_id, **detail)
            told.append(new_entry(ACTOR, Action.WARN, "schedule", schedule_id, None, detail))
    await runs.move_streaks(tx, moved.values())
    await audit.append_many(tx, told)
    for schedule_id, now, entry in stopped:
        await _stop(tx, schedule_id, f"{now} failures in a row", entry)


async def _stop(tx: Tx, schedule_id: str, reason: str, entry: NewEntry) -> None:
    await _account(tx, schedule_id)
    landed = await slots.stop(tx, [slots.Stop(schedule_id, "error", ACTOR, reason)])
    await audit.append_many(tx, [entry], landed, [schedule_id])
