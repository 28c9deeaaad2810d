"""Next slots computed anew, for all schedules and jobs: the wall clock was set back, or the zone data changed (OPS-5a).

A clock that was ahead for a while leaves schedules with a next slot that lies too far away; each is brought back to the
first slot after the true present (DSP-9, casebook mis-08). Zone data of another version leaves some with an instant that
is no slot any more; each is brought to the instant that its wall time has now. What the ledger holds already stays: a
slot recorded under a false clock or under older data does not fire again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import structlog

from gnomon.cadence import Cadence, Compiled
from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND
from gnomon.stores import audit, jobs, processes, slots
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database, Row, Tx, Value

BATCH = 500
ACTOR = "watchdog"
# Changes of zone data move a wall time by an hour or two; a slot that lies further off is another day's.
MOST_MOVED_US = 12 * 3_600 * SECOND
_log = structlog.get_logger()

Pick = Callable[[Row, Compiled], int | None]


class _Store(Protocol):
    """What the stores of schedules and jobs have in common."""

    async def far_ahead(self, tx: Tx, after: int, after_id: str, limit: int, /) -> list[Row]: ...

    async def realign(self, tx: Tx, rows: Iterable[Mapping[str, Value]], /) -> None: ...


_NOUNS: tuple[tuple[str, _Store], ...] = (("schedule", slots), ("job", jobs))


class Realignment:
    """Walks the active schedules, and the jobs that are enabled, in batches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> int:
        """Bring back everything whose next slot is not the first one after now; how many there were."""
        return await self._each(_first_ahead, None)

    async def meet_zone_data(self, version: str) -> int:
        """If the process that started last had other zone data, bring next slots to theirs; how many were moved.

        Called before a process tells which data it has, so that one that dies in the middle leaves it to the next.
        """
        before = await self._database.read(processes.zone_data)
        if before is None or before == version:
            return 0
        moved = await self._each(_same_wall_time, f"zone data {version} after {before}")
        _log.warning("zone_data_changed", before=before, now=version, moved=moved)
        return moved

    async def _each(self, pick: Pick, why: str | None) -> int:
        return sum([await self._each_of(noun, store, pick, why) for noun, store in _NOUNS])

    async def _each_of(self, noun: str, store: _Store, pick: Pick, why: str | None) -> int:
        moved, after, after_id = 0, -(2**62), ""
        while True:

            async def batch(tx: Tx, after: int = after, after_id: str = after_id) -> tuple[list[Row], int]:
                return await _batch(tx, noun, store, pick, why, after, after_id)

            rows, changed = await self._database.write(batch)
            moved += changed
            if len(rows) < BATCH:
                return moved
            after, after_id = rows[-1]["next_fire_at"], rows[-1]["id"]


async def _batch(  # noqa: PLR0917 - where a walk stands, and what it does
    tx: Tx, noun: str, store: _Store, pick: Pick, why: str | None, after: int, after_id: str
) -> tuple[list[Row], int]:
    rows = await store.far_ahead(tx, after, after_id, BATCH)
    calendars = {row["calendar"] for row in rows if row["calendar"] is not None}
    holidays = await slots.holidays(tx, calendars) if calendars else {}
    changes = []
    for row in rows:
        try:
            cadence = Cadence.from_stored(row["cadence"])
            found = pick(row, cadence.compile(row["anchor_at"], holidays.get(row["calendar"], frozenset())))
        except (
            Exception
        ) as error:  # the dispatcher sets it aside when it comes due; it stops no other (DSP-9a)
            _log.warning("not_realigned", id=row["id"], error=str(error))
            continue
        if found is not None:
            changes.append({"id": row["id"], "claimed_at": row["next_fire_at"], "next_fire_at": found})
    if changes:
        await store.realign(tx, changes)
        reason: dict[str, object] = {} if why is None else {"reason": why}
        entries = [
            new_entry(
                ACTOR,
                Action.REALIGN,
                noun,
                str(change["id"]),
                None,
                {"from": change["claimed_at"], "to": change["next_fire_at"], **reason},
            )
            for change in changes
        ]
        await audit.append_many(tx, entries)
    return rows, len(changes)


def _first_ahead(row: Row, walk: Compiled) -> int | None:
    """The first slot after now, where it comes before the stored one."""
    start = row["now"] if row["starts_at"] is None else max(row["now"], row["starts_at"] - 1)
    first = walk.next_after(start)
    return first if first is not None and row["now"] < first < row["next_fire_at"] else None


def _same_wall_time(row: Row, walk: Compiled) -> int | None:
    """Where the stored instant is no slot any more: the nearest slot, or the one after it if that is on record."""
    stored = row["next_fire_at"]
    before, after = walk.latest_at(stored), walk.next_after(stored)
    if before == stored:
        return None
    near = [slot for slot in (before, after) if slot is not None and abs(slot - stored) <= MOST_MOVED_US]
    if not near:
        return None
    nearest = min(near, key=lambda slot: abs(slot - stored))
    recorded = row["recorded_until"]
    return nearest if recorded is None or nearest > recorded else walk.next_after(recorded)
