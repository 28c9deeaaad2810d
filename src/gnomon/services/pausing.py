"""Pausing and resuming: by a person, by the end of a pause, by the loss of a target (SCH-2, SCH-8, SCH-12).

Resuming counts from now, or from the instant until which it was paused: what lay inside the pause never fires, and
nothing fires in a burst.
"""

from dataclasses import dataclass
from datetime import datetime

from gnomon.domain.audit import Action
from gnomon.domain.errors import Conflict, Fault, Invalid
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.instants import SECOND, from_micros, maybe_micros, rfc3339, to_micros
from gnomon.domain.occurrence import Reason
from gnomon.domain.schedule import Schedule, ScheduleEvent, ScheduleStatus, after
from gnomon.domain.target import Target
from gnomon.ports.wakeup import Wakeup
from gnomon.services import pending
from gnomon.services.schedules import held
from gnomon.services.timetable import timetable
from gnomon.stores import audit, processes, schedules
from gnomon.stores.database import Database, Tx
from gnomon.stores.schedules import Move

ACTOR = "watchdog"
BATCH = 100
_S = ScheduleStatus


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a schedule can't be resumed."""

    event: ScheduleEvent
    code: str
    sentence: str


class Pausing:
    """Pauses and resumes the schedules of one database."""

    def __init__(self, *, database: Database, signal: Wakeup) -> None:
        self._database = database
        self._signal = signal

    async def pause(
        self, schedule_id: str, by: str, *, reason: str | None = None, until: datetime | None = None
    ) -> Schedule:
        """Let no slot fire until it is resumed, or until ``until``. A run in flight goes on.

        Pausing again with another reason or another end renews; with the same ones nothing is written, and it stays
        paused by whom it was.

        Raises:
            Invalid: ``until`` is not in the future.
            Conflict: there is nothing to pause: it is completed, or disabled.
        """

        async def work(tx: Tx) -> Schedule:
            standing = await held(tx, schedule_id)
            status = after(standing.status, ScheduleEvent.PAUSE)
            if status is None:
                raise _not_from(standing.status, "paused")
            now = await processes.now(tx)
            until_us = maybe_micros(until)
            if until_us is not None and until_us <= now:
                raise Invalid([Fault("until", f"must lie in the future: it is {_text(now)} now")])
            if _stands(standing, reason, until_us):
                return standing
            await pending.account(tx, standing, now, Reason.PAUSED, by)
            await schedules.set_status(tx, schedule_id, Move(standing.status, status, by, reason, until_us))
            detail: dict[str, object] = {"reason": reason, "until": None if until is None else rfc3339(until)}
            await _note(tx, by, Action.PAUSE, schedule_id, detail)
            return await held(tx, schedule_id)

        paused = await self._database.write(work)
        self._signal.notify()
        return paused

    async def resume(self, schedule_id: str, by: str) -> Schedule:
        """Let it fire again from now on, its failure streak cleared. One that is active stays as it is (SCH-8).

        Raises:
            Conflict: nothing is left for it to do, or its target is gone; the code and the sentence say which.
        """

        async def work(tx: Tx) -> Schedule:
            standing = await held(tx, schedule_id)
            if standing.status is _S.ACTIVE:
                return standing
            refused = await self._resume_in(tx, standing, by)
            if refused is not None:
                raise Conflict(refused.sentence, code=refused.code)
            return await held(tx, schedule_id)

        resumed = await self._database.write(work)
        self._signal.notify()
        return resumed

    async def tick(self) -> float | None:
        """End the pauses that are over; seconds until the next one is, ``None`` where none ends by itself (DSP-1)."""
        left_us = await self._database.look(schedules.next_pause_end)
        if left_us is not None and left_us <= 0:  # the common tick reads once and writes nothing
            await self.resume_due()
            left_us = await self._database.look(schedules.next_pause_end)
        return None if left_us is None else max(left_us, 0) / SECOND

    async def resume_due(self) -> int:
        """Resume schedules whose pause is over: a chore of the watchdog too, where nobody dispatches. How many ended."""
        ended = 0
        while True:
            batch = await self._database.write(self._resume_batch)
            ended += batch
            if batch:
                self._signal.notify()
            if batch < BATCH:
                return ended

    async def _resume_batch(self, tx: Tx) -> int:
        over = await schedules.pauses_over(tx, BATCH)
        for schedule in over:
            refused = await self._resume_in(tx, schedule, ACTOR, schedule.status_detail.until)
            if refused is not None:
                status = after(schedule.status, refused.event)
                assert status is not None  # a paused schedule can both run out of slots and lose its target
                await schedules.set_status(tx, schedule.id, Move(_S.PAUSED, status, ACTOR, refused.sentence))
                action = Action.COMPLETE if status is _S.COMPLETED else Action.DISABLE
                await _note(tx, ACTOR, action, schedule.id, {"reason": refused.sentence})
        return len(over)

    async def _resume_in(
        self, tx: Tx, standing: Schedule, by: str, ended_at: datetime | None = None
    ) -> _Refusal | None:
        status = after(standing.status, ScheduleEvent.RESUME)
        if status is None:
            raise _not_from(standing.status, "resumed")
        definition = standing.definition
        if await schedules.target_named(tx, definition.target) is None:
            name = f"{definition.target.kind.value} {definition.target.id}"
            sentence = f"Its target, the {name}, is gone. Give it another target, then resume it."
            return _Refusal(ScheduleEvent.LOSE_TARGET, "target_gone", sentence)
        # a pause that ends by itself ends at its instant, however late that is noticed: the slots since are due
        begin = await processes.now(tx) if ended_at is None else to_micros(ended_at) - 1
        table = await timetable(tx, definition, standing.anchor_at)
        faults = table.faults(begin, standing.run_count)
        if faults:
            why = "; ".join(f"{fault.field} {fault.message}" for fault in faults)
            sentence = f"Nothing is left for it to do: {why}. Edit it, and it goes on."
            return _Refusal(ScheduleEvent.EXHAUST, "schedule_exhausted", sentence)
        first = table.first_after(begin)
        reason = None if ended_at is None else "the pause ended"
        move = Move(standing.status, status, by, reason, next_fire_at=first, clears_streak=True)
        await schedules.set_status(tx, standing.id, move)
        detail: dict[str, object] = {
            "from": standing.status.value,
            "next_fire_at": None if first is None else _text(first),
        }
        await _note(tx, by, Action.RESUME, standing.id, detail)
        return None


