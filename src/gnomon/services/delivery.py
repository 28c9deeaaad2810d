"""What goes to and comes from the instances that are connected here, of runs that are pushed to them (TGT-1, JOB-4).

``tick()`` sends what was given to them and tells them what was withdrawn. What they answer is written under the fence of
its push: an old one changes nothing (RUN-6).
"""

import json
from collections.abc import Callable
from typing import Any

from gnomon.domain.audit import Action
from gnomon.domain.errors import FenceStale, Missing
from gnomon.domain.instants import SECOND
from gnomon.domain.invocation import Failing, Usage
from gnomon.domain.push import REASON_CHARACTERS, PushEnd, PushKey, PushStatus, Withdrawal, key_of
from gnomon.ports.push import Partings, Push, Speaker
from gnomon.ports.wakeup import Wakeup
from gnomon.stores import audit, pushes
from gnomon.stores.database import Database, Row, Tx

BATCH = 100
ACKNOWLEDGE_SECONDS = 10.0
LOOK_SECONDS = 5.0
SOON_SECONDS = 0.2  # a connection that is written down and not held yet, or not any more


Say = Callable[[str, int, str], None]
"""Puts a line of progress (run, fence, text) into a run's event stream."""


class Delivery:
    """The pushes of one process's connections."""

    def __init__(self, database: Database, signal: Wakeup, push: Push, say: Say, process_id: str) -> None:
        self._database = database
        self._signal = signal
        self._push = push
        self._say = say
        self._process_id = process_id
        self._closing: set[tuple[str, int]] = set()
        self._worked_on: dict[tuple[str, int], set[PushKey]] = {}

    async def tick(self) -> float | None:
        """Send what is to be sent; seconds until the next look."""
        if not len(self._push):
            return None
        patience_us = round(ACKNOWLEDGE_SECONDS * SECOND)

        async def look(tx: Tx) -> tuple[list[Row], list[Row], list[tuple[str, int]]]:
            return (
                await pushes.to_push(tx, self._process_id, BATCH),
                await pushes.untold(tx, self._process_id, BATCH),
                await pushes.unacknowledged(tx, self._process_id, patience_us),
            )

        fresh, withdrawn, unacknowledged = await self._database.read(look)
        for instance_id, epoch in unacknowledged:  # what it does not take goes to another (JOB-4)
            self._push.part(instance_id, epoch, Partings.UNACKNOWLEDGED)
        ready = [row for row in fresh if self._takes(row["instance_id"], row["epoch"])]
        if ready:
            await self._send(ready)
        if withdrawn:
            await self._tell(withdrawn)
        if len(ready) < len(fresh):
            return SOON_SECONDS
        return 0.0 if BATCH in (len(fresh), len(withdrawn)) else LOOK_SECONDS

    def _takes(self, instance_id: str, epoch: int) -> bool:
        return self._push.holds(instance_id, epoch) and (instance_id, epoch) not in self._closing

    async def _send(self, rows: list[Row]) -> None:
        """Note first, then send: what is lost between is sent again when the connection ends, never twice over one."""
        pushed = await self._database.write_guarded(lambda tx: pushes.push(tx, rows))
        for row in rows:
            if _key(row) in pushed:
                frame = {**json.loads(row["frame"]), "redelivered": row["pushes"] > 0}
                if not await self._push.send(row["instance_id"], row["epoch"], frame):
                    # it is being cut off: what it was to get waits for another once it is over
                    self._closing.add((row["instance_id"], row["epoch"]))

    async def _tell(self, rows: list[Row]) -> None:
        await self._database.write_guarded(lambda tx: pushes.tell(tx, [_key(row) for row in rows]))
        for row in rows:
            key = _key(row)
            frame = {"type": row["withdrawal"], "run_id": key.wire_id, "fence": key.fence}
            await self._push.send(row["instance_id"], row["epoch"], frame)

    async def acknowledged(self, speaker: Speaker, frame: dict[str, Any]) -> None:
        """``run_ack``: the instance works on it.

        Raises:
            Missing: nothing of the kind was pushed to it.
            FenceStale: another attempt has taken its place.
        """
        key = key_of(frame["run_id"], frame["fence"])
        if await self._database.write_guarded(lambda tx: pushes.acknowledge(tx, key, speaker.instance_id)):
            self._worked_on.setdefault((speaker.instance_id, speaker.epoch), set()).add(key)
            self._signal.notify()
            return
        await self._judge(speaker, key)

    async def progressed(self, speaker: Speaker, frame: dict[str, Any]) -> None:
        """``run_progress``: a line for the run's event stream, or usage so far (TGT-2). Raises as ``acknowledged``."""
        key = key_of(frame["run_id"], frame["fence"])
        if frame.get("usage") is not None:
            spent = Usage(**frame["usage"])
            if not await self._database.write_guarded(
                lambda tx: pushes.usage(tx, key, speaker.instance_id, spent)
            ):
                await self._judge(speaker, key)
                return
        elif not await self._works_on(speaker, key):
            await self._judge(speaker, key)
            return
        if frame.get("text"):
            text = frame["text"]
            self._say(key.run_id, key.fence, f"node {key.node}: {text}" if key.node else text)

    async def answered(self, speaker: Speaker, frame: dict[str, Any]) -> None:
        """``run_result``: the end of the attempt. A second one of the same changes nothing. Raises as ``acknowledged``."""
        end = _end(key_of(frame["run_id"], frame["fence"]), frame)
        self._worked_on.get((speaker.instance_id, speaker.epoch), set()).discard(end.key)
        if await self._database.write_guarded(lambda tx: pushes.answer(tx, end, speaker.instance_id)):
            self._signal.notify()
            return
        await self._judge(speaker, end.key)

    async def gone(self, instance_id: str, epoch: int) -> None:
        """A connection is over."""
        self._closing.discard((instance_id, epoch))
        self._worked_on.pop((instance_id, epoch), None)

    async def _works_on(self, speaker: Speaker, key: PushKey) -> bool:
        known = self._worked_on.setdefault((speaker.instance_id, speaker.epoch), set())
        if key not in known:
            rows = await self._database.read(lambda tx: pushes.like(tx, key))
            if not any(_is_open(row, speaker, key) for row in rows):
                return False
            known.add(key)
        return True

    async def _judge(self, speaker: Speaker, key: PushKey) -> None:
        """Why a frame changed nothing: returns where that is no fault of whoever sent it.

        Raises:
            Missing, FenceStale: as ``acknowledged``.
        """

        async def work(tx: Tx) -> bool:
            rows = await pushes.like(tx, key)
            mine = [row for row in rows if row["instance_id"] == speaker.instance_id]
            same = next((row for row in mine if row["fence"] == key.fence), None)
            newer = any(row["fence"] > key.fence for row in rows)
            if not mine or (same is None and not newer):
                raise _not_there(key)
            if same is not None and not newer and same["withdrawal"] != Withdrawal.REVOKE:
                return False  # said twice, or while the cancel was on its way
            await audit.append(
                tx,
                actor=speaker.instance_id,
                action=Action.FENCED,
                subject_kind="run",
                subject_id=key.run_id,
                fence=key.fence,
            )
            return True

        self._worked_on.get((speaker.instance_id, speaker.epoch), set()).discard(key)
        if await self._database.write_guarded(work):
            raise FenceStale(
                f"The run {key.wire_id} is not held under the fence {key.fence} any more. Nothing was changed: drop "
                "the work.",
                data={"run_id": key.wire_id, "fence": key.fence},
            )


