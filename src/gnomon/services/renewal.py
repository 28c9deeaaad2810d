"""The heartbeat of a process and of the leases it holds, on a thread and a connection of their own (RUN-4, RUN-5).

A target that blocks the event loop can't starve it. A run whose lease could not be renewed, or whose process could not
write its heartbeat, is given up here before the earlier of the two ends, by the monotonic clock: its process groups are
killed from this very thread, and the loop is told.
"""

import asyncio
from collections.abc import Callable, Iterable
from threading import Event, Lock, Thread

import structlog

from gnomon.domain.errors import GnomonError
from gnomon.domain.grant import Grant
from gnomon.domain.instants import SECOND
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.services.clock_guard import JUMP_SECONDS
from gnomon.services.holds import Hold, Pulse
from gnomon.stores import processes, runs
from gnomon.stores.database import Database, DirectDatabase, Tx

_log = structlog.get_logger()
# How often the deadlines are looked at, whatever else happens, and how soon another process's commit is noticed.
_LOOK_SECONDS = 0.25
_AGAIN_SECONDS = 1.0  # until a heartbeat that failed is tried again
# A process that holds nothing beats that much less often, and at least so often within the timeout: nobody waits for it
_REST, _RESTING_BEATS = 3, 4
# The longest wait for the write lock: this thread must look at the deadlines again before the least margin is over.
_PATIENCE_SECONDS = 5.0


