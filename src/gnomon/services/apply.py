"""Definitions as code (SCH-13): a document held against what stands, and carried out in one transaction.

A document has sections, one for each noun, each a list of definitions in the form that the API takes. It is the whole
definition: a field that it leaves out has its default. What it does not name is left alone. A plan is the same
transaction, rolled back: what it says is what would happen, faults included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from gnomon.domain.caller import Caller
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.scopes import Scope
from gnomon.ports.wakeup import Wakeup
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.stores.database import Database, Tx

MOST_DEFINITIONS = 1_000


class Step(StrEnum):
    """What happens to one definition."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: what stands, and what the document says."""

    field: str
    standing: Any
    wanted: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened, or would, to one definition; ``secret`` only where one was drawn for it just now."""

    section: str
    key: str
    step: Step
    id: str
    differences: tuple[Difference, ...] = ()
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """What one part did with one definition: ``before`` and ``after`` are its written forms, ``before`` if it stood."""

    key: str
    id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any]
    secret: str | None = None


class Part(Protocol):
    """One section: how its definitions are put, and how they are written out."""

    section: str
    writes: Scope
    reads: Scope

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """The natural key of a definition, ``None`` where it can't be told: its own reading says why."""
        ...

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """Make what the definition says; Invalid with every fault of it."""
        ...

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """Everything that stands, in the form that ``put`` takes."""
        ...


class _RolledBack(Exception):  # noqa: N818 - it carries a plan out of a transaction that must not be
    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


class Apply:
    """Plans, applies and exports documents. ``parts`` stand in the order of need: a schedule names what is above it."""

    def __init__(self, *, database: Database, signal: Wakeup, parts: Sequence[Part]) -> None:
        self._database = database
        self._signal = signal
        self._parts = tuple(parts)

    async def plan(self, caller: Caller, document: Mapping[str, Any]) -> list[Outcome]:
        """What applying the document would do; nothing is changed.

        Raises:
            Invalid: with every fault of every definition, under its place in the document.
            Conflict: a schedule that would change has a run in flight.
            Refused: the caller's scopes do not cover a section.
        """
        wanted = self._read(caller, document)

        async def work(tx: Tx) -> None:
            raise _RolledBack(await self._put(tx, caller, wanted))

        try:
            await self._database.write(work)
        except _RolledBack as plan:
            return plan.outcomes
        raise AssertionError("a plan is always rolled back")

    async def apply(
        self, caller: Caller, document: Mapping[str, Any], *, once: Once | None = None
    ) -> list[Outcome] | Replay:
        """Make what the document says: all of it or nothing. Doing it again changes nothing.

        Under an Idempotency-Key a repeat gets the first answer, with the secrets that were drawn for it (IDM-2).

        Raises:
            Invalid: as ``plan``.
            Conflict: as ``plan``.
            Refused: as ``plan``.
        """
        wanted = self._read(caller, document)
        outcomes = await self._database.write(
            lambda tx: run_once(tx, once, lambda tx: self._put(tx, caller, wanted))
        )
        self._signal.notify()
        return outcomes

    async def export(self, caller: Caller) -> dict[str, list[dict[str, Any]]]:
        """Everything that the caller may read, as a document that would change nothing here."""
        parts = [part for part in self._parts if caller.may(part.reads)]

        async def work(tx: Tx) -> dict[str, list[dict[str, Any]]]:
            found = {part.section: await part.export(tx) for part in parts}
            return {section: definitions for section, definitions in found.items() if definitions}

        return await self._database.read(work)

    def _read(
        self, caller: Caller, document: Mapping[str, Any]
    ) -> list[tuple[Part, list[Mapping[str, Any]]]]:
        faults: list[Fault] = []
        known = {part.section for part in self._parts}
        for section in document:
            if section not in known:
                names = ", ".join(part.section for part in self._parts)
                faults.append(Fault(str(section)[:64], f"is no section; there are {names}"))
        wanted = []
        for part in self._parts:
            given = document.get(part.section)
            if given is None:
                continue
            caller.require(part.writes)
            if not isinstance(given, list) or len(given) > MOST_DEFINITIONS:
                faults.append(
                    Fault(part.section, f"must be a list of at most {MOST_DEFINITIONS:,} definitions")
                )
                continue
            faults += _misplaced(part, given)
            wanted.append((part, given))
        if faults:
            raise Invalid(faults)
        return wanted

    async def _put(
        self, tx: Tx, caller: Caller, wanted: list[tuple[Part, list[Mapping[str, Any]]]]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        faults: list[Fault] = []
        for part, definitions in wanted:
            for index, given in enumerate(definitions):
                try:
                    outcomes.append(_outcome(part.section, await part.put(tx, caller, given)))
                except Invalid as error:
                    place = f"{part.section}.{index}"
                    found = error.faults or (Fault("", error.message),)
                    faults += [Fault(f"{place}.{f.field}" if f.field else place, f.message) for f in found]
        if faults:
            raise Invalid(faults)
        return outcomes


def changes(standing: Mapping[str, Any], wanted: Mapping[str, Any], whole: frozenset[str]) -> dict[str, Any]:
    """The merge patch that turns one written form into another: null for what is gone, ``whole`` fields as they are."""
    patch: dict[str, Any] = {name: None for name in standing if name not in wanted}
    for name, value in wanted.items():
        old = standing.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping) and name not in whole:
            patch[name] = changes(old, value, whole)
        else:
            patch[name] = value
    return patch


def _misplaced(part: Part, definitions: list[Any]) -> list[Fault]:
    """Definitions that are no objects, and those that say twice who they are."""
    faults, seen = [], set()
    for index, given in enumerate(definitions):
        place = f"{part.section}.{index}"
        if not isinstance(given, Mapping):
            faults.append(Fault(place, "must be an object"))
            continue
        key = part.key_of(given)
        if key is not None and key in seen:
            faults.append(Fault(place, f"there is another {key} in this document"))
        if key is not None:
            seen.add(key)
    return faults


def _outcome(section: str, put: Put) -> Outcome:
    if put.before is None:
        return Outcome(section, put.key, Step.CREATE, put.id, secret=put.secret)
    differences = tuple(
        Difference(name, put.before.get(name), put.after.get(name))
        for name in put.after
        if put.before.get(name) != put.after.get(name)
    )
    step = Step.UPDATE if differences else Step.UNCHANGED
    return Outcome(section, put.key, step, put.id, differences, put.secret)
