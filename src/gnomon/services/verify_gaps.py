"""Slots that the ledger does not hold: each must be explained by something that stood in its way (DSP-9).

``explain`` is asked, and not for each slot: between two instants at which anything changed its answer is the same, so
it is asked once for each such stretch. A year inside a pause costs one question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gnomon.domain import definition as definitions
from gnomon.domain.breach import At, Breach, Invariant
from gnomon.domain.instants import to_micros
from gnomon.domain.schedule import Schedule
from gnomon.services.explain import Verdict, verdict_at
from gnomon.services.timetable import Timetable, timetable
from gnomon.services.verify_facts import Facts, text
from gnomon.stores import schedules, verify
from gnomon.stores.database import Row, Tx


@dataclass(frozen=True, slots=True)
class _Stand:
    """A revision of the rule, and the instant after which it stood; its slots with its calendar as it is now."""

    revision: int
    after: int
    table: Timetable


class Gaps:
    """The silent stretches of one schedule's ledger. Build it with ``open``."""

    def __init__(  # noqa: PLR0917 - what there is to know of one schedule
        self,
        tx: Tx,
        facts: Facts,
        schedule: Schedule,
        end: int,
        stands: Sequence[_Stand],
        turns: Sequence[int],
    ) -> None:
        self._tx = tx
        self._facts = facts
        self._schedule = schedule
        self._end = end
        self._stands = stands
        self._turns = turns
        self.table = stands[-1].table

    @classmethod
    async def open(cls, tx: Tx, facts: Facts, row: Row, schedule: Schedule, changes: Sequence[Row]) -> "Gaps":
        """The gaps of a schedule whose row and changes of status these are.

        Raises:
            ValueError: one of its rules can't be computed.
            Invalid: one of its revisions can't be read.
        """
        end = min(facts.now, row["deleted_at"] or facts.now)
        stands = await _stands(tx, row, schedule)
        turns = {facts.now + 1, facts.slots_before, end + 1}
        turns.update(stand.after + 1 for stand in stands)
        turns.update(change["at"] + 1 for change in changes)
        turns.update(at for at in (row["next_fire_at"], row["calendar_at"]) if at is not None)
        for stand in stands:
            turns.update(at for at in (stand.table.starts_at, _after(stand.table.ends_at)) if at is not None)
        return cls(tx, facts, schedule, end, stands, sorted(turns))

    async def between(self, after: int, before: int) -> list[Breach]:
        """Slots strictly between two instants that nothing accounts for, told by stretches."""
        found: list[Breach] = []
        before = min(before, self._end + 1)
        for begin, end in self._stretches(after, before):
            table = self.table_at(begin)
            slots = table.walk.count_between(begin, end)
            if slots is None:
                continue
            first, last, count = slots
            if await verdict_at(self._tx, self._schedule, first, self._end) is Verdict.UNACCOUNTED:
                found.append(self._unaccounted(first, last, count))
        return found

    def table_at(self, at: int) -> Timetable:
        """The slots of the revision under which an instant lies."""
        standing = self._stands[0]
        for stand in self._stands:
            if stand.after < at:
                standing = stand
        return standing.table

    def table_of(self, revision: int) -> Timetable | None:
        """The slots of a revision by its number; ``None`` where there was none."""
        return next((stand.table for stand in self._stands if stand.revision == revision), None)

    def _stretches(self, after: int, before: int) -> Iterator[tuple[int, int]]:
        """[begin, end) by [begin, end) what lies strictly between, cut wherever anything changed."""
        begin = after + 1
        for turn in self._turns:
            if begin < turn < before:
                yield begin, turn
                begin = turn
        if begin < before:
            yield begin, before

    def _unaccounted(self, first: int, last: int, count: int) -> Breach:
        schedule_id = self._schedule.id
        if count == 1:
            sentence = f"The slot {text(first)} of {schedule_id} has no record, and nothing explains why."
        else:
            sentence = (
                f"{count:,} slots of {schedule_id} from {text(first)} to {text(last)} have no record, "
                "and nothing explains why."
            )
        return Breach(Invariant.SLOT_UNACCOUNTED, sentence, (At("schedules", schedule_id),))


async def _stands(tx: Tx, row: Row, schedule: Schedule) -> list[_Stand]:
    """Every revision in order; the first one stood from the creation on."""
    found: list[_Stand] = []
    if row["revisions"]:
        for kept in await verify.revisions(tx, schedule.id):
            revision = await schedules.revision(tx, schedule, kept["revision"])
            if revision is not None:
                definition = definitions.parse(revision.definition)
                table = await timetable(tx, definition, schedule.anchor_at)
                found.append(_Stand(kept["revision"], kept["created_at"], table))
    present = await timetable(tx, schedule.definition, schedule.anchor_at)
    return [*found, _Stand(schedule.revision, to_micros(schedule.updated_at), present)]


def _after(micros: int | None) -> int | None:
    return None if micros is None else micros + 1
