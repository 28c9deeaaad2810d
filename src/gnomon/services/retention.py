"""Retention: run history and triggers, the slot ledger and the audit are each kept for a time of their own (RUN-11, DSP-9a).

The ledger is kept longer than the history, and where a schedule stands is kept on the schedule itself: cleaning up never
makes a slot fire again. Everything goes in bounded batches, each a transaction, so that no claim waits long.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import SECOND
from gnomon.stores import processes, retention
from gnomon.stores.database import Database, Tx

_log = structlog.get_logger()
BATCH = 500
MOST_BATCHES = 40  # of one round: the rest waits for the next
DAY = 24 * 3_600 * SECOND
EVERY_TICKS = 60
CALM_US = DAY  # after a jump of the clock nothing is deleted for so long: time to set it right


@dataclass(frozen=True, slots=True)
class Keep:
    """How long things are kept, in days."""

    history_days: int = 90
    ledger_days: int = 400
    audit_days: int = 400


class Retention:
    """Cleans one database; called at each sweep, it works once in many.

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did: a clock that is a year ahead for an
    hour must not cost a year of history.
    """

    def __init__(
        self, database: Database, keep: Keep, calm_us: Callable[[], int | None] = lambda: None
    ) -> None:
        self._database = database
        self._keep = keep
        self._calm_us = calm_us
        self._ticks = 0
        self._ledger_after = ""

    async def tick(self) -> None:
        """Do a round where it is time for one."""
        self._ticks += 1
        calm = self._calm_us()
        if self._ticks % EVERY_TICKS == 0 and (calm is None or calm > CALM_US):
            await self.clean()

    async def clean(self) -> int:
        """One round: at most so many batches of each kind; how many rows went."""
        now = await self._database.read(processes.now)
        ledger_before = now - self._keep.ledger_days * DAY
        audit_before = now - self._keep.audit_days * DAY
        runs_before = now - self._keep.history_days * DAY
        await self._database.write(
            lambda tx: retention.raise_floor(tx, ledger_before, audit_before, runs_before)
        )
        gone = await self._runs(runs_before) + await self._triggers(runs_before)
        gone += await self._audit(audit_before)
        gone += await self._ledger(ledger_before)
        if gone:
            _log.info("history_cleaned", rows=gone)
        return gone

    async def _runs(self, before: int) -> int:
        before_id = make_id(Kind.RUN, before // 1_000, 0)
        return await self._batches(lambda tx: retention.old_runs(tx, before_id, BATCH))

    async def _triggers(self, before: int) -> int:
        before_id = make_id(Kind.TRIGGER, before // 1_000, 0)
        return await self._batches(lambda tx: retention.old_triggers(tx, before_id, BATCH))

    async def _audit(self, before: int) -> int:
        return await self._batches(lambda tx: retention.old_audit(tx, before, BATCH))

    async def _batches(self, delete: Callable[[Tx], Awaitable[int]]) -> int:
        gone = 0
        for _ in range(MOST_BATCHES):
            batch = await self._database.write(delete)
            gone += batch
            if batch < BATCH:
                break
        return gone

    async def _ledger(self, before: int) -> int:
        """A batch for each schedule in turn; the next round goes on where this one stopped."""
        gone = 0
        for _ in range(MOST_BATCHES):
            batch, following = await self._database.write(lambda tx: self._of_one(tx, before))
            gone += batch
            if following is None:
                self._ledger_after = ""
                break
            if batch < BATCH:
                self._ledger_after = following
        return gone

    async def _of_one(self, tx: Tx, before: int) -> tuple[int, str | None]:
        schedule_id = await retention.next_ledger(tx, self._ledger_after)
        if schedule_id is None:
            return 0, None
        return await retention.old_occurrences(tx, schedule_id, before, BATCH), schedule_id
