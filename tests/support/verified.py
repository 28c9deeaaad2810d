"""What ``gnomon verify`` says of the file that a simulation left behind (OPS-7)."""

import asyncio
from pathlib import Path

from gnomon.domain.breach import Breach
from gnomon.domain.instants import from_micros
from gnomon.services.verify import Verify
from gnomon.stores.sqlite.database import SqliteDatabase
from gnomon.testing.clock import FrozenClock
from support.history import History


def verified(folder: Path, seed: int, history: History) -> list[Breach]:
    """What verify says of the file that a simulation left behind, at the instant at which it ended."""

    async def judge() -> list[Breach]:
        database = SqliteDatabase(folder / f"sim-{seed}.db", FrozenClock(from_micros(history.ended_wall)))
        found: list[Breach] = []
        await Verify(database, gapless=True).run(found.append)
        await database.close()
        return found

    return asyncio.run(judge())
