"""The program watches itself: what readiness depends on, each thing with a sentence (OPS-5a)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gnomon.domain.errors import Unavailable
from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock
from gnomon.stores import jobs, migrations, processes, slots
from gnomon.stores.database import Database, Tx

LATE_SLOT_SECONDS = 120.0  # a due slot that has no record for that long means that nobody dispatches
PATIENCE_SECONDS = 3.0  # whoever asks has little: the answer is then that there is none
SKEW_SECONDS = 30.0  # between the database's clock and the process's own

# The database's clock, microseconds to the next slot of a schedule and of a job, the newest migration
Seen = tuple[int, int | None, int | None, int]


@dataclass(frozen=True, slots=True)
class Vital:
    """One thing that readiness depends on."""

    name: str
    ok: bool
    detail: str


class Health:
    """Looks at one process and its database. ``last_tick`` is the dispatcher's, monotonic, or ``None`` before any.

    ``migration`` is the newest one that this program knows; ``hears`` says whether other processes are heard when they
    change something, or is ``None`` where no line is needed for that.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        tick_seconds: float,
        dispatches: bool,
        last_tick: Callable[[], tuple[float, int] | None],
        zone_data: str,
        migration: int,
        hears: Callable[[], bool] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._stale_seconds = max(2 * tick_seconds, 60.0)
        self._dispatches = dispatches
        self._last_tick = last_tick
        self._zone_data = zone_data
        self._migration = migration
        self._hears = hears
        self._opened_at = clock.monotonic()
        self._looking: asyncio.Task[Seen] | None = None

    async def vitals(self) -> list[Vital]:
        """Every vital, the sick ones among them."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                now, wait_us, job_wait_us, migration = await asyncio.shield(self._seen())
        except TimeoutError:
            return [Vital("database", ok=False, detail=f"no answer within {PATIENCE_SECONDS:.0f} s")]
        except Unavailable as error:
            # everybody may ask: what the driver said, with its hosts and users, is for the log
            return [Vital("database", ok=False, detail=error.message.partition(" (")[0])]
        skew = abs(now - self._clock.micros()) / SECOND
        return [
            self._version(migration),
            self._ticks(),
            *self._wakeup(),
            _waiting("slots", "slot waits for its record", "a slot has waited {} s for its record", wait_us),
            _waiting(
                "jobs", "slot waits for its trigger", "a slot has waited {} s for its trigger", job_wait_us
            ),
            Vital("clock", ok=skew <= SKEW_SECONDS, detail=f"{skew:.3f} s from the database's"),
            Vital("zones", ok=True, detail=f"IANA data {self._zone_data}"),
        ]

    def _seen(self) -> "asyncio.Task[Seen]":
        """The look that is under way, or a new one: a database that hangs is asked once, however many want to know."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._database.read(_look), name="gnomon-readiness")
            self._looking.add_done_callback(lambda look: look.cancelled() or look.exception())
        return self._looking

    def _version(self, migration: int) -> Vital:
        if migration == self._migration:
            return Vital("database", ok=True, detail="reachable and up to date")
        return Vital(
            "database",
            ok=False,
            detail=f"at migration {migration}, this program knows {self._migration}: another version of Gnomon has "
            "migrated it; restart this process with that version",
        )

    def _wakeup(self) -> list[Vital]:
        """Never sick: without it work waits for a tick, as promised."""
        if self._hears is None:
            return []
        detail = "other processes are heard" if self._hears() else "nobody is heard: work waits for a tick"
        return [Vital("wakeup", ok=True, detail=detail)]

    def _ticks(self) -> Vital:
        if not self._dispatches:
            return Vital("dispatcher", ok=True, detail="off in this process")
        last = self._last_tick()
        age = self._clock.monotonic() - (self._opened_at if last is None else last[0])
        if age > self._stale_seconds:
            return Vital("dispatcher", ok=False, detail=f"no tick for {age:.0f} s")
        if last is None:
            return Vital("dispatcher", ok=True, detail="starting")
        return Vital(
            "dispatcher", ok=True, detail=f"ticked {age:.1f} s ago, at most {last[1] / SECOND:.3f} s late"
        )


def _waiting(name: str, what: str, sentence: str, wait_us: int | None) -> Vital:
    late = 0.0 if wait_us is None else max(0.0, -wait_us / SECOND)
    detail = f"no {what}" if late == 0 else sentence.format(f"{late:.0f}")
    return Vital(name, ok=late <= LATE_SLOT_SECONDS, detail=detail)


async def _look(tx: Tx) -> Seen:
    return (
        await processes.now(tx),
        await slots.next_due(tx),
        await jobs.next_due(tx),
        await migrations.newest(tx),
    )