async def disable_of_target(tx: Tx, target: Target, by: str) -> int:
    """Disable the schedules of a target that is being deleted, in the transaction that deletes it (SCH-12).

    Their runs in flight are not touched. How many there were; the caller notifies after the commit.
    """
    now = await processes.now(tx)
    count, after_id = 0, ""
    while True:
        chosen = ScheduleFilter(target_kind=target.kind, target=target.id)
        found = await schedules.page(tx, chosen, after_id, BATCH)
        for schedule in found:
            status = after(schedule.status, ScheduleEvent.LOSE_TARGET)
            if status is not None:
                await pending.account(tx, schedule, now, Reason.TARGET_GONE, by)
                await schedules.set_status(
                    tx, schedule.id, Move(schedule.status, status, by, "its target was deleted")
                )
                await _note(tx, by, Action.DISABLE, schedule.id, {"reason": "target_deleted"})
                count += 1
        if len(found) < BATCH:
            return count
        after_id = found[-1].id


def _stands(schedule: Schedule, reason: str | None, until: int | None) -> bool:
    """Whether it is paused like this already."""
    detail = schedule.status_detail
    same = (detail.reason, maybe_micros(detail.until)) == (reason, until)
    return schedule.status is _S.PAUSED and same


def _not_from(status: ScheduleStatus, done: str) -> Conflict:
    ways = {
        _S.COMPLETED: "it ran out of slots. Edit it so that it has some, and it goes on by itself",
        _S.DISABLED: "its target was deleted. Resume it once the target exists again",
    }
    return Conflict(
        f"The schedule can't be {done}: {ways.get(status, f'it is {status}')}.", code=f"schedule_{status}"
    )


async def _note(tx: Tx, by: str, action: Action, schedule_id: str, detail: dict[str, object]) -> None:
    given = {name: value for name, value in detail.items() if value is not None}
    await audit.append(
        tx, actor=by, action=action, subject_kind="schedule", subject_id=schedule_id, detail=given
    )


def _text(micros: int) -> str:
    return rfc3339(from_micros(micros))
