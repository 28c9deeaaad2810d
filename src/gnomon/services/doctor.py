"""A doctor for one database: what could happen twice, not at all, or be lost, each with what to do (IDM-4).

Reads one snapshot in pages and changes nothing. What is broken already is ``verify``'s affair.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from gnomon.domain.dedup import Loop
from gnomon.domain.finding import Finding, Kind, Where
from gnomon.domain.instants import SECOND, from_micros, rfc3339
from gnomon.ports.clock import Clock
from gnomon.services.doctor_loops import Sight, judge
from gnomon.services.health import SKEW_SECONDS
from gnomon.stores import doctor, processes, slots
from gnomon.stores.database import Database, Row, Tx

NAMED = 100  # of each kind; the rest is counted
KEY_ENDS_SECONDS = 14 * 86_400
# How each engine's settings must stand, and what else may happen.
_SAFE: dict[str, tuple[frozenset[str], str]] = {
    "synchronous": (frozenset({"2", "3"}), "a power cut may take back claims that were made"),
    "journal_mode": (frozenset({"wal"}), "readers and writers are in each other's way"),
    "fsync": (frozenset({"on"}), "a crash of the machine may destroy the database"),
    "full_page_writes": (frozenset({"on"}), "a power cut may leave half-written pages"),
    "synchronous_commit": (
        frozenset({"on", "local", "remote_write", "remote_apply"}),
        "a crash of the server may take back claims that were made, so that their work is done twice",
    ),
}


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: how many of each kind, and the first of each by name."""

    counts: dict[Kind, int]
    named: tuple[Finding, ...]


class Doctor:
    """Looks at one database. ``zone_data`` and ``version`` are this program's own."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        heartbeat_timeout_seconds: float,
        zone_data: str,
        version: str,
    ) -> None:
        self._database = database
        self._clock = clock
        self._silent_us = round(heartbeat_timeout_seconds * SECOND)
        self._zone_data = zone_data
        self._version = version

    async def look(self) -> Findings:
        """Everything that is to be found now.

        Raises:
            Unavailable: the database can't be read.
        """
        return await self._database.read(self._look)

    async def _look(self, tx: Tx) -> Findings:
        counts: Counter[Kind] = Counter()
        named: list[Finding] = []
        async for finding in self._findings(tx):
            counts[finding.kind] += 1
            if counts[finding.kind] <= NAMED:
                named.append(finding)
        return Findings({kind: counts[kind] for kind in Kind if counts[kind]}, tuple(named))

    async def _findings(self, tx: Tx) -> AsyncIterator[Finding]:
        now = await processes.now(tx)
        for loop, pages in ((Loop.SCHEDULE, doctor.schedules(tx)), (Loop.JOB, doctor.jobs(tx))):
            async for finding in _loops(tx, loop, pages, now):
                yield finding
        async for row in doctor.processes(tx):
            for finding in self._process(row):
                yield finding
        async for row in doctor.keys_ending(tx, KEY_ENDS_SECONDS * SECOND):
            yield _key_ends(row)
        for finding in (*self._clock_off(now), *_database(await doctor.settings(tx))):
            yield finding

    def _process(self, row: Row) -> Iterator[Finding]:
        at = Where("process", row["id"], f"{row['host']} {row['pid']}")
        silent = row["now"] - row["heartbeat_at"]
        if silent > self._silent_us:
            yield Finding(
                Kind.PROCESS_SILENT,
                at,
                f"Process {row['pid']} on {row['host']} was not stopped, and has been silent for {silent // SECOND:,} "
                "seconds.",
                "If it is frozen, end it. If it was killed, nothing is to be done: what it held is closed or queued again by a "
                "sweep, and its row goes after a while.",
            )
            return
        if row["zone_data"] != self._zone_data:
            yield Finding(
                Kind.ZONE_DATA_DIFFERS,
                at,
                f"Process {row['pid']} on {row['host']} has the zone data {row['zone_data']}; this program has "
                f"{self._zone_data}.",
                "Install the same version everywhere, and start those processes anew.",
            )
        if row["version"] != self._version:
            yield Finding(
                Kind.VERSION_DIFFERS,
                at,
                f"Process {row['pid']} on {row['host']} is of version {row['version']}; this program is {self._version}.",
                "Start it anew with this version, when it suits you.",
            )

    def _clock_off(self, now: int) -> Iterator[Finding]:
        skew = (now - self._clock.micros()) / SECOND
        if abs(skew) > SKEW_SECONDS:
            ahead = "ahead of" if skew > 0 else "behind"
            yield Finding(
                Kind.CLOCK_OFF,
                Where("database", "clock", "the database's clock"),
                f"The database's clock is {abs(skew):,.0f} seconds {ahead} that of this machine.",
                "Let a time server set both. Claims and leases go by the database's clock.",
            )


async def _loops(tx: Tx, loop: Loop, pages: AsyncIterator[list[Row]], now: int) -> AsyncIterator[Finding]:
    async for rows in pages:
        slugs = {row["calendar"] for row in rows if row["calendar"] is not None}
        sight = Sight(now, await slots.holidays(tx, slugs) if slugs else {})
        for row in rows:
            for finding in judge(loop, row, sight):
                yield finding


def _key_ends(row: Row) -> Finding:
    ends = rfc3339(from_micros(row["expires_at"]))
    return Finding(
        Kind.KEY_ENDS,
        Where("key", row["id"], row["name"]),
        f'The API key "{row["name"]}" ends at {ends}; what uses it is refused from then on.',
        f"Make another in time, or let it live on: `gnomon keys patch {row['id']}`.",
    )


def _database(settings: dict[str, str]) -> Iterator[Finding]:
    for name, setting in sorted(settings.items()):
        safe, otherwise = _SAFE[name]
        if setting not in safe:
            yield Finding(
                Kind.DATABASE_UNSAFE,
                Where("database", name, name),
                f'The database setting {name} is "{setting}": {otherwise}.',
                f'Set {name} to "{"on" if "on" in safe else min(safe)}", for this database at least.',
            )
