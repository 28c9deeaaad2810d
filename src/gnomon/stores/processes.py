"""Processes and their heartbeats (RUN-4, RUN-5a). One method per query of ``sql/processes.sql``."""

from dataclasses import dataclass

from gnomon.stores.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Moment:
    """One boot of a machine and the time since then, in microseconds: what no clock that is set can change."""

    boot: str | None = None
    boot_us: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The database's clock beside a machine's clock since its boot, as a heartbeat saw them: both in microseconds."""

    database_us: int
    boot_us: int


async def start(  # noqa: PLR0917 - a row has as many columns as it has
    tx: Tx, process_id: str, host: str, pid: int, version: str, zone_data: str, moment: Moment | None = None
) -> None:
    """Write the row of a process that has just started, under an id of its own."""
    at = moment or Moment()
    await tx.run(
        "processes.start",
        id=process_id,
        host=host,
        pid=pid,
        version=version,
        zone_data=zone_data,
        boot=at.boot,
        boot_us=at.boot_us,
    )


async def zone_data(tx: Tx) -> str | None:
    """The zone data of the process that started last; ``None`` where there has been none."""
    row = await tx.one("processes.zone_data")
    return None if row is None else row["zone_data"]


async def beat(
    tx: Tx, process_id: str, ticked_at: int | None, lag_us: int | None, boot_us: int | None = None
) -> int | None:
    """The process lives; the database's clock, or ``None`` where its row is gone or marked as stopped."""
    row = await tx.one("processes.beat", id=process_id, ticked_at=ticked_at, lag_us=lag_us, boot_us=boot_us)
    return None if row is None else row["heartbeat_at"]


async def readings(tx: Tx, boot: str | None, limit: int = 200) -> tuple[int, list[Reading]]:
    """The database's clock, and the last reading of each process of this boot, the newest first (RUN-5b)."""
    present, *others = await tx.all("processes.readings", boot=boot, limit=limit)
    return present["heartbeat_at"], [Reading(row["heartbeat_at"], row["boot_us"]) for row in others]


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
