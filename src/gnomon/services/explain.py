"""What became of one instant of a schedule, and why (DSP-9): answered from the ledger, the revisions and the pauses.

The ledger speaks first: what was recorded under an older rule stays true. Where it is silent, the rule that stood at
that instant says whether it was a slot at all, and the history of statuses says why it did not fire.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gnomon.domain import definition as definitions
from gnomon.domain.instants import from_micros, maybe_instant, rfc3339, to_micros
from gnomon.domain.occurrence import Disposition, Occurrence, Reason
from gnomon.domain.schedule import Revision, Schedule, ScheduleStatus
from gnomon.services.schedules import held
from gnomon.services.timetable import Timetable, Told, timetable
from gnomon.stores import history, processes, schedules
from gnomon.stores.database import Database, Tx
from gnomon.stores.history import StatusChange


class Verdict(StrEnum):
    """What can have become of an instant."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    COALESCED = "coalesced"  # one of several missed slots, recorded together
    PAUSED = "paused"  # the schedule stood still: paused, in error, or disabled
    COMPLETED = "completed"  # the schedule was finished
    OUTSIDE_WINDOW = "outside_window"
    EXCLUDED = "excluded"
    DUE = "due"  # it has come and waits for the dispatcher
    FUTURE = "future"
    BEFORE_CREATION = "before_creation"
    NOT_A_SLOT = "not_a_slot"
    FORGOTTEN = "forgotten"  # older than what retention keeps of the ledger
    UNACCOUNTED = "unaccounted"  # a breach of DSP-9: it should never be


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer. ``before`` and ``after`` are the slots around an instant that is none; ``status`` is what stood."""

    schedule_id: str
    at: datetime
    verdict: Verdict
    sentence: str
    local_time: str
    revision: int | None = None
    told: Told | None = None
    status: StatusChange | None = None
    before: datetime | None = None
    after: datetime | None = None


class Explain:
    """Explains the slots of one database."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def explain(self, schedule_id: str, at: datetime) -> Explanation:
        """What became of ``at``, which may be any instant. Missing where there is no such schedule."""

        async def work(tx: Tx) -> Explanation:
            schedule = await held(tx, schedule_id)
            return await _Case(tx, schedule, to_micros(at), await processes.now(tx)).explain()

        return await self._database.read(work)


async def verdict_at(tx: Tx, schedule: Schedule, at: int, now: int) -> Verdict:
    """What became of one instant (microseconds), told by a word, inside a transaction of the caller."""
    return (await _Case(tx, schedule, at, now).explain()).verdict


