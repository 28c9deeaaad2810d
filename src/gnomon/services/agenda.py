"""The agenda of a process: what lies ahead of its loops, read for all of them in one statement.

A loop that has been left alone for as long as it may be asks here before it looks for itself, and the sweep before it
sends its chores; so a process with nothing to do makes one look a tick, however many loops it has. It only spares looks:
what is due is found by the loop's own, and whoever is woken, or knows itself when to go on, doesn't ask.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock
from gnomon.services.loop import DueAt
from gnomon.stores import agenda
from gnomon.stores.agenda import Ahead
from gnomon.stores.database import Database

Chore = Callable[[], Awaitable[object]]
# Looks of loops that wake at one instant are one. Nothing that is claimed later than this can be over already.
TOGETHER_SECONDS = 1.0


class Agenda:
    """Looks ahead over one database. ``told`` gets each reading of its clock, and when it was asked (monotonic)."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        process_id: str,
        every_seconds: float,
        told: Callable[[int, float], None] = lambda _now, _asked_at: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._process_id = process_id
        self._every = every_seconds
        self.told = told
        self._ahead: Ahead | None = None
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[Ahead] | None = None

    async def look(self, within: float = 0.0) -> Ahead:
        """What lies ahead, as it was at most ``within`` seconds ago, or as somebody is finding out right now.

        Raises:
            Unavailable: the database can't be asked.
        """
        if self._looking is None:
            if self._ahead is not None and self._clock.monotonic() - self._looked_at < within:
                return self._ahead
            self._looking = asyncio.create_task(self._look(), name="gnomon-agenda")
            self._looking.add_done_callback(self._looked)
        return await asyncio.shield(self._looking)

    async def wait(self, due_at: DueAt) -> float:
        """Seconds until ``due_at``, or until the next look where that comes first; none are left where it is due now."""
        ahead = await self.look(self._every)
        at, left = due_at(ahead), self._looked_at - self._clock.monotonic()
        return min(self._every, (at - ahead.now) / SECOND if at is not None else self._every) + left

    def shows(self, needed: Callable[[Ahead], bool]) -> bool:
        """Whether something is needed, as the last look shows it; before any look it may be."""
        return self._ahead is None or needed(self._ahead)

    def when(self, needed: Callable[[Ahead], bool], chore: Chore) -> Chore:
        """The chore, done only where it is ``needed``."""

        async def done() -> object:
            return await chore() if self.shows(needed) else None

        return done

    async def _look(self) -> Ahead:
        asked_at = self._clock.monotonic()
        ahead = await self._database.look(lambda tx: agenda.ahead(tx, self._process_id))
        self._ahead, self._looked_at = ahead, self._clock.monotonic()
        self.told(ahead.now, asked_at)
        return ahead

    def _looked(self, _task: "asyncio.Task[Ahead]") -> None:
        self._looking = None


def next_slot(ahead: Ahead) -> int | None:
    """When the dispatcher has something to do."""
    return ahead.slot_at


def next_run(ahead: Ahead) -> int | None:
    """When the runner has something to claim, or to stop."""
    if ahead.cancelled is not None:
        return ahead.now
    return min((at for at in (ahead.asked_run_at, ahead.slot_run_at) if at is not None), default=None)


def next_job(ahead: Ahead) -> int | None:
    """When a job is due; at once where a trigger waits, for somebody may have come that it can be given to."""
    return ahead.job_at if ahead.trigger_waits is None else ahead.now


def next_delivery(ahead: Ahead) -> int | None:
    """At once where an instance has a trigger."""
    return None if ahead.trigger_held is None else ahead.now


def next_pause_end(ahead: Ahead) -> int | None:
    """When a pause ends by itself."""
    return ahead.paused_until


def pause_over(ahead: Ahead) -> bool:
    """Whether the pause of a schedule is over."""
    return ahead.paused_until is not None and ahead.paused_until <= ahead.now


def instances_there(ahead: Ahead) -> bool:
    """Whether an instance is not offline, or a push is still written down."""
    return ahead.instance_heard_at is not None or ahead.pushed_run is not None


def anything_held(ahead: Ahead) -> bool:
    """Whether there is anything that could be taken from somebody who is gone."""
    held = (ahead.lease_until, ahead.lock_until, ahead.instance_heard_at, ahead.trigger_held)
    return any(each is not None for each in held)