def _key(row: Row) -> PushKey:
    return PushKey(row["run_id"], row["node"], row["fence"])


def _is_open(row: Row, speaker: Speaker, key: PushKey) -> bool:
    return (
        row["fence"] == key.fence
        and row["instance_id"] == speaker.instance_id
        and row["status"] in (PushStatus.PUSHED, PushStatus.ACKNOWLEDGED)
    )


def _not_there(key: PushKey) -> Missing:
    return Missing(
        f"No run {key.wire_id[:200]} was pushed to this instance under the fence {key.fence}. Nothing was changed.",
        code="not_pushed",
        data={"run_id": key.wire_id[:200], "fence": key.fence},
    )


def _end(key: PushKey, frame: dict[str, Any]) -> PushEnd:
    usage = None if frame.get("usage") is None else Usage(**frame["usage"])
    output = frame.get("output")
    if frame["status"] == "succeeded":
        return PushEnd(key, PushStatus.SUCCEEDED, output or "", usage)
    told = frame.get("error") or output or f"The instance said: {frame['status']}."
    return PushEnd(
        key,
        PushStatus.FAILED,
        usage=usage,
        error_code=Failing.REPORTED.value,
        error=told[:REASON_CHARACTERS],
        retryable=bool(frame.get("retryable")),
    )