class _Case:
    """One question inside one transaction."""

    def __init__(self, tx: Tx, schedule: Schedule, at: int, now: int) -> None:
        self._tx = tx
        self._schedule = schedule
        self._at = at
        self._now = now

    async def explain(self) -> Explanation:
        revision = await schedules.revision_at(self._tx, self._schedule, self._at)
        table = await self._table(revision)
        found = await history.occurrence(self._tx, self._schedule.id, self._at)
        if found is not None:
            return self._recorded(found, table)
        later = await history.covering(self._tx, self._schedule.id, self._at)
        rule = await self._table_of(later) if later is not None else table
        if later is not None and rule.is_slot(self._at):
            return self._coalesced(later, rule)
        if revision is None or self._at <= to_micros(self._schedule.created_at):
            made = f"the schedule was made at {rfc3339(self._schedule.created_at)} by {self._schedule.created_by}"
            return self._answer(table, Verdict.BEFORE_CREATION, f"Nothing could fire then: {made}.")
        if not table.is_slot(self._at):
            return self._no_slot(table, revision)
        if not self._is_inside(table):
            window = f"{_text(table.starts_at) or 'ever'} to {_text(table.ends_at) or 'ever'}"
            sentence = f"The slot lies outside the schedule's window, {window}."
            return self._answer(table, Verdict.OUTSIDE_WINDOW, sentence, revision)
        return await self._silent(table, revision)

    async def _silent(self, table: Timetable, revision: Revision) -> Explanation:
        """A slot inside the window without a record: something stood in its way, or it has not come."""
        if self._at > self._now:
            return self._future(table, revision)
        change = await history.status_before(self._tx, self._schedule.id, self._at)
        if change is not None and change.status != ScheduleStatus.ACTIVE:
            return self._stopped(table, revision, change, "had been")
        following = await history.status_from(self._tx, self._schedule.id, self._at)
        if following is not None and following.status != ScheduleStatus.ACTIVE:
            later = await history.occurrence_after(self._tx, self._schedule.id, self._at)
            if later is None or to_micros(later.nominal_fire_at) > following.at:
                return self._stopped(table, revision, following, "had come due, unclaimed, when it was")
        return await self._missing(table, revision)

    async def _missing(self, table: Timetable, revision: Revision) -> Explanation:
        """A slot of an active schedule that the ledger does not hold."""
        if self._at < await history.ledger_floor(self._tx):
            sentence = "The slot is older than what the ledger keeps; its record is gone."
            return self._answer(table, Verdict.FORGOTTEN, sentence, revision)
        upcoming = self._schedule.next_fire_at
        if upcoming is not None and to_micros(upcoming) <= self._at:
            sentence = (
                "The slot has come and is not claimed yet: the dispatcher is behind, or it does not run."
            )
            return self._answer(table, Verdict.DUE, sentence, revision)
        slug = table.definition.cadence.calendar
        changed = None if slug is None else await schedules.calendar_changed_at(self._tx, slug)
        if changed is not None and changed > self._at:
            sentence = (
                f"The calendar {slug} was changed at {_text(changed)}: before that it left this date out."
            )
            return self._answer(table, Verdict.EXCLUDED, sentence, revision)
        sentence = "The slot has no record, and nothing explains why. This should never be: please report it."
        return self._answer(table, Verdict.UNACCOUNTED, sentence, revision)

    def _recorded(self, found: Occurrence, table: Timetable) -> Explanation:
        verdict = Verdict(found.disposition.value)
        if found.disposition is Disposition.FIRED:
            run = f"run {found.run_id}" if found.run_id else "a run whose session was erased"
            sentence = f"The slot fired under revision {found.revision}: {run}."
        elif found.reason is Reason.MISSED:
            sentence = f"The slot was missed: its turn came at {rfc3339(found.created_at)}, after its grace."
        else:
            reason = found.reason.value.replace("_", " ") if found.reason else "unknown"
            sentence = f"The slot was {found.disposition}: {reason}. Recorded at {rfc3339(found.created_at)}."
        return self._answer(table, verdict, sentence, occurrence=found)

    def _coalesced(self, later: Occurrence, rule: Timetable) -> Explanation:
        held_by = later.coalesced
        assert held_by is not None
        sentence = (
            f"The slot was missed. It is one of {held_by.count:,} from {rfc3339(held_by.first)} to "
            f"{rfc3339(held_by.last)} that were recorded together with the slot {rfc3339(later.nominal_fire_at)}."
        )
        return self._answer(rule, Verdict.COALESCED, sentence, occurrence=later)

    def _no_slot(self, table: Timetable, revision: Revision) -> Explanation:
        before = table.walk.latest_at(self._at - 1)
        following = table.walk.next_after(self._at)
        around = (
            f"the slot before it is {_text(before) or 'none'}, the slot after it {_text(following) or 'none'}"
        )
        left_out = table.is_left_out(self._at)
        verdict = Verdict.EXCLUDED if left_out else Verdict.NOT_A_SLOT
        why = "Its date is left out of the cadence" if left_out else "The cadence has no slot there"
        sentence = f"{why} (revision {revision.revision}); {around}."
        return self._answer(table, verdict, sentence, revision, before=before, after=following)

    def _future(self, table: Timetable, revision: Revision) -> Explanation:
        schedule = self._schedule
        sentence = "The slot is still to come."
        if schedule.status is not ScheduleStatus.ACTIVE:
            detail = schedule.status_detail
            until = f" until {rfc3339(detail.until)}" if detail.until else ""
            why = f": {detail.reason}" if detail.reason else ""
            sentence += (
                f" It will not fire while the schedule is {schedule.status} (by {detail.by}{why}){until}."
            )
        return self._answer(table, Verdict.FUTURE, sentence, revision)

    def _stopped(self, table: Timetable, revision: Revision, change: StatusChange, tense: str) -> Explanation:
        completed = change.status == ScheduleStatus.COMPLETED
        words = {"error": "stopped after failures", "paused": "paused"}.get(change.status, change.status)
        why = f": {change.reason}" if change.reason else ""
        subject = "The slot" if tense.startswith("had come") else "The schedule"
        sentence = f"{subject} {tense} {words} at {_text(change.at)} by {change.by}{why}."
        verdict = Verdict.COMPLETED if completed else Verdict.PAUSED
        return self._answer(table, verdict, sentence, revision, status=change)

    def _is_inside(self, table: Timetable) -> bool:
        return (table.starts_at is None or self._at >= table.starts_at) and (
            table.ends_at is None or self._at <= table.ends_at
        )

    async def _table(self, revision: Revision | None) -> Timetable:
        if revision is None or revision.revision == self._schedule.revision:
            return await timetable(self._tx, self._schedule.definition, self._schedule.anchor_at)
        return await timetable(self._tx, definitions.parse(revision.definition), self._schedule.anchor_at)

    async def _table_of(self, occurrence: Occurrence) -> Timetable:
        return await self._table(await schedules.revision(self._tx, self._schedule, occurrence.revision))

    def _answer(
        self,
        table: Timetable,
        verdict: Verdict,
        sentence: str,
        revision: Revision | None = None,
        *,
        occurrence: Occurrence | None = None,
        status: StatusChange | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> Explanation:
        number = occurrence.revision if occurrence is not None else revision.revision if revision else None
        return Explanation(
            schedule_id=self._schedule.id,
            at=from_micros(self._at),
            verdict=verdict,
            sentence=sentence,
            local_time=table.local_time(self._at),
            revision=number,
            told=None if occurrence is None else table.told(occurrence),
            status=status,
            before=maybe_instant(before),
            after=maybe_instant(after),
        )


def _text(micros: int | None) -> str | None:
    found = maybe_instant(micros)
    return None if found is None else rfc3339(found)