class Renewal:
    """Holds the leases of one process. Every method is safe from any thread."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        process_id: str,
        heartbeat_seconds: float,
        heartbeat_timeout_seconds: float,
        kill_group: Callable[[int], None],
        pulse: Callable[[], Pulse] = lambda: Pulse(None, None),
        on_beat: Callable[[int, float], None] = lambda _database_now, _asked_at: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._process_id = process_id
        self._every = heartbeat_seconds
        self._timeout = heartbeat_timeout_seconds
        self._margin = min(heartbeat_seconds, heartbeat_timeout_seconds / 4)
        self._kill_group = kill_group
        self._pulse = pulse
        self._on_beat = on_beat
        self._on_change = on_change
        self._holds: dict[str, Hold] = {}
        self._abandoned: dict[tuple[str, int], float] = {}  # run and fence, and when others may take it
        self._lock = Lock()
        self._stop = Event()
        self._beat_at = clock.monotonic()
        self._whole_since = (
            self._beat_at
        )  # no gap between heartbeats since, in which others may have taken runs
        self._resting_every = max(
            heartbeat_seconds, min(_REST * heartbeat_seconds, heartbeat_timeout_seconds / _RESTING_BEATS)
        )
        self._asked_at = self._beat_at  # when a heartbeat was last tried
        self._offset_then = self._offset()
        # of the database's clock, as the last heartbeat read it; before the first one, what its own machine says
        self._beat_offset = self._offset_then
        self._failed = False
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread; the process's row is in the database by now."""
        self._beat_at = self._clock.monotonic()
        self._thread = Thread(target=self._work, name="gnomon-renew", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop last of all: what is still held is left to its lease."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def hold_all(self, grants: Iterable[Grant], on_lost: Callable[[str], object]) -> None:
        """Take claimed runs into care; ``on_lost(run_id)`` is called, from this thread, for each that is given up."""
        with self._lock:
            for grant in grants:
                self._holds[grant.run_id] = Hold(
                    grant.run_id, grant.fence, grant.lease_seconds, grant.taken_at, on_lost
                )

    def closing(self, run_id: str) -> None:
        """The run's last write begins: its lease is renewed until ``drop``, and no longer missed."""
        hold = self._holds.get(run_id)  # one look, which needs no lock
        if hold is not None:
            hold.closing = True

    def drop(self, run_ids: Iterable[str]) -> None:
        """These runs are over: nobody renews them any more."""
        with self._lock:
            for run_id in run_ids:
                self._holds.pop(run_id, None)

    def add_group(self, run_id: str, pgid: int) -> None:
        """A process group works for the run; if the run was given up already, it is killed at once."""
        with self._lock:
            hold = self._holds.get(run_id)
            if hold is not None:
                hold.groups |= {pgid}
        if hold is None:
            self._kill_group(pgid)

    def remove_group(self, run_id: str, pgid: int) -> None:
        """The group is gone."""
        with self._lock:
            hold = self._holds.get(run_id)
            if hold is not None:
                hold.groups -= {pgid}

    def holds(self, run_id: str) -> bool:
        """Whether this process may still act on the run, by its own clock: asked right before every step out."""
        hold = self._holds.get(run_id)
        return hold is not None and self._clock.monotonic() < self._ends_at(hold)

    def abandoned(self) -> set[tuple[str, int]]:
        """What this process gave up (run, fence) so long ago that others may take it: its own sweep need not wait.

        Without it a run whose process could not renew, and then lived on, would be locked until the end of its lease:
        its holder's heartbeat is fresh again (RUN-7).
        """
        now = self._clock.monotonic()
        with self._lock:
            return {run for run, ends_at in self._abandoned.items() if now >= ends_at}

    def settled(self, runs: set[tuple[str, int]]) -> None:
        """These are written down: nothing is to be said of them any more."""
        with self._lock:
            for run in runs:
                self._abandoned.pop(run, None)

    def alive(self) -> bool:
        """Whether the process's own heartbeat is fresh: one that stood still beats before it claims anything."""
        return self._clock.monotonic() < self._process_ends_at()

    def _ends_at(self, hold: Hold) -> float:
        # claimed before the process stood still: it may be somebody else's by now, however young its lease looks
        if hold.sent_at < self._whole_since:
            return hold.sent_at
        return min(hold.ends_at(self._margin), self._process_ends_at())

    def _process_ends_at(self) -> float:
        return self._beat_at + self._timeout - self._margin

    def tick(self, database: DirectDatabase) -> None:
        """Fence what is out of time, beat when it is time, renew what is past a third of its lease."""
        self._fence_overdue()
        now = self._clock.monotonic()
        with self._lock:
            known = list(self._holds.values())
        due = [hold for hold in known if now >= hold.sent_at + min(hold.lease_seconds / 3, 3_600)]
        offset = self._offset()
        was_set = abs(offset - self._offset_then) > JUMP_SECONDS
        at_rest = now < self._asked_at + self._pause(holds=bool(known))
        if at_rest and not due and not was_set and self.alive():
            return
        self._asked_at, self._offset_then, self._failed = now, offset, False
        write = database.write if known else database.write_one
        try:
            alive, renewed, held = failpoints.directly("renew", write, lambda tx: self._write(tx, due, known))
        except GnomonError as error:
            _log.warning("heartbeat_failed", error=error.message)
            self._failed = True
        else:
            self._beaten(now, alive=alive)
            self._compare(now, known, renewed, held)
        self._fence_overdue()

    def _clock_was_set(self, offset: float) -> bool:
        """Whether the database's clock runs elsewhere, by the monotonic one, than at the heartbeat before."""
        before, self._beat_offset = self._beat_offset, offset
        return abs(offset - before) > JUMP_SECONDS

    def _offset(self) -> float:
        """Of the machine's clock: whoever sees that it was set reads the database's at once (RUN-5b)."""
        return self._clock.micros() / SECOND - self._clock.monotonic()

    def _pause(self, *, holds: bool) -> float:
        """Seconds between two heartbeats: whoever takes a run beats at once where it has rested."""
        if self._failed:
            return min(self._every, _AGAIN_SECONDS)
        return self._every if holds else self._resting_every

    async def _write(
        self, tx: Tx, due: list[Hold], known: list[Hold]
    ) -> tuple[bool, set[str], set[tuple[str, int]]]:
        pulse = self._pulse()
        asked_at = self._clock.monotonic()
        beat_at = await processes.beat(
            tx, self._process_id, pulse.ticked_at, pulse.lag_us, round(asked_at * SECOND)
        )
        alive, was_set = beat_at is not None, True
        if beat_at is not None:
            self._on_beat(beat_at, asked_at)
            was_set = self._clock_was_set(beat_at / SECOND - asked_at)
        if not known:  # a process without work says that it lives, and asks for nothing
            return alive, set(), set()
        # Whoever is born now reads in this heartbeat what the clock says, and not that it said another thing before: so
        # the leases go by the new clock in the same moment (RUN-5b).
        renewing = known if was_set else due
        renewed = await runs.renew(tx, self._process_id, [(hold.run_id, hold.fence) for hold in renewing])
        return alive, renewed, await runs.held_by(tx, self._process_id)

    def _beaten(self, sent_at: float, *, alive: bool) -> None:
        if alive:
            if not self.alive():
                self._whole_since = sent_at
            self._beat_at = sent_at

    def _compare(
        self, sent_at: float, known: list[Hold], renewed: set[str], held: set[tuple[str, int]]
    ) -> None:
        """What this process believes it holds against what it does: a run that was taken away is stopped at this beat."""
        lost: list[Hold] = []
        with self._lock:
            for hold in known:
                if hold.run_id in renewed:
                    hold.sent_at = sent_at
                elif (hold.run_id, hold.fence) not in held and not hold.closing:
                    lost.append(hold)
        self._give_up(lost, "the lease was taken away")

    def _fence_overdue(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            lost = [hold for hold in self._holds.values() if now >= self._ends_at(hold)]
            for hold in lost:
                if not hold.closing:  # its end is known, and is still being written
                    self._abandoned[hold.run_id, hold.fence] = now + self._margin
        self._give_up(lost, "the lease could not be renewed in time")

    def _give_up(self, lost: list[Hold], why: str) -> None:
        for hold in lost:
            with self._lock:
                if self._holds.get(hold.run_id) is not hold:
                    continue
                del self._holds[hold.run_id]
                groups = hold.groups
            _log.error("lease_lost", run_id=hold.run_id, fence=hold.fence, why=why)
            for pgid in groups:
                self._kill_group(pgid)
            hold.on_lost(hold.run_id)

    def _work(self) -> None:
        database: DirectDatabase | None = None
        while not self._stop.is_set():
            try:
                if database is None:
                    database = self._database.direct(min(self._margin, _PATIENCE_SECONDS))
                self.tick(database)
                if database.changed_elsewhere():
                    self._on_change()
            except Exception:
                _log.exception("renewal_failed")
                _close(database)
                database = None
                self._fence_overdue()
            self._stop.wait(_LOOK_SECONDS)
        _close(database)


def _close(database: DirectDatabase | None) -> None:
    """Close a connection that may be broken."""
    if database is not None:
        try:
            database.close()
        except Exception:
            _log.exception("renewal_connection_close_failed")
