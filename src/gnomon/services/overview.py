"""The state of everything in numbers, for whoever looks at the dashboard (UI-1).

A day and a week are those of the zone that is asked for; a week begins on Monday. What ended is counted among the newest
runs and triggers, up to a bound: the answer says where there may be more.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gnomon.cadence.civil import DAY, zone_named
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.ids import Kind, make_id
from gnomon.domain.instants import SECOND, from_micros
from gnomon.domain.schedule import ScheduleStatus
from gnomon.stores import overview, processes
from gnomon.stores.database import Database, Row, Tx

MOST = 100_000  # of the newest runs, and of the newest triggers, that are looked at
LATE_SECONDS = 60
# What ends in a week may have begun before it: a timeout of a day, its retries, and clocks that differ.
_BEGUN_BEFORE = timedelta(days=2)
_FAILED = ("failed", "timed_out", "lost")
STATES = ("claimable", "gated", "in_progress", "in_review", "blocked")


@dataclass(frozen=True, slots=True)
class Ended:
    """What ended: well this week, otherwise today; ``at_least`` where there may have been more."""

    well_this_week: int
    failed_today: int
    at_least: bool
    missed_today: int = 0


@dataclass(frozen=True, slots=True)
class Role:
    """One role: its tasks by state, its instances by status."""

    name: str
    tasks: dict[str, int] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Everything at one moment; ``queue`` counts runs that are queued, wait or run, and what is late."""

    at: datetime
    zone: str
    today_at: datetime
    week_at: datetime
    processes: int
    runs: Ended
    triggers: Ended
    tasks_done: int
    expired_today: dict[str, int]
    queue: Row
    roles: list[Role]
    schedules: dict[str, int]
    jobs: Row

    def instances(self, status: str) -> int:
        """How many instances there are in a status, over all roles."""
        return sum(role.instances.get(status, 0) for role in self.roles)


class Overview:
    """Counts in one database."""

    def __init__(self, database: Database, heartbeat_timeout_seconds: float) -> None:
        self._database = database
        self._timeout_us = round(heartbeat_timeout_seconds * SECOND)

    async def numbers(self, zone: str = "UTC") -> Numbers:
        """Everything as it stands now.

        Raises:
            Invalid: there is no such zone.
        """
        try:
            zone_named(zone)
        except KeyError:
            raise Invalid([Fault("zone", "is no IANA zone such as Europe/Berlin")]) from None
        return await self._database.read(lambda tx: self._count(tx, zone))

    async def _count(self, tx: Tx, zone: str) -> Numbers:
        now = await processes.now(tx)
        today, week = starts(now, zone)
        return Numbers(
            at=from_micros(now),
            zone=zone,
            today_at=from_micros(today),
            week_at=from_micros(week),
            processes=await overview.processes(tx, self._timeout_us),
            runs=_ended(await overview.runs_ended(tx, _from_id(Kind.RUN, week), week, today, MOST)),
            triggers=_ended(
                await overview.triggers_ended(tx, _from_id(Kind.TRIGGER, week), week, today, MOST)
            ),
            tasks_done=await overview.tasks_done(tx, week),
            expired_today=await overview.expired(tx, today),
            queue=await overview.queue(tx, LATE_SECONDS * SECOND),
            roles=_roles(await overview.tasks_open(tx), await overview.instances(tx)),
            schedules=dict.fromkeys(ScheduleStatus, 0) | await overview.schedules(tx),
            jobs=await overview.jobs(tx),
        )


def starts(now: int, zone: str) -> tuple[int, int]:
    """When the day and the week of an instant began in a zone, all in microseconds."""
    place, second = zone_named(zone), now // SECOND
    day = (second + place.window(second).offset) // DAY
    monday = day - (day + 3) % 7  # 1970 began on a Thursday
    return place.resolve(day * DAY) * SECOND, place.resolve(monday * DAY) * SECOND


def _from_id(kind: Kind, week: int) -> str:
    return make_id(kind, (week - _BEGUN_BEFORE // timedelta(microseconds=1)) // 1_000, 0)


def _ended(rows: list[Row]) -> Ended:
    by_status = {row["status"]: row for row in rows}
    return Ended(
        well_this_week=by_status["succeeded"]["this_week"] if "succeeded" in by_status else 0,
        failed_today=sum(by_status[status]["today"] for status in _FAILED if status in by_status),
        missed_today=by_status["missed"]["today"] if "missed" in by_status else 0,
        at_least=sum(row["looked_at"] for row in rows) >= MOST,
    )


def _roles(tasks: list[Row], instances: list[Row]) -> list[Role]:
    found: dict[str, Role] = {}
    for row in tasks:
        found.setdefault(row["role"], Role(row["role"])).tasks[row["state"]] = row["how_many"]
    for row in instances:
        found.setdefault(row["role"], Role(row["role"])).instances[row["status"]] = row["how_many"]
    return [found[name] for name in sorted(found)]
