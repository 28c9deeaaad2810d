"""What a doctor looks at, in pages. One method per query of ``sql/doctor.sql``; it writes nothing and judges nothing."""

from collections.abc import AsyncIterator

from gnomon.stores.database import Row, Tx, Value

PAGE = 500


def schedules(tx: Tx) -> AsyncIterator[list[Row]]:
    """Schedules that fire, or would if somebody let them, a page at a time."""
    return _pages(tx, "doctor.schedules")


def jobs(tx: Tx) -> AsyncIterator[list[Row]]:
    """Jobs that are enabled, and those that were set aside, a page at a time."""
    return _pages(tx, "doctor.jobs")


async def processes(tx: Tx) -> AsyncIterator[Row]:
    """Processes that nobody has stopped, each with the present instant."""
    async for rows in _pages(tx, "doctor.processes"):
        for row in rows:
            yield row


async def keys_ending(tx: Tx, within_us: int) -> AsyncIterator[Row]:
    """API keys that will open nothing any more within so many microseconds."""
    async for rows in _pages(tx, "doctor.keys_ending", within_us=within_us):
        for row in rows:
            yield row


async def settings(tx: Tx) -> dict[str, str]:
    """Settings of the engine, as they are in force for this connection, by name."""
    return {row["name"]: row["setting"] for row in await tx.all("doctor.settings")}


async def _pages(tx: Tx, name: str, **fixed: Value) -> AsyncIterator[list[Row]]:
    after = ""
    while True:
        rows = await tx.all(name, after=after, limit=PAGE, **fixed)
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after = rows[-1]["id"]
