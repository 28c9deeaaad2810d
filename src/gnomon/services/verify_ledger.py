"""The ledger of one schedule walked beside its cadence: every record a slot, every slot a record or a reason (OPS-7).

Holds one page of records at a time. What a record leaves out between it and the one before is ``verify_gaps``' affair.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.occurrence import Disposition
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.services.timetable import Timetable
from gnomon.services.verify_facts import Facts, text
from gnomon.services.verify_gaps import Gaps
from gnomon.stores.database import Row

_I = Invariant
_FIRED, _ACTIVE = Disposition.FIRED.value, ScheduleStatus.ACTIVE.value
_OVER = "the pause ended"  # by itself: slots since its instant are due, however late that was noticed


class Ledger:
    """One schedule's walk, from its creation to the present."""

    def __init__(
        self, facts: Facts, row: Row, schedule: Schedule, changes: Sequence[Row], gaps: Gaps
    ) -> None:
        self._facts = facts
        self._row = row
        self._schedule = schedule
        self._changes = changes
        self._gaps = gaps
        self._reached: int = row["created_at"]  # everything up to here is accounted for
        self._fired = 0
        self._last_fired: int | None = None
        self._newest: int | None = None

    async def judge(self, records: AsyncIterator[Row]) -> AsyncIterator[Breach]:
        """Every breach of the records in order, of the slots between them, and of what is counted of them."""
        async for record in records:
            for breach in self._record(record):
                yield breach
            first = min(record["coalesced_first"] or record["nominal_fire_at"], record["nominal_fire_at"])
            if self._facts.zone_data:
                for breach in await self._gaps.between(self._reached, first):
                    yield breach
            self._reached = max(self._reached, record["nominal_fire_at"])
            self._count(record)
        if self._facts.zone_data:
            for breach in await self._gaps.between(self._reached, self._facts.now + 1):
                yield breach
            for sentence in self._next():
                yield self._of_schedule(_I.NEXT_SLOT_WRONG, sentence)
        for sentence in self._counters():
            yield self._of_schedule(_I.COUNTERS_WRONG, sentence)

    def _count(self, record: Row) -> None:
        self._newest = record["nominal_fire_at"]
        if record["disposition"] == _FIRED:
            self._fired += 1
            self._last_fired = record["nominal_fire_at"]

    def _record(self, record: Row) -> Iterator[Breach]:
        """What one record shows by itself, and beside the one before it."""
        table = self._gaps.table_of(record["revision"])
        checks = [self._order(record), self._links(record)]
        if table is None:
            yield self._of(
                record, _I.RECORD_OF_NOTHING, f"names revision {record['revision']}, which never was."
            )
        else:
            checks += [self._slot(record, table), self._bounds(record, table)]
        for check in checks:
            for invariant, sentence in check:
                yield self._of(record, invariant, sentence)

    def _order(self, record: Row) -> Iterator[tuple[Invariant, str]]:
        """A1, A12: once, and not before it came. Where the clock was set there is no such order."""
        nominal, first = record["nominal_fire_at"], record["coalesced_first"]
        if self._facts.jumped:
            return
        if record["created_at"] < nominal:
            yield _I.RECORD_TOO_EARLY, f"was recorded at {text(record['created_at'])}, before it came."
        if nominal <= self._row["created_at"]:
            made = text(self._row["created_at"])
            yield _I.RECORD_TOO_EARLY, f"lies before its schedule, which was made at {made}."
        if first is not None and first <= self._reached and self._newest is not None:
            yield (
                _I.SLOT_RECORDED_TWICE,
                f"counts slots from {text(first)} on, and {text(self._newest)} is on record by itself.",
            )

    def _slot(self, record: Row, table: Timetable) -> Iterator[tuple[Invariant, str]]:
        """A8, DSP-7: slots of the rule that it names, as far as that still means what it meant."""
        nominal, count = record["nominal_fire_at"], record["coalesced_count"]
        changed = max(self._row["calendar_at"] or 0, self._facts.zone_data_at)
        if record["created_at"] <= changed or not self._facts.zone_data:
            return
        if not table.is_slot(nominal):
            yield _I.RECORD_IS_NO_SLOT, f"is no slot of revision {record['revision']}."
        if count is None:
            return
        first, last = record["coalesced_first"], record["coalesced_last"]
        found = table.walk.count_between(first, last + 1)
        if found != (first, last, count):
            there = "none" if found is None else f"{found[2]:,}, from {text(found[0])} to {text(found[1])}"
            yield (
                _I.COALESCED_WRONG,
                f"counts {count:,} older slots from {text(first)} to {text(last)}; there are {there}.",
            )

    def _bounds(self, record: Row, table: Timetable) -> Iterator[tuple[Invariant, str]]:
        """SCH-5, A13, A14: what fired was free to."""
        nominal = record["nominal_fire_at"]
        if record["disposition"] != _FIRED:
            return
        early = table.starts_at is not None and nominal < table.starts_at
        if early or (table.ends_at is not None and nominal > table.ends_at):
            yield _I.FIRED_OUT_OF_BOUNDS, "fired, and lies outside the window of its schedule."
        standing = [change for change in self._changes if change["at"] < nominal]
        if self._facts.jumped or not standing or standing[-1]["status"] == _ACTIVE:
            return
        following = self._changes[len(standing)] if len(standing) < len(self._changes) else None
        if following is None or following["reason"] != _OVER:
            yield _I.FIRED_OUT_OF_BOUNDS, f"fired, and its schedule was {standing[-1]['status']}."

    def _links(self, record: Row) -> Iterator[tuple[Invariant, str]]:
        """RUN-12, DSP-5: both links or neither with the stamp, and they lead to its own run."""
        run_id, session_id, stamped = record["run_id"], record["session_id"], record["links_erased_at"]
        fired = record["disposition"] == _FIRED
        if (run_id is None) != (session_id is None) or (run_id is not None and (stamped or not fired)):
            yield (
                _I.LINKS_HALF_ERASED,
                f"is {record['disposition']} with run {run_id}, session {session_id}, erased {text(stamped)}.",
            )
        elif fired and run_id is None and stamped is None:
            yield _I.FIRED_WITHOUT_RUN, "fired, and names no run."
        elif run_id is None:
            return
        elif record["run_session"] is None:
            if not self._facts.run_is_cleaned(run_id):
                yield _I.FIRED_WITHOUT_RUN, f"fired as run {run_id}, which is not there."
        elif (record["run_schedule"], record["run_nominal"]) != (self._row["id"], record["nominal_fire_at"]):
            yield _I.FIRED_WITHOUT_RUN, f"fired as run {run_id}, which is not of this slot."
        elif record["run_session"] != session_id:
            yield (
                _I.LINKS_HALF_ERASED,
                f"names session {session_id}, and its run {run_id} is in {record['run_session'] or 'none'}.",
            )

    def _next(self) -> Iterator[str]:
        """SCH-3, A10: the next slot of an active schedule, and of no other."""
        row, upcoming, table = self._row, self._row["next_fire_at"], self._gaps.table
        if row["status"] != _ACTIVE or row["deleted_at"] is not None:
            if upcoming is not None:
                yield f"can't fire, and has a next slot, {text(upcoming)}."
        elif upcoming is None:
            yield "is active, and has no next slot."
        elif not table.is_slot(upcoming):
            yield f"has the next slot {text(upcoming)}, which is none of its rule."
        elif self._newest is not None and upcoming <= self._newest <= self._facts.now:
            yield f"has the next slot {text(upcoming)}, and {text(self._newest)} is on record."
        else:
            recorded = self._newest if self._newest is not None and self._newest <= self._facts.now else 0
            first = table.first_after(max(self._facts.now, recorded))
            if upcoming > self._facts.now and (first is None or first < upcoming):
                yield f"has the next slot {text(upcoming)}, which leaves out {text(first)}."

    def _counters(self) -> Iterator[str]:
        """SCH-9: what is counted is what is on record, but for what is too old to be."""
        row, cleaned = self._row, self._facts.slots_before > 0
        if row["run_count"] != self._fired and not (cleaned and row["run_count"] > self._fired):
            yield f"counts {row['run_count']:,} runs, and {self._fired:,} slots fired."
        if self._facts.jumped:
            return
        if row["last_fire_at"] != self._last_fired and not (cleaned and self._last_fired is None):
            yield f"fired last at {text(row['last_fire_at'])}, and on record is {text(self._last_fired)}."
        if row["recorded_until"] != self._newest and not (cleaned and self._newest is None):
            yield f"is on record up to {text(row['recorded_until'])}, and the newest record is {text(self._newest)}."

    def _of(self, record: Row, invariant: Invariant, sentence: str) -> Breach:
        slot = text(record["nominal_fire_at"])
        rows = [At("occurrences", f"{self._row['id']} {slot}")]
        if record["run_id"] is not None and invariant in (_I.FIRED_WITHOUT_RUN, _I.LINKS_HALF_ERASED):
            rows.append(At("runs", record["run_id"]))
        return Breach(invariant, f"Slot {slot} of {self._row['id']} {sentence}", tuple(rows))

    def _of_schedule(self, invariant: Invariant, sentence: str) -> Breach:
        schedule_id = self._row["id"]
        return Breach(invariant, f"Schedule {schedule_id} {sentence}", (At("schedules", schedule_id),))
