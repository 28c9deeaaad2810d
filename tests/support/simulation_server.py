"""One simulated server of the board, of jobs and of instances: the product's own services and loops, in lanes of its own.

Killed, frozen and cut off as any simulated process is. Instances reach it over wires, and by calls, whose answers may be
lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.websockets import WebSocket

from gnomon.domain.caller import Caller, system
from gnomon.domain.errors import GnomonError
from gnomon.edges.ws.conversation import Conversation
from gnomon.edges.ws.socket import Socket
from gnomon.services.agenda import Agenda, instances_there
from gnomon.services.connections import Connections
from gnomon.services.engine import Engine
from gnomon.services.heartbeats import Heartbeats
from gnomon.services.instance_sweep import InstanceSweep
from gnomon.services.instances import Instances
from gnomon.services.job_engine import JobEngine
from gnomon.services.jobs import Jobs
from gnomon.services.loop import Errand
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.tasks import Tasks
from support.simulation_process import PACE, SimProcess
from support.simulation_wire import Wire

T = TypeVar("T")
CALLER: Caller = system("crew")
LOCK_SECONDS = 120.0
TIMEOUT = PACE.heartbeat_timeout_seconds
PATIENCE_SECONDS = 15.0  # until whoever called gives up


class NoAnswerError(Exception):
    """A call whose answer did not come: it may have been done all the same."""


class SimServer(SimProcess):
    """As ``gnomon serve`` is wired: the board, the jobs, the connections, their sweeps."""

    def _build(self, runtime: Any) -> Engine:
        database, mint, signal = self.database, self.mint, self.signal
        self.process_id = mint.process()
        self.wires: list[Wire] = []
        self.connections = Connections()
        self.instances = Instances(database, mint, signal, self.process_id)
        self.connections.on("drain", self.instances.drain_itself)
        self.jobs = Jobs(database, mint, signal)
        self.board = Tasks(
            database,
            self.machine.clock,
            mint,
            signal,
            lock_seconds=LOCK_SECONDS,
            heartbeat_timeout_seconds=TIMEOUT,
        )
        pushed = JobEngine(
            database=database,
            connections=self.connections,
            mint=mint,
            signal=signal,
            process_id=self.process_id,
            heartbeat_timeout_seconds=TIMEOUT,
            may_claim=lambda: self.engine.renewal.alive(),  # noqa: PLW0108 - it is not there yet
            calm_us=self._calm_us,
        )
        agenda = Agenda(database, self.machine.clock, self.process_id, PACE.tick_seconds)
        heartbeats = Heartbeats(database, self.connections, self.process_id, PACE.heartbeat_seconds)
        engine = Engine(
            database=database,
            clock=self.machine.clock,
            mint=mint,
            signal=signal,
            runtimes=runtime,
            process_id=self.process_id,
            version="sim",
            kill_group=lambda _: None,
            pace=PACE,
            work=False,
            chores=(*self._sweeps(agenda), agenda.when(pushed.sweep.needed, pushed.sweep.tick)),
            errands=(
                Errand("hear", heartbeats.tick, heartbeats.every),
                *pushed.errands(PACE.tick_seconds, dispatches=True),
            ),
            agenda=agenda,
        )
        engine.renewal.start = self._start_beating  # type: ignore[method-assign]
        engine.renewal.stop = self._stop_beating  # type: ignore[method-assign]
        return engine

    def _sweeps(self, agenda: Agenda) -> tuple[Callable[[], Awaitable[object]], ...]:
        board = TaskSweep(
            self.database,
            self.signal,
            heartbeat_timeout_seconds=TIMEOUT,
            calm_us=self._calm_us,
            jumped=lambda tx: self.engine.watchdog.ask_guard(tx),  # noqa: PLW0108 - it is not there yet
        )
        silent = InstanceSweep(
            self.database,
            self.signal,
            self.connections,
            TIMEOUT,
            self._calm_us,
            needed=lambda: agenda.shows(instances_there),
        )
        return agenda.when(board.needed, board.tick), silent.tick

    def _calm_us(self) -> int | None:
        return self.engine.guard.calm_us()

    def accept(self, wire: Wire) -> None:
        """Talk over a wire that an instance has opened."""
        self.wires = [each for each in self.wires if not each.cut] + [wire]
        self.do(self._talk(wire))

    async def _talk(self, wire: Wire) -> None:
        websocket = WebSocket(wire.scope, wire.receive, wire.send)
        try:
            await websocket.accept()
            await Conversation(
                websocket,
                Socket(websocket, self.machine.clock),
                CALLER,
                connections=self.connections,
                instances=self.instances,
                heartbeat_seconds=PACE.heartbeat_seconds,
                heartbeat_timeout_seconds=PACE.heartbeat_timeout_seconds,
            ).run()
        except OSError:  # it broke while it was accepted
            return
        except Exception as error:
            if not self.machine.loop.closing:
                self.machine.history.crashes.append(f"conversation: {type(error).__name__}: {error}")

    def kill(self) -> None:
        """SIGKILL: the system closes its sockets, and mostly its peers hear of that."""
        if self.alive:
            for wire in self.wires:
                wire.break_off(server_knows=False, instance_knows=self.machine.rng.random() < 0.8)
        super().kill()

    async def call(self, asking: Callable[[], Awaitable[T]]) -> T:
        """What ``asking`` gives in this server, as whoever calls it from elsewhere gets it.

        Raises:
            NoAnswerError: it did not come in time, or not at all.
            GnomonError: what the server said.
        """
        loop, rng = self.machine.loop, self.machine.rng
        answer: asyncio.Future[T] = loop.create_future()

        async def serve() -> None:
            try:
                found = await asking()
            except GnomonError as error:
                _give(answer, error)
            except Exception as error:
                if not loop.closing:
                    self.machine.history.crashes.append(f"call: {type(error).__name__}: {error}")
                _give(answer, NoAnswerError())
            else:
                if rng.random() >= self.machine.lossy:
                    await asyncio.sleep(rng.choice((0.0, 0.01, 0.5)))
                    _give(answer, found)

        loop.call_later(
            rng.choice((0.0, 0.01, 0.1)), lambda: self.do(serve()), context=self.lane.context.copy()
        )
        try:
            return await asyncio.wait_for(answer, PATIENCE_SECONDS)
        except TimeoutError:
            raise NoAnswerError from None


def _give(answer: "asyncio.Future[Any]", found: Any) -> None:
    if answer.done():
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)
