"""The engine of one process over one database: dispatcher, runner, watchdog and renewal, built and driven together.

Knows no settings and no edge: ``wiring`` hands it what it needs, ``testing`` drives its ticks by hand.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog

from gnomon.cadence import zone_data_version
from gnomon.domain.audit import Action
from gnomon.domain.instants import SECOND
from gnomon.ports.clock import Clock
from gnomon.ports.telemetry import Counts
from gnomon.ports.wakeup import News
from gnomon.services.agenda import TOGETHER_SECONDS, Agenda, Chore, anything_held, next_run, next_slot
from gnomon.services.attempt import Attempts
from gnomon.services.clock_guard import ClockGuard, Jump
from gnomon.services.closing import Closing
from gnomon.services.dispatcher import Dispatcher, NoRunner, batch_for
from gnomon.services.gates import Gates
from gnomon.services.holds import Pulse
from gnomon.services.invoking import Invoker, Runtimes
from gnomon.services.loop import DueAt, Errand, Loop, Tick
from gnomon.services.mint import Mint
from gnomon.services.places import Places
from gnomon.services.realign import Realignment
from gnomon.services.rehearsal import Rehearsal
from gnomon.services.renewal import Renewal
from gnomon.services.reporting import Reports
from gnomon.services.runner import Runner
from gnomon.services.signal import Signal
from gnomon.services.watchdog import Watchdog
from gnomon.stores import audit, processes
from gnomon.stores.agenda import Ahead
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database
from gnomon.stores.processes import Moment

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how much: the settings that the engine needs, in seconds and counts."""

    tick_seconds: float = 30.0
    sweep_seconds: float = 60.0
    heartbeat_seconds: float = 10.0
    heartbeat_timeout_seconds: float = 120.0
    concurrency: int = 100
    shutdown_grace_seconds: float = 30.0
    kill_grace_seconds: float = 10.0


