"""The tick that sends triggers over the connections that this process holds (JOB-3, JOB-4).

A trigger is marked as pushed before it is sent: a server that dies between the two leaves one that is sent again to
another instance, and says so. One that is not acknowledged in time is taken back, and its connection ended, since it is
half open or whoever holds its other end hangs.
"""

import asyncio
import json
from collections import Counter
from functools import partial
from typing import Any

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND, from_micros, rfc3339
from gnomon.domain.trigger import ACKNOWLEDGE_SECONDS, TriggerStatus
from gnomon.ports.push import Partings, Push
from gnomon.ports.wakeup import Wakeup
from gnomon.services.trigger_returns import pass_on
from gnomon.services.trigger_sweep import TriggerSweep
from gnomon.stores import audit, triggers
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Database, Row, Tx
from gnomon.stores.triggers import Held

BATCH = 200
_BOUND_US = ACKNOWLEDGE_SECONDS * SECOND
SOON_SECONDS = 0.2  # a connection that is written down and not held yet, or not any more
_log = structlog.get_logger()


class TriggerDelivery:
    """Sends what the instances connected here are to get; one in each process that holds connections."""

    def __init__(
        self, *, database: Database, push: Push, wakeup: Wakeup, process_id: str, sweep: TriggerSweep
    ) -> None:
        self._database = database
        self._push = push
        self._wakeup = wakeup
        self._process_id = process_id
        self._sweep = sweep
        self._ended = True  # a process that was here before this one may have left something behind
        self._closing: set[tuple[str, int]] = set()  # connections that take nothing more, until they are over
        # pushes, first ones and repeats, for the metrics
        self.pushed: Counter[str] = Counter()

    async def gone(self, instance_id: str, epoch: int) -> None:
        """A connection is over: what it had is looked at with the next tick, however many end at once."""
        self._closing.discard((instance_id, epoch))
        self._ended = True
        self._wakeup.wake()

    async def tick(self) -> float | None:
        """Send what is to be sent; seconds until an acknowledgement is late, or ``None`` where none is awaited."""
        if self._ended:
            self._ended = False
            await self._sweep.tick()
        while True:
            found, awaited = await self._database.look(self._look)
            late = [held for held, age_us in awaited if age_us >= _BOUND_US]
            if late:
                await self._give_up(late)
            ready = [row for row in found if self._takes(row)]
            if not ready:
                return _wait(awaited, behind=bool(found))
            marked = await self._database.write_guarded(partial(self._mark, ready))
            await asyncio.gather(*(self._send(row) for row in marked))
            if not marked:  # whoever it was for has just connected anew, or drains
                return SOON_SECONDS

    async def _look(self, tx: Tx) -> tuple[list[Row], list[tuple[Held, int]]]:
        return (
            await triggers.to_push(tx, self._process_id, BATCH),
            await triggers.unacknowledged(tx, self._process_id, BATCH),
        )

    def _takes(self, row: Row) -> bool:
        connection = row["instance_id"], row["epoch"]
        return self._push.holds(*connection) and connection not in self._closing

    async def _mark(self, ready: list[Row], tx: Tx) -> list[Row]:
        """Those that are to be sent indeed; whoever drains, or connected anew, is left out."""
        wanted = [
            {
                "id": row["id"],
                "instance_id": row["instance_id"],
                "epoch": row["epoch"],
                "server": self._process_id,
            }
            for row in ready
        ]
        landed = await triggers.push(tx, wanted)
        marked = [row for row in ready if row["id"] in landed]
        await audit.append_many(tx, [self._entry(row) for row in marked])
        return marked

    def _entry(self, row: Row) -> NewEntry:
        detail: dict[str, object] = {"job_id": row["job_id"], "instance_id": row["instance_id"]}
        if row["pushes"]:
            detail["redelivered"] = True
        return new_entry(self._process_id, Action.PUSH, "trigger", row["id"], row["epoch"], detail)

    async def _send(self, row: Row) -> None:
        if await self._push.send(row["instance_id"], row["epoch"], frame_of(row)):
            self.pushed["redelivered" if row["pushes"] else "first"] += 1
            return
        self._closing.add((row["instance_id"], row["epoch"]))
        held = Held(
            row["id"],
            row["job_id"],
            row["nominal_fire_at"],
            TriggerStatus.PUSHED,
            row["instance_id"],
            row["epoch"],
            row["pushes"] + 1,
        )
        await self._database.write_guarded(lambda tx: pass_on(tx, [held], "not_sent", unsent=True))
        self._wakeup.notify()

    async def _give_up(self, late: list[Held]) -> None:
        """Whoever does not acknowledge is half open, or hangs: others get what it had, and its connection ends."""
        for held in late:
            _log.warning("trigger_not_acknowledged", trigger_id=held.id, instance_id=held.instance_id)
            self._closing.add((held.instance_id, held.epoch))
            self._push.part(held.instance_id, held.epoch, Partings.UNACKNOWLEDGED)
        await self._database.write_guarded(lambda tx: pass_on(tx, late, "not_acknowledged"))
        self._wakeup.notify()


def _wait(awaited: list[tuple[Held, int]], *, behind: bool) -> float | None:
    """Until an acknowledgement is late, or a connection may be held that is written down already."""
    waits = [(_BOUND_US - age_us) / SECOND for _, age_us in awaited if age_us < _BOUND_US]
    if behind:
        waits.append(SOON_SECONDS)
    return min(waits) if waits else None


def frame_of(row: Row) -> dict[str, Any]:
    """The ``job_trigger`` of a row of ``stores.triggers.to_push`` (CONTRACT, WebSocket)."""
    return {
        "type": "job_trigger",
        "trigger_id": row["id"],
        "job": row["job"],
        "nominal_at": rfc3339(from_micros(row["nominal_fire_at"])),
        "dedup_key": row["dedup_key"],
        "payload": json.loads(row["payload"]),
        "redelivered": row["pushes"] > 0,
    }
