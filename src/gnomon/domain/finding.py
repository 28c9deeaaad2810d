"""What ``gnomon doctor`` finds: each kind by name, what it means, and one finding with the way out (IDM-4).

A finding is no breach: nothing is broken, but something could happen twice, not at all, or be lost. How each is found,
``services/doctor_*`` know.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The name of each kind of finding; it is stable."""

    NO_DEDUP_KEY = "no_dedup_key"
    KEY_WITHOUT_SLOT = "key_without_slot"
    KEY_SHARED_BY_SLOTS = "key_shared_by_slots"
    RULE_UNREADABLE = "rule_unreadable"
    FAILING = "failing"
    SET_ASIDE = "set_aside"
    PAUSE_OVERDUE = "pause_overdue"
    SLOT_OVERDUE = "slot_overdue"
    PROCESS_SILENT = "process_silent"
    ZONE_DATA_DIFFERS = "zone_data_differs"
    VERSION_DIFFERS = "version_differs"
    CLOCK_OFF = "clock_off"
    KEY_ENDS = "key_ends"
    DATABASE_UNSAFE = "database_unsafe"


_K = Kind
TOLD: dict[Kind, str] = {
    _K.NO_DEDUP_KEY: "A schedule declares no dedup key, so a target can't know an effect again when it is asked twice.",
    _K.KEY_WITHOUT_SLOT: "The key of a loop that repeats is the same for every slot: only the first makes something.",
    _K.KEY_SHARED_BY_SLOTS: "Two slots of a loop have the same key: the second finds what the first made.",
    _K.RULE_UNREADABLE: "The rule of a loop can't be read; `gnomon verify` names it.",
    _K.FAILING: "A schedule has failed at least half as often in a row as it may.",
    _K.SET_ASIDE: "A loop stands still after failures, or because its next slot can't be computed.",
    _K.PAUSE_OVERDUE: "A pause is over, and nobody has ended it: no process sweeps.",
    _K.SLOT_OVERDUE: "A slot has come due, and nobody has taken it: no process dispatches.",
    _K.PROCESS_SILENT: "A process was not stopped, and its heartbeat is overdue.",
    _K.ZONE_DATA_DIFFERS: "Processes have different zone data, and so may compute different slots.",
    _K.VERSION_DIFFERS: "Processes of different versions work on one database.",
    _K.CLOCK_OFF: "This machine's clock and the database's differ.",
    _K.KEY_ENDS: "An API key ends soon.",
    _K.DATABASE_UNSAFE: "The database may forget what it has said is done.",
}


@dataclass(frozen=True, slots=True)
class Where:
    """What a finding is about: a schedule, a job, a process, an API key, the database; ``name`` is for people."""

    kind: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at: what was seen, and what to do about it, both in sentences."""

    kind: Kind
    where: Where
    what: str
    advice: str
