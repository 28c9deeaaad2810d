"""Triggers: recorded once for each slot, given, pushed, acknowledged, ended. One method per query of ``sql/triggers.sql``.

A write about a trigger that an instance has names the instance and the epoch of its connection, and says whether it
landed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gnomon.domain.instants import SECOND, from_micros, maybe_instant
from gnomon.domain.occurrence import Coalesced
from gnomon.domain.trigger import REPEAT_SECONDS, Trigger, TriggerReason, TriggerStatus
from gnomon.stores.database import Row, Tx, Value

Parameters = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Held:
    """A trigger that an instance has, as it was read: ``epoch`` is 0 where it was not pushed yet."""

    id: str
    job_id: str
    nominal_fire_at: int
    status: TriggerStatus
    instance_id: str
    epoch: int
    pushes: int


async def record(tx: Tx, triggers: Iterable[Parameters]) -> set[str]:
    """Write new triggers; those whose slot had none before (JOB-3)."""
    return {row[0] for row in await tx.many("triggers.record", triggers)}


async def waiting(tx: Tx, after: int, after_id: str, limit: int) -> list[Row]:
    """Triggers that wait for an instance, after this end of a wait and this id, each with its job's role and state."""
    return await tx.all("triggers.waiting", after=after, after_id=after_id, limit=limit)


async def givable(tx: Tx) -> bool:
    """Whether anything can be done for a trigger that waits: there is an instance with room, or its job is off."""
    return await tx.one("triggers.givable") is not None


async def connected(tx: Tx, role: str) -> bool:
    """Whether any instance of a role is there, with room or without."""
    return await tx.one("triggers.connected", role=role) is not None


async def next_over(tx: Tx) -> int | None:
    """Microseconds until the first wait is over; ``None`` where nothing waits."""
    row = await tx.one("triggers.next_over")
    return None if row is None else row["wait_us"]


async def give(tx: Tx, trigger_id: str, instance_id: str) -> bool:
    """A trigger that waits gets an instance; whether it still waited."""
    row = await tx.one(
        "triggers.give", id=trigger_id, instance_id=instance_id, repeat_us=REPEAT_SECONDS * SECOND
    )
    return row is not None


async def miss(tx: Tx, trigger_id: str, reason: TriggerReason) -> bool:
    """A trigger that waits is missed; whether it still waited."""
    return await tx.one("triggers.miss", id=trigger_id, reason=reason) is not None


async def to_push(tx: Tx, server: str, limit: int) -> list[Row]:
    """What is to be sent over connections that ``server`` holds, each with the epoch and its job's slug."""
    return await tx.all("triggers.to_push", server=server, limit=limit)


async def push(tx: Tx, pushes: Iterable[Parameters]) -> set[str]:
    """These are sent over these connections now; without those that are not to be, any more."""
    return {row[0] for row in await tx.many("triggers.push", pushes)}


async def acknowledge(tx: Tx, trigger_id: str, instance_id: str, epoch: int) -> bool:
    """The instance has it; ``False`` where it is not this one's, over its present connection, to acknowledge."""
    row = await tx.one("triggers.acknowledge", id=trigger_id, instance_id=instance_id, epoch=epoch)
    return row is not None


async def finish(  # noqa: PLR0917 - who says how it ended
    tx: Tx,
    trigger_id: str,
    instance_id: str,
    epoch: int,
    status: TriggerStatus,
    reason: TriggerReason | None,
    note: str | None,
) -> bool:
    """The instance has ended it; ``False`` where it is not this one's, over its present connection, to end."""
    row = await tx.one(
        "triggers.finish",
        id=trigger_id,
        instance_id=instance_id,
        epoch=epoch,
        status=status,
        reason=reason,
        note=note,
    )
    return row is not None


async def take_back(tx: Tx, held: Held, *, unsent: bool = False) -> bool:
    """It waits for another instance again, under its own id; whether it still was as it was read (JOB-4).

    What was marked as pushed, and is ``unsent``, was not pushed.
    """
    row = await tx.one(
        "triggers.take_back",
        id=held.id,
        status=held.status,
        instance_id=held.instance_id,
        epoch=held.epoch,
        unsent=int(unsent),
    )
    return row is not None


