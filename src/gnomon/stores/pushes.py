"""Attempts of runs that are pushed to instances (TGT-1). One method per query of ``sql/pushes.sql``.

Each write names run, node and fence, and one by an instance the instance too; what it returns says whether it landed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from gnomon.domain.invocation import Usage
from gnomon.domain.push import PushEnd, PushKey, PushStatus, Withdrawal
from gnomon.stores.database import Row, Tx, Value

Rows = list[Mapping[str, Value]]


async def open_push(tx: Tx, key: PushKey, role: str, frame: str) -> None:
    """Write a push that waits for an instance; one of an earlier fence is withdrawn, the same one stays as it is."""
    await tx.run("pushes.supersede", run_id=key.run_id, node=key.node, fence=key.fence)
    await tx.run("pushes.open", run_id=key.run_id, node=key.node, fence=key.fence, role=role, frame=frame)


async def give(tx: Tx, key: PushKey, instance_id: str, epoch: int) -> bool:
    """Give a waiting push to the instance that was chosen for it; ``False`` where it doesn't wait any more."""
    row = await tx.one("pushes.give", **_named(key), instance_id=instance_id, epoch=epoch)
    return row is not None


async def standing(tx: Tx, run_ids: Iterable[str]) -> list[tuple[str, PushEnd]]:
    """Every push of these runs as it stands, the oldest first, each with its role."""
    rows = await tx.all("pushes.standing", ids=json.dumps(list(run_ids)))
    return [(row["role"], _end(row)) for row in rows]


async def to_push(tx: Tx, server: str, limit: int) -> list[Row]:
    """What is to be sent over connections that ``server`` holds, the oldest first."""
    return await tx.all("pushes.to_push", server=server, limit=limit)


async def push(tx: Tx, rows: Sequence[Row]) -> set[PushKey]:
    """Note that pushes (rows of ``to_push``) are being sent; those that still are to be."""
    given: Rows = [
        {"run_id": row["run_id"], "node": row["node"], "fence": row["fence"], "epoch": row["epoch"]}
        for row in rows
    ]
    return {PushKey(*row) for row in await tx.many("pushes.push", given)}


async def unacknowledged(tx: Tx, server: str, patience_us: int) -> list[tuple[str, int]]:
    """Connections (instance, epoch) of ``server`` over which something was pushed that long ago, and not acknowledged."""
    rows = await tx.tuples("pushes.unacknowledged", server=server, patience_us=patience_us)
    return [(row[0], row[1]) for row in rows]


async def acknowledge(tx: Tx, key: PushKey, instance_id: str) -> bool:
    """The instance works on it; ``False`` where it has no such push."""
    return await tx.one("pushes.acknowledge", **_named(key), instance_id=instance_id) is not None


async def answer(tx: Tx, end: PushEnd, instance_id: str) -> bool:
    """The instance says how it ended; ``False`` where it has no such push that is open (RUN-6)."""
    row = await tx.one(
        "pushes.answer",
        **_named(end.key),
        instance_id=instance_id,
        status=end.status,
        output=end.output,
        usage=None if end.usage is None else json.dumps(asdict(end.usage)),
        error_code=end.error_code,
        error=end.error,
        retryable=int(end.retryable),
    )
    return row is not None


async def like(tx: Tx, key: PushKey) -> list[Row]:
    """Every attempt (fence, status, instance_id, withdrawal) of the same run or node, by its fence."""
    return await tx.all("pushes.like", run_id=key.run_id, node=key.node)


async def usage(tx: Tx, key: PushKey, instance_id: str, spent: Usage) -> bool:
    """What an attempt has spent so far; ``False`` where the instance has no such push that is open."""
    row = await tx.one(
        "pushes.usage", **_named(key), instance_id=instance_id, usage=json.dumps(asdict(spent))
    )
    return row is not None


async def withdraw(tx: Tx, key: PushKey, withdrawal: Withdrawal) -> bool:
    """Nobody wants its result any more; whoever works on it will be told. Whether it was open."""
    return await tx.one("pushes.withdraw", **_named(key), withdrawal=withdrawal) is not None


async def untold(tx: Tx, server: str, limit: int) -> list[Row]:
    """Withdrawn pushes whose instance, connected to ``server``, is still to be told."""
    return await tx.all("pushes.untold", server=server, limit=limit)


async def tell(tx: Tx, keys: Iterable[PushKey]) -> None:
    """Note that the instances were told."""
    rows: Rows = [_named(key) for key in keys]
    await tx.many("pushes.tell", rows)


async def release(tx: Tx, instance_id: str, epoch: int) -> int:
    """A connection is over: what was not acknowledged over it waits for an instance again (JOB-4). How many did."""
    return len(await tx.all("pushes.release", instance_id=instance_id, epoch=epoch))


async def lose(tx: Tx, instance_id: str, epoch: int, error: str) -> int:
    """An instance is gone with what it had acknowledged: those attempts have failed. How many did."""
    return len(await tx.all("pushes.lose", instance_id=instance_id, epoch=epoch, error=error))


async def forsaken(tx: Tx, timeout_us: int, limit: int) -> list[tuple[str, int]]:
    """Who (instance, epoch) is offline, has been silent for ``timeout_us``, and has acknowledged what is still open."""
    rows = await tx.tuples("pushes.forsaken", timeout_us=timeout_us, limit=limit)
    return [(row[0], row[1]) for row in rows]


async def held(tx: Tx, instance_id: str, before_epoch: int) -> list[tuple[PushKey, PushStatus]]:
    """What is open at an instance from connections before an epoch."""
    rows = await tx.all("pushes.held", instance_id=instance_id, epoch=before_epoch)
    return [(PushKey(row["run_id"], row["node"], row["fence"]), PushStatus(row["status"])) for row in rows]


async def adopt(tx: Tx, keys: Iterable[PushKey], instance_id: str, epoch: int) -> None:
    """The instance still works on these: they go on under its new connection (JOB-5)."""
    rows: Rows = [{**_named(key), "instance_id": instance_id, "epoch": epoch} for key in keys]
    await tx.many("pushes.adopt", rows)


async def to_sweep(tx: Tx, older_us: int) -> bool:
    """Whether a sweep may find anything to do: what is open, still holds an answer, or ended that long ago."""
    return await tx.one("pushes.to_sweep", older_us=older_us) is not None


async def blank(tx: Tx) -> int:
    """Take the answers out of pushes whose run has ended: they are where they belong by now (RUN-12). How many had one."""
    return len(await tx.all("pushes.blank"))


async def abandon(tx: Tx) -> int:
    """Withdraw what nobody waits for, since its run is over or went to another holder. How many there were."""
    return len(await tx.all("pushes.abandon"))


async def clean(tx: Tx, older_us: int, limit: int) -> int:
    """Forget what ended that long ago; how many went."""
    return len(await tx.all("pushes.clean", older_us=older_us, limit=limit))


def _named(key: PushKey) -> dict[str, Value]:
    return {"run_id": key.run_id, "node": key.node, "fence": key.fence}


def _end(row: Row) -> PushEnd:
    return PushEnd(
        PushKey(row["run_id"], row["node"], row["fence"]),
        PushStatus(row["status"]),
        row["output"],
        None if row["usage"] is None else Usage(**json.loads(row["usage"])),
        row["error_code"],
        row["error"],
        bool(row["retryable"]),
    )
