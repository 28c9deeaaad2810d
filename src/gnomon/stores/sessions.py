"""Sessions: read, and erased with every trace of what was said in them (RUN-12). One method per query."""

from gnomon.domain.instants import from_micros, maybe_instant
from gnomon.domain.session import Session, Turn
from gnomon.stores.database import Tx


async def find(tx: Tx, session_id: str) -> Session | None:
    """The session of this id."""
    row = await tx.one("sessions.find", id=session_id)
    if row is None:
        return None
    return Session(
        session_id, from_micros(row["created_at"]), row["turn_count"], maybe_instant(row["last_at"])
    )


async def turns(tx: Tx, session_id: str, after: str, limit: int) -> list[Turn]:
    """Turns in order, after the one of a run."""
    rows = await tx.all("sessions.turns", id=session_id, after=after, limit=limit)
    return [
        Turn(row["run_id"], row["query"], row["output"], row["created_at"], row["answered_at"])
        for row in rows
    ]


async def unfinished(tx: Tx, session_id: str) -> str | None:
    """A run of the session that is not over yet."""
    row = await tx.one("sessions.unfinished", id=session_id)
    return None if row is None else row["id"]


async def erase(tx: Tx, session_id: str) -> bool:
    """Erase a session: what its runs keep of what was said, and the links to it; whether it was there.

    The slots stay in the ledger with the stamp of the erasure; the runs stay with their figures.
    """
    await tx.run("sessions.erase_links", id=session_id)
    await tx.run("sessions.erase_events", id=session_id)
    await tx.run("sessions.erase_checkpoints", id=session_id)
    await tx.run("sessions.erase_attempts", id=session_id)
    await tx.run("sessions.erase_last_errors", id=session_id)
    runs = await tx.run("sessions.erase_runs", id=session_id)
    row = await tx.one("sessions.erase", id=session_id)
    return runs > 0 or row is not None
