"""What the checks must know of a database as a whole: its present, how far it was cleaned, whether its clock ever lied."""

from dataclasses import dataclass

from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import maybe_instant, rfc3339
from gnomon.stores.database import Row


@dataclass(frozen=True, slots=True)
class Facts:
    """Instants are microseconds. What lies before a floor may have been deleted for its age."""

    now: int
    slots_before: int
    audit_before: int
    runs_before: int
    jumped: bool  # a clock guard saw the clock jump: instants are no order any more
    zone_data: bool  # the zone data is that of the process that started last: wall times mean what they meant
    zone_data_at: int  # when next slots were last brought to other zone data

    def run_is_cleaned(self, run_id: str) -> bool:
        """Whether a run of this id may have been deleted for its age."""
        return self.runs_before > 0 and run_id < make_id(Kind.RUN, self.runs_before // 1_000, 0)

    def audit_is_cleaned(self, subject_id: str) -> bool:
        """Whether the claim of a run or task of this id may have been deleted from the audit for its age."""
        return self.audit_before > 0 and subject_id[4:] < make_id(Kind.RUN, self.audit_before // 1_000, 0)[4:]


def facts_of(row: Row, zone_data: str) -> Facts:
    """The facts of ``stores.verify.facts``, judged with the zone data of this program."""
    return Facts(
        now=row["now"],
        slots_before=row["occurrences_before"],
        audit_before=row["audit_before"],
        runs_before=row["runs_before"],
        jumped=row["jumps"] > 0,
        zone_data=row["zone_data"] in (None, zone_data),
        zone_data_at=row["zone_data_at"] or 0,
    )


def text(micros: int | None) -> str:
    """An instant as people read it; a number that is none stays a number."""
    try:
        found = maybe_instant(micros)
    except OverflowError:
        return str(micros)
    return "none" if found is None else rfc3339(found)
