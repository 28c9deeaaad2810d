"""Instances and their connections (JOB-5, BRD-4). One method per query of ``sql/instances.sql``.

Whatever a connection writes is guarded by the server that holds it and by its epoch, so that an old one changes nothing
under the new.
"""

import json
from collections.abc import Iterable, Mapping

from gnomon.domain.instance import Instance, InstanceStatus
from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.stores.database import Row, Tx, Value


async def seen(tx: Tx, id_if_new: str, role: str, name: str) -> Row:
    """A sign of life of an instance that came by a request: its row, made if this is the first (BRD-4).

    It is online from now on, unless it is draining.
    """
    row = await tx.one("instances.seen", id=id_if_new, role=role, name=name)
    assert row is not None
    return row


async def connect(
    tx: Tx, id_if_new: str, role: str, name: str, *, server: str, version: str | None, max_in_flight: int
) -> Row:
    """A new connection of an instance, held by ``server`` under the next epoch: its row (JOB-5)."""
    row = await tx.one(
        "instances.connect",
        id=id_if_new,
        role=role,
        name=name,
        server=server,
        version=version,
        max_in_flight=max_in_flight,
    )
    assert row is not None
    return row


async def beat(tx: Tx, server: str, held: Iterable[tuple[str, int]]) -> set[str]:
    """Connections (instance, epoch) that ``server`` holds have been heard of; the instances that still are its own."""
    rows: list[Mapping[str, Value]] = [
        {"id": instance_id, "epoch": epoch, "server": server} for instance_id, epoch in held
    ]
    return {row[0] for row in await tx.many("instances.beat", rows)}


async def get(tx: Tx, instance_id: str) -> Instance | None:
    """The instance of this id."""
    row = await tx.one("instances.find", id=instance_id)
    return None if row is None else _instance(row)


async def named(tx: Tx, role: str, name: str) -> Instance | None:
    """The instance of this role and name."""
    row = await tx.one("instances.find_named", role=role, name=name)
    return None if row is None else _instance(row)


async def page(
    tx: Tx, after: str, limit: int, *, role: str | None = None, status: InstanceStatus | None = None
) -> list[Instance]:
    """Instances in the order of their first coming, after an id."""
    rows = await tx.all("instances.page", after=after, limit=limit, role=role, status=status)
    return [_instance(row) for row in rows]


async def drain(tx: Tx, instance_id: str) -> bool:
    """A person wants it to get nothing new until it was offline; whether it is there to be drained."""
    return await tx.one("instances.drain", id=instance_id) is not None


async def drain_itself(tx: Tx, instance_id: str, epoch: int) -> bool:
    """The instance wants nothing new over this connection; whether that changed anything."""
    return await tx.one("instances.drain_itself", id=instance_id, epoch=epoch) is not None


async def gone(tx: Tx, server: str, instance_id: str, epoch: int, *, goodbye: bool) -> bool:
    """A connection is over; ``False`` where it was not the present one, and nothing changed (JOB-5).

    After a ``goodbye`` the instance is offline. Else it may come back until its heartbeat is overdue.
    """
    row = await tx.one("instances.gone", server=server, id=instance_id, epoch=epoch, goodbye=int(goodbye))
    return row is not None


async def overdue(tx: Tx, timeout_us: int, calm_us: int | None, limit: int) -> list[Row]:
    """Instances (id, role, name, epoch, server) that were last heard of ``timeout_us`` ago or longer (BRD-4).

    ``calm_us`` is how long ago the clock last jumped, ``None`` where it never did (RUN-5b).
    """
    return await tx.all("instances.overdue", timeout_us=timeout_us, calm_us=calm_us, limit=limit)


async def mark_offline(tx: Tx, instance_id: str, timeout_us: int) -> int | None:
    """Mark an instance offline that is still overdue; its epoch, or ``None`` where it was heard of meanwhile (BRD-4)."""
    row = await tx.one("instances.mark_offline", id=instance_id, timeout_us=timeout_us)
    return None if row is None else row["epoch"]


async def stranded(tx: Tx, timeout_us: int, calm_us: int | None, limit: int) -> list[Row]:
    """Instances (id, epoch, server) whose connection is held, as far as is written, by a process that is gone."""
    return await tx.all("instances.stranded", timeout_us=timeout_us, calm_us=calm_us, limit=limit)


async def clean(tx: Tx, older_us: int, limit: int) -> int:
    """Forget instances that have been offline that long and hold nothing; how many went."""
    return len(await tx.all("instances.clean", older_us=older_us, limit=limit))


async def roomy(tx: Tx, roles: Iterable[str]) -> set[str]:
    """Those of the roles of which somebody connected has room."""
    rows = await tx.tuples("instances.roomy", roles=json.dumps(list(roles)))
    return {row[0] for row in rows}


async def kept(tx: Tx, server: str) -> set[tuple[str, int]]:
    """The connections (instance, epoch) that ``server`` holds, as far as the database knows."""
    return {(row[0], row[1]) for row in await tx.tuples("instances.kept", server=server)}


async def take_place(tx: Tx, role: str, *, but: str = "") -> tuple[str, int] | None:
    """Take a place at the least recently used connected instance of a role that has room (JOB-2): its id and epoch.

    Guarded by itself (``Database.write_guarded``); what fills the place has to be written in the same transaction. The
    instance ``but`` is left out. Of instances that others are placing something at this moment another one is taken, or
    none.
    """
    candidate = await tx.one("instances.candidate", role=role, but=but)
    row = None if candidate is None else await tx.one("instances.place", id=candidate["id"])
    return None if row is None else (row["id"], row["epoch"])


async def place(tx: Tx, role: str, *, but: str = "") -> str | None:
    """As ``take_place``: the instance alone."""
    taken = await take_place(tx, role, but=but)
    return None if taken is None else taken[0]


def _instance(row: Row) -> Instance:
    return Instance(
        id=row["id"],
        role=row["role"],
        name=row["name"],
        status=InstanceStatus(row["status"]),
        epoch=row["epoch"],
        server=row["server"],
        version=row["version"],
        max_in_flight=row["max_in_flight"],
        in_flight=row["in_flight"],
        connected_at=maybe_instant(row["connected_at"]),
        last_heartbeat_at=from_micros(row["last_heartbeat_at"]),
        drain_asked_at=maybe_instant(row["drain_asked_at"]),
        created_at=from_micros(row["created_at"]),
    )