async def lose(tx: Tx, held: Held, reason: TriggerReason) -> bool:
    """It failed with its instance; whether it still was as it was read."""
    row = await tx.one(
        "triggers.lose",
        id=held.id,
        status=held.status,
        instance_id=held.instance_id,
        epoch=held.epoch,
        reason=reason,
    )
    return row is not None


async def held(tx: Tx, instance_id: str) -> list[Held]:
    """What an instance has that is not over."""
    return [_held(row) for row in await tx.all("triggers.held", instance_id=instance_id)]


async def keep(tx: Tx, trigger_id: str, instance_id: str, epoch: int, lost_us: int | None = None) -> bool:
    """It stays with its instance, which has come back over this connection; whether it has it (JOB-5).

    ``lost_us`` is when it has failed unless it was ended; ``None``: the instance has said that it still has it.
    """
    row = await tx.one("triggers.keep", id=trigger_id, instance_id=instance_id, epoch=epoch, lost_us=lost_us)
    return row is not None


async def gone(tx: Tx, held: Held, lost_us: int) -> bool:
    """The instance that has acknowledged it is gone, and may come back for so long; whether that is news."""
    row = await tx.one(
        "triggers.gone", id=held.id, instance_id=held.instance_id, epoch=held.epoch, lost_us=lost_us
    )
    return row is not None


async def adrift(tx: Tx, hello_us: int, lost_us: int, limit: int) -> list[Held]:
    """Triggers of instances that are not connected any more, or under a connection that a newer one has replaced.

    The newer one is given ``hello_us`` to say what its instance still has; those of which ``gone`` was told with
    ``lost_us`` are left out.
    """
    rows = await tx.all("triggers.adrift", hello_us=hello_us, lost_us=lost_us, limit=limit)
    return [_held(row) for row in rows]


async def unacknowledged(tx: Tx, server: str, limit: int) -> list[tuple[Held, int]]:
    """What was pushed over connections that ``server`` holds, each with how many microseconds ago."""
    rows = await tx.all("triggers.unacknowledged", server=server, limit=limit)
    return [(_held(row), row["age_us"]) for row in rows]


async def forlorn(tx: Tx, lost_us: int, calm_us: int | None, limit: int) -> list[Held]:
    """Triggers that were acknowledged, and whose instance has been gone for longer than it was allowed.

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did: not before ``lost_us`` (RUN-5b).
    """
    rows = await tx.all("triggers.forlorn", lost_us=lost_us, calm_us=calm_us, limit=limit)
    return [_held(row) for row in rows]


async def get(tx: Tx, trigger_id: str) -> Trigger | None:
    """The trigger of this id."""
    row = await tx.one("triggers.get", id=trigger_id)
    return None if row is None else _trigger(row)


async def page(
    tx: Tx, job_id: str, before: int, limit: int, status: TriggerStatus | None = None
) -> list[Trigger]:
    """Triggers of one job whose slots lie before an instant, the newest first."""
    rows = await tx.all("triggers.page", job_id=job_id, before=before, limit=limit, status=status)
    return [_trigger(row) for row in rows]


def _held(row: Row) -> Held:
    return Held(
        id=row["id"],
        job_id=row["job_id"],
        nominal_fire_at=row["nominal_fire_at"],
        status=TriggerStatus(row["status"]),
        instance_id=row["instance_id"],
        epoch=row["epoch"],
        pushes=row["pushes"],
    )


def _trigger(row: Row) -> Trigger:
    older = None
    if row["coalesced_count"] is not None:
        first, last = from_micros(row["coalesced_first"]), from_micros(row["coalesced_last"])
        older = Coalesced(first, last, row["coalesced_count"])
    return Trigger(
        id=row["id"],
        job_id=row["job_id"],
        nominal_fire_at=from_micros(row["nominal_fire_at"]),
        dedup_key=row["dedup_key"],
        instance_id=row["instance_id"],
        status=TriggerStatus(row["status"]),
        reason=None if row["reason"] is None else TriggerReason(row["reason"]),
        note=row["note"],
        coalesced=older,
        pushes=row["pushes"],
        pushed_at=maybe_instant(row["pushed_at"]),
        acknowledged_at=maybe_instant(row["acknowledged_at"]),
        finished_at=maybe_instant(row["finished_at"]),
        created_at=from_micros(row["created_at"]),
    )
