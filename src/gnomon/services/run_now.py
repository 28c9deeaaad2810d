"""Running a schedule by hand (SCH-11): the dispatcher's own lock, and nothing of the cadence is moved.

A run that a person starts has no slot: it takes none away, and no streak and no next instant know of it.
"""

from dataclasses import dataclass

from gnomon.cadence import CadenceError
from gnomon.domain import dedup, placeholders
from gnomon.domain.audit import Action
from gnomon.domain.errors import Conflict, RunInFlight
from gnomon.domain.ids import Kind, sibling
from gnomon.domain.instants import from_micros
from gnomon.domain.lease import lease_seconds
from gnomon.domain.occurrence import Reason
from gnomon.domain.run import INTERACTIVE, Run, Trigger
from gnomon.domain.schedule import Overlap, Schedule, ScheduleStatus, SessionMode
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.gates import Gates
from gnomon.services.mint import Mint
from gnomon.services.pausing import disable_of_target
from gnomon.services.schedules import held, refuse_in_flight
from gnomon.services.timetable import timetable
from gnomon.stores import audit, history, processes, runs, schedules
from gnomon.stores.database import Database, Tx
from gnomon.stores.run_rows import NewRun


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who asks for a run, with which key, by which way, and in which trace of theirs."""

    by: str
    api_key_id: str | None
    source: str | None
    trace_id: str | None


class TargetGone(Conflict):
    """The schedule's target was deleted: the schedule is disabled instead of run (RUN-2)."""

    code = "target_gone"


class RunNow:
    """Starts runs of schedules by hand."""

    def __init__(self, *, database: Database, mint: Mint, signal: Wakeup, gates: Gates) -> None:
        self._database = database
        self._mint = mint
        self._signal = signal
        self._gates = gates

    async def run(
        self,
        schedule_id: str,
        by: str,
        *,
        api_key_id: str | None = None,
        source: str | None = None,
        trace_id: str | None = None,
        once: Once | None = None,
    ) -> Run | Replay:
        """Queue a run of the schedule at once, ahead of all scheduled ones; a repeat with the same key is the same run.

        With ``trace_id`` it belongs to the caller's trace, else it has one of its own.

        Raises:
            RunInFlight: a run is unfinished; it is named.
            Conflict: ``schedule_disabled``, ``target_gone`` or ``target_invalid``, with the reason.
        """
        asked = _Asked(by, api_key_id, source, trace_id)

        async def effect(tx: Tx) -> Run:
            return await self._start(tx, schedule_id, asked)

        try:
            started = await self._database.write(lambda tx: run_once(tx, once, effect))
        except TargetGone:
            await self._disable(schedule_id, by)
            raise
        self._signal.notify(News.RUN)
        return started

    async def _start(self, tx: Tx, schedule_id: str, asked: _Asked) -> Run:
        schedule = await held(tx, schedule_id)
        if schedule.status is ScheduleStatus.DISABLED:
            raise Conflict(
                "The schedule is disabled: its target was deleted. Give it a target that exists and resume it.",
                code="schedule_disabled",
            )
        refuse_in_flight(schedule, "run")
        await self._gate(tx, schedule)
        run = await self._new_run(tx, schedule, asked)
        landed = await schedules.lock(tx, schedule_id, run.id)
        await runs.insert(tx, [run], landed, [schedule_id])
        told = audit.new_entry(asked.by, Action.RUN_NOW, "schedule", schedule_id, detail={"run_id": run.id})
        await audit.append_many(tx, [told], landed, [schedule_id])
        found = await history.run(tx, run.id)
        if found is None:
            raise RunInFlight("Another run of this schedule has just started.", data={})
        return found[0]

    async def _gate(self, tx: Tx, schedule: Schedule) -> None:
        """What the gates refuse is the caller's refusal, never a run (RUN-2)."""
        target = schedule.definition.target
        key = (target.kind.value, target.id)
        verdict = (await self._gates.judge(tx, [key]))[key]
        if verdict.reason is None:
            return
        sentence = f"The schedule can't run now: {verdict.detail or verdict.reason.value}."
        if verdict.reason is Reason.TARGET_GONE:
            raise TargetGone(sentence)
        raise Conflict(sentence, code=verdict.reason.value)

    async def _disable(self, schedule_id: str, by: str) -> None:
        async def work(tx: Tx) -> None:
            target = (await held(tx, schedule_id)).definition.target
            if await schedules.target_named(tx, target) is None:
                await disable_of_target(tx, target, by)

        await self._database.write(work)
        self._signal.notify()

    async def _new_run(self, tx: Tx, schedule: Schedule, asked: _Asked) -> NewRun:
        definition, now = schedule.definition, await processes.now(tx)
        facts = placeholders.SlotFacts(
            nominal_fire_at=from_micros(now),
            local_date=await _local_date(tx, schedule, now),
            last_run_at=schedule.last_fire_at,
            run_count=schedule.run_count,
        )
        run_id = self._mint.make(Kind.RUN)
        fixed = definition.session_mode is SessionMode.FIXED
        return NewRun(
            id=run_id,
            trigger=Trigger.MANUAL,
            priority=INTERACTIVE,
            target_kind=definition.target.kind,
            target_id=definition.target.id,
            schedule_id=schedule.id,
            revision=schedule.revision,
            nominal_fire_at=None,
            session_id=definition.session_id
            if fixed and definition.session_id
            else sibling(Kind.SESSION, run_id),
            query=placeholders.resolve(definition.query, facts),
            scheduled_for=now,
            claimable_at=now,
            parallel=definition.overlap is Overlap.ALLOW,
            lease_seconds=lease_seconds(definition.timeout_seconds, definition.retry),
            trace_id=asked.trace_id,
            invoked_by=asked.by,
            api_key_id=asked.api_key_id,
            source=asked.source,
            dedup_key=_dedup_key(schedule, now),
        )


def _dedup_key(schedule: Schedule, now: int) -> str:
    """The key of a run by hand: its schedule's, with the instant asked for in the place of the slot (IDM-1).

    So a report that exists for today is not made a second time, and a schedule without a key of its own gives each
    run by hand another.
    """
    template = schedule.definition.dedup_key or dedup.DEFAULT
    own = dedup.of_schedule(schedule.id, schedule.last_fire_at, schedule.run_count)
    try:
        return dedup.render(template, from_micros(now), schedule.definition.cadence.zone, own=own)
    except KeyError:  # its zone is known no more: set aside, and it may still be run by hand
        return dedup.render(template, from_micros(now), "UTC", own=own)


async def _local_date(tx: Tx, schedule: Schedule, now: int) -> str:
    try:
        table = await timetable(tx, schedule.definition, schedule.anchor_at)
        return table.local_time(now)[:10]
    except CadenceError:  # set aside because its rule can't be computed: it may still be run by hand
        return from_micros(now).date().isoformat()
