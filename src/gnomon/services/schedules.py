"""Schedules: made, read, edited, deleted. Each write is one transaction, judged by the database's clock.

Pausing and resuming are in ``pausing``, starting a run by hand in ``run_now``, explaining a slot in ``explain``.
"""

from dataclasses import dataclass, replace

from gnomon.cadence import Slot
from gnomon.domain import definition as definitions
from gnomon.domain import versions
from gnomon.domain.audit import Action
from gnomon.domain.definition import Draft
from gnomon.domain.errors import Fault, Invalid, Missing, RevisionStale, RunInFlight
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.ids import Kind, is_slug
from gnomon.domain.instants import from_micros, maybe_instant, rfc3339, to_micros
from gnomon.domain.occurrence import Reason
from gnomon.domain.schedule import (
    Definition,
    Revision,
    Schedule,
    ScheduleEvent,
    ScheduleStatus,
    SessionMode,
    after,
)
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.versions import Match
from gnomon.ports.wakeup import News, Wakeup
from gnomon.services import pending
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.services.timetable import Timetable, anchor_of, timetable
from gnomon.stores import audit, processes, schedules
from gnomon.stores.database import Database, Tx

# What comes due later than this wakes nobody: a dispatcher looks for itself twice before, whatever its tick.
FAR_SECONDS = 60
_TIMING = ("cadence", "starts_at", "ends_at", "max_runs")  # without them nothing can be said of its slots


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save left behind; ``changed`` is false where it changed nothing (SCH-12a)."""

    schedule: Schedule
    changed: bool


class Schedules:
    """The schedules of one database."""

    def __init__(self, *, database: Database, mint: Mint, signal: Wakeup) -> None:
        self._database = database
        self._mint = mint
        self._signal = signal

    async def create(self, given: object, by: str, *, once: Once | None = None) -> Schedule | Replay:
        """Make a schedule of its written definition (CONTRACT, "Schedule"), once under an Idempotency-Key (IDM-2).

        Raises:
            Invalid: with every fault at its field; also where it would never fire (SCH-14).
        """
        draft = definitions.read(given)
        made = await self._database.write(
            lambda tx: run_once(tx, once, lambda tx: self.create_in(tx, draft, by))
        )
        if isinstance(made, Schedule):
            self._tell(made)
        return made

    async def create_in(self, tx: Tx, draft: Draft, by: str) -> Schedule:
        """The same inside a transaction of the caller, who notifies after the commit."""
        now = await processes.now(tx)
        definition, faults = await self._refer(tx, draft, None)
        anchor_at = anchor_of(definition, from_micros(now))
        table = await timetable(tx, definition, anchor_at)
        if draft.reads(*_TIMING):
            faults += table.faults(now)
        if faults:
            raise Invalid(faults)
        first = table.first_after(now)
        assert first is not None  # what has no slot is a fault
        schedule_id = self._mint.make(Kind.SCHEDULE)
        await schedules.insert(
            tx, schedule_id, definition, anchor_at=to_micros(anchor_at), next_fire_at=first, by=by, now=now
        )
        await _note(tx, by, Action.CREATE, schedule_id, {"revision": 1, "next_fire_at": _text(first)})
        return await held(tx, schedule_id)

    async def get(self, schedule_id: str) -> Schedule:
        """The schedule as it stands. Missing where there is none, or it was deleted."""
        return await self._database.read(lambda tx: held(tx, schedule_id))

    async def page(self, chosen: ScheduleFilter, after_id: str, limit: int) -> list[Schedule]:
        """Schedules in the order of their making, from after ``after_id`` on. A target may be named by its slug."""

        async def work(tx: Tx) -> list[Schedule]:
            if chosen.target is None or not is_slug(chosen.target):
                return await schedules.page(tx, chosen, after_id, limit)
            target = await target_of(tx, chosen.target, chosen.target_kind)
            if target is None:
                return []
            by_id = replace(chosen, target_kind=target.kind, target=target.id)
            return await schedules.page(tx, by_id, after_id, limit)

        return await self._database.read(work)

    async def edit(self, schedule_id: str, patch: object, by: str, *, match: Match = None) -> Saved:
        """Replace the fields that ``patch`` names; ``next_fire_at`` is the first slot under the new revision.

        Raises:
            Invalid: with every fault.
            RevisionStale: the caller knew another revision (SCH-4).
            RunInFlight: it names the run (SCH-10).
        """

        async def work(tx: Tx) -> Saved:
            return await self.edit_in(tx, schedule_id, patch, by, match=match)

        saved = await self._database.write(work)
        if saved.changed:
            self._tell(saved.schedule)
        return saved

    def _tell(self, saved: Schedule) -> None:
        """Wake the dispatchers, where one of them could look too late for the slot."""
        first = saved.next_fire_at
        if first is not None and (first - saved.updated_at).total_seconds() <= FAR_SECONDS:
            self._signal.notify(News.SLOT)

    async def edit_in(
        self, tx: Tx, schedule_id: str, patch: object, by: str, *, match: Match = None
    ) -> Saved:
        """The same inside a transaction of the caller, who notifies after the commit."""
        standing = await held(tx, schedule_id, match)
        draft = definitions.revised(standing.definition, patch)
        wanted, faults = await self._refer(tx, draft, standing.definition)
        if wanted == standing.definition and not faults:
            return Saved(standing, changed=False)
        now = await processes.now(tx)
        table = await timetable(tx, wanted, standing.anchor_at)
        retimed = definitions.timing(wanted) != definitions.timing(standing.definition)
        if retimed and draft.reads(*_TIMING):
            faults += table.faults(now, standing.run_count)
        if faults:
            raise Invalid(faults)
        refuse_in_flight(standing, "edited")
        await self._revise(tx, standing, table, by, retimed=retimed)
        return Saved(await held(tx, schedule_id), changed=True)

    async def _revise(self, tx: Tx, standing: Schedule, table: Timetable, by: str, *, retimed: bool) -> None:
        wanted = table.definition
        now = await processes.now(tx)
        status, first = standing.status, table.first_after(now)
        if status is ScheduleStatus.COMPLETED and retimed:
            status = after(status, ScheduleEvent.REVISE) or status
        elif status is ScheduleStatus.ACTIVE and first is None:
            status = after(status, ScheduleEvent.EXHAUST) or status  # its last slot came due unclaimed
        await pending.account(tx, standing, now, Reason.MISSED, by)
        active = status is ScheduleStatus.ACTIVE
        if not await schedules.revise(tx, standing, wanted, status, first if active else None, by, now):
            raise RevisionStale("The schedule was changed at the same moment. Read it again, then save.")
        before, now_stands = definitions.to_json(standing.definition), definitions.to_json(wanted)
        fields = [name for name in definitions.FIELDS if before[name] != now_stands[name]]
        detail = {"revision": standing.revision + 1, "fields": fields, "next_fire_at": _text(first)}
        await _note(tx, by, Action.UPDATE, standing.id, detail)

    async def delete(self, schedule_id: str, by: str, *, match: Match = None) -> None:
        """Stop all its future slots for good; its runs and its ledger stay (SCH-10).

        Raises:
            RunInFlight: a run is unfinished; it is named, and not touched.
        """

        async def work(tx: Tx) -> None:
            standing = await held(tx, schedule_id, match)
            refuse_in_flight(standing, "deleted")
            await pending.account(tx, standing, await processes.now(tx), Reason.MISSED, by)
            await schedules.delete(tx, schedule_id, by)
            await _note(tx, by, Action.DELETE, schedule_id, {"revision": standing.revision})

        await self._database.write(work)
        self._signal.notify()

    async def next_slots(self, schedule_id: str, count: int) -> list[Slot]:
        """The next slots that will fire: none while it stands still, those after ``until`` of a pause that ends."""

        async def work(tx: Tx) -> list[Slot]:
            schedule = await held(tx, schedule_id)
            begin = await processes.now(tx)
            if schedule.status is not ScheduleStatus.ACTIVE:
                if schedule.status_detail.until is None:
                    return []
                begin = max(begin, to_micros(schedule.status_detail.until) - 1)
            most = schedule.definition.max_runs
            left = count if most is None else min(count, most - schedule.run_count)
            table = await timetable(tx, schedule.definition, schedule.anchor_at)
            return table.ahead(begin, max(left, 0))

        return await self._database.read(work)

    async def revisions(self, schedule_id: str, before: int, limit: int) -> list[Revision]:
        """Revisions below ``before``, the newest first (SCH-4)."""

        async def work(tx: Tx) -> list[Revision]:
            return await schedules.revisions(tx, await held(tx, schedule_id), before, limit)

        return await self._database.read(work)

    async def _refer(
        self, tx: Tx, draft: Draft, standing: Definition | None
    ) -> tuple[Definition, list[Fault]]:
        """Resolve what a definition names: the target's slug to its id, the calendar, the session (made if needed).

        The faults are the draft's and what is not there, so that one answer lists all of them.
        """
        wanted, faults = draft.definition, list(draft.faults)
        if draft.reads("target") and (standing is None or wanted.target != standing.target):
            named = await schedules.target_named(tx, wanted.target)
            if named is None:
                kind = wanted.target.kind.value
                faults.append(Fault("target", f"there is no {kind} {wanted.target.id}"))
            else:
                wanted = replace(wanted, target=replace(wanted.target, id=named[0]))
        slug = wanted.cadence.calendar
        if slug is not None and await schedules.calendar_changed_at(tx, slug) is None:
            faults.append(Fault("cadence.calendar", f"there is no calendar {slug}"))
        if wanted.session_mode is SessionMode.FIXED:
            if wanted.session_id is None:
                wanted = replace(wanted, session_id=self._mint.make(Kind.SESSION))
            assert wanted.session_id is not None
            if not await schedules.begin_session(tx, wanted.session_id):
                faults.append(Fault("session_id", "this session was erased"))
        return wanted, faults


async def target_of(tx: Tx, name: str, kind: TargetKind | None = None) -> Target | None:
    """The living target of this id or slug, of whichever kind has it."""
    for candidate in [kind] if kind else list(TargetKind):
        named = await schedules.target_named(tx, Target(candidate, name))
        if named is not None:
            return Target(candidate, named[0])
    return None


async def held(tx: Tx, schedule_id: str, match: Match = None) -> Schedule:
    """The schedule of this id, at a revision that the caller's If-Match accepts.

    Raises:
        Missing: there is none, or it was deleted.
        RevisionStale: it has changed since (SCH-4).
    """
    found = await schedules.get(tx, schedule_id)
    if found is None:
        raise Missing(f"There is no schedule {schedule_id}.")
    versions.require(match, found.id, found.revision)
    return found


def refuse_in_flight(schedule: Schedule, done: str) -> None:
    """Refuse while a run is unfinished, naming it (SCH-10)."""
    if schedule.in_flight_run_id is not None:
        raise RunInFlight(
            f"Run {schedule.in_flight_run_id} of this schedule is unfinished, so it can't be {done} now. Wait for the "
            "run, or cancel it; the schedule may be paused meanwhile.",
            data={"run_id": schedule.in_flight_run_id},
        )


async def _note(tx: Tx, by: str, action: Action, schedule_id: str, detail: dict[str, object]) -> None:
    await audit.append(
        tx, actor=by, action=action, subject_kind="schedule", subject_id=schedule_id, detail=detail
    )


def _text(micros: int | None) -> str | None:
    found = maybe_instant(micros)
    return None if found is None else rfc3339(found)
