"""One incarnation of a simulated instance: it connects, takes what is pushed, and does with it what the seed draws.

It keeps no rule but one: what it believes that it may work on is written down. It answers late, twice, over a connection
that was replaced, for triggers that are not its own; it is killed, stands still, and comes back knowing or not knowing.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from gnomon.domain.errors import GnomonError
from gnomon.services.task_writing import MadeTask
from support.simulation_board_history import Delivery
from support.simulation_holder import Holder
from support.simulation_server import CALLER, NoAnswerError, SimServer
from support.simulation_wire import Wire

if TYPE_CHECKING:
    from support.simulation_board import BoardWorld

STORMY = ("works",) * 8 + (
    "late",
    "deaf",
    "twice",
    "straight",
    "fails",
    "contrary",
    "holds",
    "stale",
    "foreign",
)
CALM = ("works", "works", "works", "straight", "fails", "twice")
HEARTBEAT_SECONDS = 10.0
SILENCE = 4  # heartbeats without an answer, and the instance gives a connection up


class SimWorker:
    """``name`` and ``role`` are the instance's; ``label`` names this incarnation."""

    def __init__(self, world: "BoardWorld", name: str, role: str) -> None:
        world.births += 1
        self.world, self.name, self.role = world, name, role
        self.label = f"{name}/{world.births}"
        self.lane = world.loop.lane(self.label)
        self.alive = True
        self.wire: Wire | None = None
        self.instance_id, self.epoch = "", 0
        self.has: set[str] = set()  # triggers that it works on
        self.unsaid: deque[dict[str, Any]] = deque()  # results that nobody has heard yet
        self._left: list[Wire] = []
        self.do(self._live())
        self.do(Holder(self).live())

    def do(self, coroutine: Any) -> "asyncio.Task[Any]":
        """Run a coroutine in this instance."""
        return self.world.loop.create_task(coroutine, context=self.lane.context.copy())

    def kill(self) -> None:
        """SIGKILL, or its machine is gone and nobody is told."""
        if not self.alive:
            return
        self.alive = False
        self.lane.parked = False
        self.world.loop.kill(self.lane)
        for held in self.world.board.holds:
            if held.worker == self.label:
                held.end = min(held.end, self.world.loop.time())
        self.world.board.fell_silent.append((self.label, self.world.loop.time()))
        if self.wire is not None:
            self.wire.break_off(server_knows=self.world.rng.random() < 0.7, instance_knows=False)

    async def call(self, asking: Any) -> Any:
        """Ask any server. See ``SimServer.call``."""
        server = self.world.a_server()
        if server is None:
            await asyncio.sleep(1.0)
            raise NoAnswerError
        return await server.call(lambda: asking(server))

    async def _live(self) -> None:
        rng = self.world.rng
        while True:
            server = self.world.a_server()
            if server is not None:
                await self._connected(server)
            await asyncio.sleep(rng.choice((0.1, 1.0, 5.0)))

    async def _connected(self, server: SimServer) -> None:
        rng = self.world.rng
        wire = Wire(self.world.loop, rng, server.lane, self.lane)
        if self.wire is not None:
            self._left.append(self.wire)
        self.wire = wire
        self.world.loop.call_later(0.01, lambda: server.accept(wire), context=server.lane.context.copy())
        hello: dict[str, Any] = {"type": "hello", "role": self.role, "instance": self.name}
        if rng.random() < 0.3:
            hello["max_in_flight"] = rng.choice((1, 3))
        if self.world.is_settling or rng.random() < 0.8:
            hello["in_flight"] = sorted(self.has)
        wire.say(hello)
        beating = self.do(self._beat(wire))
        try:
            while True:
                kind, what = await wire.to_instance.get()
                if kind != "frame":
                    return
                self._hear(wire, what)
        finally:
            beating.cancel()

    async def _beat(self, wire: Wire) -> None:
        silence = 0
        while silence < SILENCE:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            wire.say({"type": "heartbeat"})
            silence = 0 if wire.answers() else silence + 1
        if self.world.rng.random() < 0.7:  # else it does not end the old one before it opens another
            wire.hang_up()
        wire.to_instance.put_nowait(("broken", None))

    def _hear(self, wire: Wire, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "welcome":
            self.instance_id, self.epoch = frame["instance_id"], frame["epoch"]
            while self.unsaid:
                wire.say(self.unsaid.popleft())
        elif kind == "job_trigger":
            self._take(wire, frame)
        elif kind == "revoke":
            self.has.discard(frame["trigger_id"])
            self.world.history.seen["revoked"] += 1
        elif kind == "error":
            self.world.history.seen[f"told {frame['code']}"] += 1

    def _take(self, wire: Wire, frame: dict[str, Any]) -> None:
        board = self.world.board
        board.deliveries.append(
            Delivery(
                self.world.loop.time(),
                self.label,
                self.instance_id,
                self.epoch,
                frame["trigger_id"],
                frame["job"],
                frame["nominal_at"],
                frame["dedup_key"],
                frame["redelivered"],
            )
        )
        plan = self.world.rng.choice(self.world.plans)
        board.seen[f"trigger {plan}"] += 1
        self.do(self._work(frame, plan, wire))

    async def _work(self, frame: dict[str, Any], plan: str, wire: Wire) -> None:
        rng, trigger_id = self.world.rng, frame["trigger_id"]
        if plan == "deaf":
            return
        await asyncio.sleep(rng.uniform(8.0, 40.0) if plan == "late" else rng.choice((0.0, 0.1, 2.0)))
        self.has.add(trigger_id)
        if plan != "straight":
            self._say({"type": "ack", "trigger_id": trigger_id})
        if plan == "twice":
            self._say({"type": "ack", "trigger_id": trigger_id})
        await self._effect(frame)
        await asyncio.sleep(0.0 if plan == "straight" else rng.choice((0.0, 1.0, 20.0, 90.0)))
        if plan == "holds":
            await asyncio.sleep(rng.choice((200.0, 1_000.0)))
        if plan == "foreign":
            other = rng.choice(self.world.board.deliveries)
            self._say({"type": "result", "trigger_id": other.trigger_id, "status": "failed"})
        result = {
            "type": "result",
            "trigger_id": trigger_id,
            "status": "failed" if plan == "fails" else "succeeded",
        }
        if plan == "stale":  # over connections that are not its own any more, before the one that is
            for each in (wire, *self._left[-2:]):
                self._say(result, over=each)
        self._say(result)
        if plan == "twice":
            self._say(result)
        if plan == "contrary":
            self._say({**result, "status": "failed"})
        self.has.discard(trigger_id)

    def _say(self, frame: dict[str, Any], *, over: Wire | None = None) -> None:
        """Over the present connection; a result that finds none waits for the next."""
        wire = over or self.wire
        if wire is None or (wire.cut and over is None):
            if frame["type"] == "result":
                self.unsaid.append(frame)
        else:
            wire.say(frame)

    async def _effect(self, frame: dict[str, Any]) -> None:
        """What the trigger is for: a task that is to exist once, under the slot's dedup key (IDM-2)."""
        given = {"role": self.role, "title": frame["job"], "dedup_key": frame["dedup_key"]}
        for _ in range(3):
            try:
                made = await self.call(lambda server: server.board.create(CALLER, given))
            except (NoAnswerError, GnomonError):
                await asyncio.sleep(1.0)
                continue
            assert isinstance(made, MadeTask)
            self.world.board.effects.setdefault(frame["dedup_key"], set()).add(made.task.id)
            return
