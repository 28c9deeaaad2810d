"""The numbers of the overview, and usage summed (UI-1). One method per query of ``sql/overview.sql``; it writes nothing.

Instants and durations are microseconds.
"""

from gnomon.domain.usage import Grouping
from gnomon.stores.database import Row, Tx


async def schedules(tx: Tx) -> dict[str, int]:
    """How many schedules there are in each status."""
    return {row["status"]: row["how_many"] for row in await tx.all("overview.schedules")}


async def jobs(tx: Tx) -> Row:
    """How many jobs there are, are enabled, were set aside."""
    return await _the_row(tx, "overview.jobs")


async def instances(tx: Tx) -> list[Row]:
    """How many instances each role has in each status."""
    return await tx.all("overview.instances")


async def processes(tx: Tx, timeout_us: int) -> int:
    """How many processes have been heard of within so long."""
    return int((await _the_row(tx, "overview.processes", timeout_us=timeout_us))["how_many"])


async def queue(tx: Tx, late_us: int) -> Row:
    """Runs that are queued, wait or run; and what is late by more than ``late_us``."""
    return await _the_row(tx, "overview.queue", late_us=late_us)


async def runs_ended(tx: Tx, from_id: str, week: int, today: int, most: int) -> list[Row]:
    """By status, runs that ended since two instants, among the newest ``most`` from an id on."""
    return await tx.all("overview.runs_ended", from_id=from_id, week=week, today=today, most=most)


async def triggers_ended(tx: Tx, from_id: str, week: int, today: int, most: int) -> list[Row]:
    """As ``runs_ended``, of triggers."""
    return await tx.all("overview.triggers_ended", from_id=from_id, week=week, today=today, most=most)


async def expired(tx: Tx, today: int) -> dict[str, int]:
    """How many leases and locks ended by time since an instant, by what they were on."""
    return {row["subject_kind"]: row["how_many"] for row in await tx.all("overview.expired", today=today)}


async def tasks_done(tx: Tx, week: int) -> int:
    """How many tasks were done since an instant."""
    return int((await _the_row(tx, "overview.tasks_done", week=week))["how_many"])


async def tasks_open(tx: Tx) -> list[Row]:
    """How many tasks each role has in each state that is not the end."""
    return await tx.all("overview.tasks_open")


async def usage(  # noqa: PLR0917 - a window, a page, and how both are told apart
    tx: Tx, grouping: Grouping, since: int, until: int, skip: int, limit: int
) -> list[Row]:
    """Usage of runs that ended in [since, until), summed over what ``grouping`` doesn't name."""
    return await tx.all(
        "overview.usage",
        by_day=int(grouping.day),
        by_target=int(grouping.target),
        by_principal=int(grouping.principal),
        since=since,
        until=until,
        skip=skip,
        limit=limit,
    )


async def _the_row(tx: Tx, name: str, **given: int) -> Row:
    row = await tx.one(name, **given)
    assert row is not None  # a count always is one
    return row
