"""The program watches itself: what readiness depends on, each thing with a sentence (OPS-5a)."""

from collections.abc import Callable
from dataclasses import dataclass

from gnomon.domain.errors import Unavailable
from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock
from gnomon.stores import processes, slots
from gnomon.stores.database import Database, Tx

LATE_SLOT_SECONDS = 120.0  # a due slot that has no record for that long means that nobody dispatches
SKEW_SECONDS = 30.0  # between the database's clock and the process's own


@dataclass(frozen=True, slots=True)
class Vital:
    """One thing that readiness depends on."""

    name: str
    ok: bool
    detail: str


class Health:
    """Looks at one process and its database. ``last_tick`` is the dispatcher's, monotonic, or ``None`` before any."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        tick_seconds: float,
        dispatches: bool,
        last_tick: Callable[[], tuple[float, int] | None],
        zone_data: str,
    ) -> None:
        self._database = database
        self._clock = clock
        self._stale_seconds = max(2 * tick_seconds, 60.0)
        self._dispatches = dispatches
        self._last_tick = last_tick
        self._zone_data = zone_data
        self._opened_at = clock.monotonic()

    async def vitals(self) -> list[Vital]:
        """Every vital, the sick ones among them."""
        try:
            now, wait_us = await self._database.read(_look)
        except Unavailable as error:
            return [Vital("database", ok=False, detail=error.message)]
        skew = abs(now - self._clock.micros()) / SECOND
        late = 0.0 if wait_us is None else max(0.0, -wait_us / SECOND)
        return [
            Vital("database", ok=True, detail="reachable and up to date"),
            self._ticks(),
            Vital(
                "slots",
                ok=late <= LATE_SLOT_SECONDS,
                detail="no slot waits for its record"
                if late == 0
                else f"a slot has waited {late:.0f} s for its record",
            ),
            Vital("clock", ok=skew <= SKEW_SECONDS, detail=f"{skew:.3f} s from the database's"),
            Vital("zones", ok=True, detail=f"IANA data {self._zone_data}"),
        ]

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


async def _look(tx: Tx) -> tuple[int, int | None]:
    return await processes.now(tx), await slots.next_due(tx)