class Engine:
    """Everything of one process that ticks over one database. ``start`` runs the loops; tests call the ticks themselves.

    ``places`` is given where a process has several of these, one for each database, which share them.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        mint: Mint,
        signal: Signal,
        runtimes: Runtimes,
        process_id: str,
        version: str,
        kill_group: Callable[[int], None],
        pace: Pace,
        dispatch: bool = True,
        work: bool = True,
        chores: tuple[Chore, ...] = (),
        errands: tuple[Errand, ...] = (),
        places: Places | None = None,
        agenda: Agenda | None = None,
    ) -> None:
        self.database = database
        self._clock = clock
        self.process_id = process_id
        self._version = version
        self._signal = signal
        self._pace = pace
        self.guard = ClockGuard(clock, stall_seconds=2 * pace.sweep_seconds + pace.heartbeat_timeout_seconds)
        self.renewal = Renewal(
            database=database,
            clock=clock,
            process_id=process_id,
            heartbeat_seconds=pace.heartbeat_seconds,
            heartbeat_timeout_seconds=pace.heartbeat_timeout_seconds,
            kill_group=kill_group,
            pulse=self._pulse,
            on_beat=self.guard.note,
            on_change=self._changed_elsewhere,
        )
        self.closing = Closing(database, clock, signal)
        self.reports = Reports(database, self.renewal, signal)
        gates = Gates()
        self.runner = Runner(
            database=database,
            clock=clock,
            mint=mint,
            wakeup=signal,
            gates=gates,
            renewal=self.renewal,
            closing=self.closing,
            attempts=Attempts(
                clock=clock,
                renewal=self.renewal,
                invoker=Invoker(database, runtimes, process_id),
                reports=self.reports,
                process_id=process_id,
            ),
            reports=self.reports,
            process_id=process_id,
            places=places or Places(pace.concurrency),
            kill_grace_seconds=pace.kill_grace_seconds,
        )
        self.dispatcher = Dispatcher(
            database=database,
            clock=clock,
            mint=mint,
            wakeup=signal,
            gates=gates,
            runner=self.runner if work else NoRunner(),
            process_id=process_id,
            may_claim=lambda: not self._draining and self.renewal.alive(),
            batch=batch_for(pace.concurrency),
        )
        self._realignment = Realignment(database)
        self._rehearsal = Rehearsal(
            database=database, clock=clock, mint=mint, gates=gates, process_id=process_id
        )
        self.watchdog = Watchdog(
            database=database,
            wakeup=signal,
            guard=self.guard,
            heartbeat_timeout_seconds=pace.heartbeat_timeout_seconds,
            sweep_seconds=pace.sweep_seconds,
            on_jump=self._on_jump,
            renewal=self.renewal,
            process_id=process_id,
            boot=clock.boot(),
            chores=chores,
        )
        self._agenda = agenda or Agenda(database, clock, process_id, pace.tick_seconds)
        self._agenda.told = self.guard.note
        self._loops = self._make_loops(clock, errands, dispatch=dispatch, work=work)
        self._first_to_stop = ("dispatch", "sweep", *(errand.name for errand in errands if errand.begins))
        self.works, self._dispatches = work, dispatch
        self._loop: asyncio.AbstractEventLoop | None = None
        self._draining = False

    def _make_loops(
        self, clock: Clock, errands: tuple[Errand, ...], *, dispatch: bool, work: bool
    ) -> dict[str, Loop]:
        def loop(
            name: str,
            tick: Tick,
            seconds: float,
            due_at: DueAt | None,
            *,
            hears: News = News.OTHER,
            listens: bool = True,
        ) -> Loop:
            ahead = None if due_at is None else partial(self._agenda.wait, due_at)
            return Loop(
                name,
                tick,
                clock=clock,
                wakeup=self._signal.ear(hears),
                most_seconds=seconds,
                listens=listens,
                ahead=ahead,
            )

        loops: list[Loop] = []
        if dispatch:
            tick = self._pace.tick_seconds
            loops.append(
                loop("dispatch", self.dispatcher.tick, tick, self._next_slot, hears=News.SLOT | News.OTHER)
            )
        if work:
            tick = self._pace.tick_seconds
            loops.append(loop("run", self.runner.tick, tick, self._next_run, hears=News.RUN | News.OTHER))
        if dispatch or work:
            loops.append(loop("sweep", self._sweep, self._pace.sweep_seconds, None, listens=False))
        loops += [loop(each.name, each.tick, each.most_seconds, each.due_at) for each in errands]
        return {loop.name: loop for loop in loops}

    def _next_slot(self, ahead: Ahead) -> int | None:
        return ahead.now if self.dispatcher.lost_claims.any else next_slot(ahead)

    def _next_run(self, ahead: Ahead) -> int | None:
        return ahead.now if self.runner.lost_claims.any else next_run(ahead)

    async def _first_sweep(self) -> None:
        """Before slots are looked for, so that none is skipped for a run that was dead by then (RUN-7)."""
        try:
            if anything_held(await self._agenda.look()):
                await self.watchdog.first_sweep()
        except Exception as error:  # left to the tick: it must not keep the process from starting
            _log.warning("tick_failed", loop="sweep", error=str(error))

    async def _sweep(self) -> float:
        """A tick of the watchdog, spared what the agenda says is not there."""
        ahead = await self._agenda.look(min(TOGETHER_SECONDS, self._pace.sweep_seconds / 10))
        return await self.watchdog.tick(quiet=not anything_held(ahead))

    async def register(self) -> None:
        """Write this process's row: before anything is claimed under its id (RUN-5a)."""
        host, pid, zones = socket.gethostname(), os.getpid(), zone_data_version()
        await self._realignment.meet_zone_data(zones)
        await self.database.write(
            lambda tx: processes.start(tx, self.process_id, host, pid, self._version, zones, self._moment())
        )

    def _moment(self) -> Moment:
        return Moment(self._clock.boot(), round(self._clock.monotonic() * SECOND))

    async def start(self) -> None:
        """Start every loop; the sockets listen by now (DSP-1)."""
        self._loop = asyncio.get_running_loop()
        self.guard.began()
        await self.register()
        self.renewal.start()
        await self._rehearsal.run(dispatch=self._dispatches, work=self.works)
        if self._dispatches:
            await self._first_sweep()
        for loop in self._loops.values():
            loop.start()

    async def drain(self) -> None:
        """Stop claiming, let runs finish for the grace, give the rest back (DSP-10)."""
        self._draining = True  # however much is due, no more of it is ours
        for name in self._first_to_stop:
            if name in self._loops:
                await self._loops[name].stop()
        if self.works and self._loop is not None:
            await self.runner.drain(self._pace.shutdown_grace_seconds)

    async def stop(self) -> None:
        """Stop every loop, and the heartbeat last: what is in flight is not taken for dead before it is over."""
        if self._loop is None:
            return
        for loop in self._loops.values():
            await loop.stop()
        await self.renewal.stop()
        await self.database.write(lambda tx: processes.stop(tx, self.process_id))

    def counts(self) -> Counts:
        """What this process has done since its start, for the metrics (OPS-6)."""
        last = self.last_tick()
        return Counts(
            slots=dict(self.dispatcher.recorded),
            runs=dict(self.closing.ended),
            in_work=self.runner.in_work,
            ticked_at_us=None if last is None else self._loops["dispatch"].ticked_at_us,
            lag_us=self.dispatcher.lag_us,
        )

    def last_tick(self) -> tuple[float, int] | None:
        """The dispatcher's last good tick (monotonic) and how late its latest slot was, in microseconds (OPS-5a)."""
        loop = self._loops.get("dispatch")
        if loop is None or loop.ticked_at is None:
            return None
        return loop.ticked_at, self.dispatcher.lag_us

    def _changed_elsewhere(self) -> None:
        """Called from the renewal's thread: another process has committed, so whoever waits looks again."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._signal.notify)

    def _pulse(self) -> Pulse:
        loop = self._loops.get("dispatch")
        return Pulse(None, None) if loop is None else Pulse(loop.ticked_at_us, self.dispatcher.lag_us)

    async def _on_jump(self, jump: Jump) -> None:
        entry = new_entry(
            "watchdog",
            Action.CLOCK_JUMP,
            "process",
            self.process_id,
            None,
            {"seconds": round(jump.seconds, 3), "stalled": jump.stalled},
        )
        await self.database.write(lambda tx: audit.append_many(tx, [entry]))
        if jump.seconds < 0:
            await self._realignment.run()
        self._signal.notify()
