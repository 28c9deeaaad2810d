"""What happened to real or simulated processes, as the recorders saw it: changes, calls of the target, faults, the final records."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Change:
    """One committed change of a row: ``at`` in seconds of the history, ``wall`` in microseconds, ``actor`` who wrote it."""

    at: float
    wall: int
    actor: str
    kind: str
    subject: str
    old: dict[str, Any]
    new: dict[str, Any]


@dataclass
class Journal:
    """Every change in the order of its commit."""

    changes: list[Change] = field(default_factory=list)
    version: int = 0

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind of row."""
        return [change for change in self.changes if change.kind == kind]


@dataclass(slots=True)
class Hit:
    """One call of the target, as the target saw it. Instants are seconds of the history."""

    run_id: str
    key: str
    fence: int
    attempt: int
    nominal: int | None
    process: str
    begin: float
    plan: str
    end: float | None = None
    ended: str = ""


@dataclass(slots=True)
class Fault:
    """Something that was done to a process, or to the machine (``process`` is ``*``), from when to when."""

    kind: str
    process: str
    begin: float
    end: float | None = None

    def touches(self, process: str, begin: float, end: float, after: float = 0.0) -> bool:
        """Whether it touched ``process`` in [begin, end], or not longer before than ``after`` seconds."""
        over = float("inf") if self.end is None else self.end
        return self.process in (process, "*") and self.begin <= end and over + after >= begin


@dataclass
class History:
    """All of it, for the checks. ``tables`` are the product's own records after settling."""

    journal: Journal = field(default_factory=Journal)
    hits: list[Hit] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    injected: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    births: dict[str, float] = field(default_factory=dict)
    calm: bool = False
    heartbeat_timeout: float = 120.0
    sweep: float = 60.0
    slack: float = 15.0  # how late a loop may be, beside its bound
    latest_wall: int = 0
    ended_wall: int = 0

    def fault(self, kind: str, process: str, begin: float, end: float | None = None) -> Fault:
        """Note a fault."""
        made = Fault(kind, process, begin, end)
        self.faults.append(made)
        self.injected[kind] += 1
        return made

    def touched(self, process: str, begin: float, end: float, kinds: set[str], after: float = 0.0) -> bool:
        """Whether a fault of these kinds touched a process in a span."""
        return any(f.kind in kinds and f.touches(process, begin, end, after) for f in self.faults)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A table's rows after settling."""
        return self.tables[table]
