"""Next slots computed anew after the wall clock was set back (DSP-9, casebook mis-08).

A clock that was ahead for a while leaves schedules with a next slot that lies too far away; each is brought back to the
first slot after the true present. What the ledger holds already stays: a slot recorded under the false clock does not
fire again.
"""

from gnomon.cadence import Cadence
from gnomon.domain.audit import Action
from gnomon.stores import audit, slots
from gnomon.stores.audit import NewEntry
from gnomon.stores.database import Database, Row, Tx

BATCH = 500
ACTOR = "watchdog"


class Realignment:
    """Walks the active schedules in batches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> int:
        """Bring back every schedule whose next slot is not the first one after now; how many there were."""
        moved, after = 0, -(2**62)
        while True:
            rows, changed = await self._database.write(lambda tx, after=after: _batch(tx, after))  # type: ignore[misc]
            moved += changed
            if len(rows) < BATCH:
                return moved
            after = rows[-1]["next_fire_at"]


async def _batch(tx: Tx, after: int) -> tuple[list[Row], int]:
    rows = await slots.far_ahead(tx, after, BATCH)
    calendars = {row["calendar"] for row in rows if row["calendar"] is not None}
    holidays = await slots.holidays(tx, calendars) if calendars else {}
    changes = []
    for row in rows:
        walk = Cadence.from_stored(row["cadence"]).compile(
            row["anchor_at"], holidays.get(row["calendar"], frozenset())
        )
        start = row["now"] if row["starts_at"] is None else max(row["now"], row["starts_at"] - 1)
        first = walk.next_after(start)
        if first is not None and row["now"] < first < row["next_fire_at"]:
            changes.append({"id": row["id"], "claimed_at": row["next_fire_at"], "next_fire_at": first})
    if changes:
        await slots.realign(tx, changes)
        await audit.append_many(
            tx,
            [
                NewEntry(
                    ACTOR,
                    Action.REALIGN,
                    "schedule",
                    str(change["id"]),
                    None,
                    {"from": change["claimed_at"], "to": change["next_fire_at"]},
                )
                for change in changes
            ],
        )
    return rows, len(changes)
