"""The product's SQLite connection without its threads: the same SQL on the same file, with faults on the way to it.

Every call is two hops of virtual time with the transaction in between, so that a process may die before it is sent,
after it was committed, or with the answer on its way. Triggers that only the simulation has tell each change of a run,
a schedule and the ledger to ``Journal``, with who made it: a second history, which the product's own records must match.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from gnomon.domain.errors import Unavailable
from gnomon.ports.clock import Clock
from gnomon.stores.database import Tx
from gnomon.stores.queries import Query
from gnomon.stores.sqlite.connection import Connection, open_connection
from support import simulation_board_rows
from support.history import Change, Journal

T = TypeVar("T")
HOP_SECONDS = (0.0, 0.0, 0.001, 0.004, 0.02, 0.1)
_RUN = ("status", "fence", "owner", "lease_until", "attempt", "finished_at")
_SCHEDULE = (
    "status",
    "next_fire_at",
    "in_flight_run_id",
    "waiting_run_id",
    "failure_streak",
    "fence",
    "revision",
)
TRIGGERS = f"""
CREATE TRIGGER sim_run_new AFTER INSERT ON runs BEGIN
    SELECT sim_note('run', NEW.id, NEW.schedule_id, NEW.trigger_kind, {", ".join("NULL" for _ in _RUN)},
        {", ".join(f"NEW.{name}" for name in _RUN)}); END;
CREATE TRIGGER sim_run AFTER UPDATE ON runs BEGIN
    SELECT sim_note('run', NEW.id, NEW.schedule_id, NEW.trigger_kind, {", ".join(f"OLD.{name}" for name in _RUN)},
        {", ".join(f"NEW.{name}" for name in _RUN)}); END;
CREATE TRIGGER sim_schedule AFTER UPDATE ON schedules BEGIN
    SELECT sim_note('schedule', NEW.id, NULL, NULL, {", ".join(f"OLD.{name}" for name in _SCHEDULE)},
        {", ".join(f"NEW.{name}" for name in _SCHEDULE)}); END;
CREATE TRIGGER sim_slot AFTER INSERT ON occurrences BEGIN
    SELECT sim_note('slot', NEW.schedule_id, NEW.disposition,
        (SELECT status FROM schedules WHERE id = NEW.schedule_id), NEW.nominal_fire_at, NEW.created_at); END;
"""
_FIELDS = {"run": _RUN, "schedule": _SCHEDULE, **simulation_board_rows.FIELDS}


@dataclass
class Faults:
    """What one process's way to the database suffers."""

    down: bool = False
    lose_answer_in: int | None = None  # so many writes from now, the commit's answer is lost
    hit: Callable[[str], None] = field(default=lambda _: None)

    def check(self) -> None:
        if self.down:
            self.hit("refused")
            raise Unavailable("The database can't be reached.", code="database_failed")

    def committed(self) -> None:
        if self.lose_answer_in is None:
            return
        self.lose_answer_in -= 1
        if self.lose_answer_in < 0:
            self.lose_answer_in = None
            self.hit("lost_answer")
            raise Unavailable("The connection broke while the commit was under way.", code="database_failed")


class SimDatabase:
    """``stores.database.Database`` of one simulated process."""

    def __init__(  # noqa: PLR0917 - what one process's way to the file is made of
        self,
        path: Path,
        clock: Clock,
        queries: Mapping[str, Query],
        rng: random.Random,
        actor: str,
        journal: Journal,
        faults: Faults | None = None,
    ) -> None:
        self.actor = actor
        self.faults = faults or Faults()
        self._journal = journal
        self._rng = rng
        self._clock = clock
        self._connection = open_connection(path, clock, queries)
        self._pending: list[Change] = []
        raw = self._connection._raw
        raw.execute("PRAGMA synchronous=OFF")  # processes die here, the machine does not
        raw.create_scalar_function("sim_note", cast("Any", self._note), -1)

    def _note(self, kind: str, subject: str, *values: Any) -> None:
        if kind == "slot":
            disposition, status, nominal, created_at = values
            old: dict[str, Any] = {}
            new = {"disposition": disposition, "status": status, "nominal": nominal, "created_at": created_at}
        else:
            names = _FIELDS[kind]
            old = dict(zip(names, values[2 : 2 + len(names)], strict=True))
            new = dict(zip(names, values[2 + len(names) :], strict=True))
            old["schedule_id"] = new["schedule_id"] = values[0]
            new["trigger"] = values[1]
        if old != new:
            self._pending.append(
                Change(self._clock.monotonic(), self._clock.micros(), self.actor, kind, subject, old, new)
            )

    def transact(self, begin: str, work: Callable[[Tx], Awaitable[T]]) -> T:
        """One transaction, here and now; what it changed goes to the journal once it is committed."""
        self.faults.check()
        self._pending = []
        answer = self._connection.transaction(begin, work)
        if self._pending:
            self._journal.changes.extend(self._pending)
            self._journal.version += 1
            self.faults.committed()
        return answer

    async def write_held(
        self,
        read: Callable[[Tx], Awaitable[Any]],
        plan: Callable[[Any], Any],
        write: Callable[[Tx, Any], Awaitable[T]],
    ) -> T | None:
        """As SQLite does it: others may write between the look and the writing."""
        planned = plan(await self.read(read))
        return None if planned is None else await self.write(lambda tx: write(tx, planned))

    async def write_guarded(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As ``write``."""
        return await self.write(work)

    async def everywhere(self, work: Callable[[Tx], Awaitable[object]]) -> None:
        """Not at all: what a process goes through writes nothing, and with a bug put in it would be found by that alone."""

    async def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        await self._hop()
        answer = self.transact("BEGIN IMMEDIATE", work)
        await self._hop()
        return answer

    async def look(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """As ``read``."""
        return await self.read(work)

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        await self._hop()
        answer = self.transact("BEGIN", work)
        await self._hop()
        return answer

    async def _hop(self) -> None:
        await asyncio.sleep(self._rng.choice(HOP_SECONDS))

    def direct(self, patience: float | None = None) -> "SimDirect":
        return SimDirect(self, self._journal)

    async def close(self) -> None:
        self.shut()

    def shut(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def connection(self) -> Connection:
        """For the simulation's own look at the file."""
        return self._connection


class SimDirect:
    """``stores.database.DirectDatabase``: the heartbeat's own connection, without a hop."""

    def __init__(self, database: SimDatabase, journal: Journal) -> None:
        self._database = database
        self._journal = journal
        self._seen = journal.version

    def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self._database.transact("BEGIN IMMEDIATE", work)

    def write_one(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self.write(work)

    def changed_elsewhere(self) -> bool:
        seen, self._seen = self._seen, self._journal.version
        return seen != self._seen

    def close(self) -> None:
        """There is nothing to close: the file is the process's."""
