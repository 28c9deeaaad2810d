"""Processes and their heartbeats (RUN-4, RUN-5a). One method per query of ``sql/processes.sql``."""

from gnomon.stores.database import Row, Tx


async def start(  # noqa: PLR0917 - a row has as many columns as it has
    tx: Tx, process_id: str, host: str, pid: int, version: str, zone_data: str
) -> None:
    """Write the row of a process that has just started, under an id of its own."""
    await tx.run("processes.start", id=process_id, host=host, pid=pid, version=version, zone_data=zone_data)


async def zone_data(tx: Tx) -> str | None:
    """The zone data of the process that started last; ``None`` where there has been none."""
    row = await tx.one("processes.zone_data")
    return None if row is None else row["zone_data"]


async def beat(tx: Tx, process_id: str, ticked_at: int | None, lag_us: int | None) -> bool:
    """The process lives; whether its row is there and not marked as stopped."""
    row = await tx.one("processes.beat", id=process_id, ticked_at=ticked_at, lag_us=lag_us)
    return row is not None


async def stop(tx: Tx, process_id: str) -> None:
    """The process ended in order."""
    await tx.run("processes.stop", id=process_id)


async def holds(tx: Tx, process_id: str) -> list[Row]:
    """The runs that the database says a process holds, with what a sweep must know of each (``runs.expired``)."""
    return await tx.all("processes.holds", id=process_id)


async def clean(tx: Tx, older_us: int) -> None:
    """Forget processes that have been silent for long and hold nothing."""
    await tx.run("processes.clean", older_us=older_us)


async def now(tx: Tx) -> int:
    """The database's clock, in microseconds."""
    row = await tx.one("processes.now")
    assert row is not None
    value: int = row["now"]
    return value
