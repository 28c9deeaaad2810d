"""Servers over one database and the instances connected to them, driven tick by tick: for the pushes of runs.

Everything is the product's but the socket: a ``Hand`` is the far end of one connection, which keeps the frames it gets.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from gnomon.domain.caller import Caller, system
from gnomon.domain.invocation import Usage
from gnomon.domain.push import PushEnd, PushKey
from gnomon.ports.push import Partings, Speaker
from gnomon.services.connections import Connections
from gnomon.services.delivery import Delivery
from gnomon.services.heartbeats import Heartbeats
from gnomon.services.instance_sweep import InstanceSweep
from gnomon.services.instances import Instances
from gnomon.services.mint import Mint
from gnomon.services.pushing import Pushing
from gnomon.services.signal import Signal
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.rows import add_process, add_running, execute

CALLER: Caller = system("test")
TIMEOUT = 120.0
FRAME: dict[str, Any] = {"type": "run_trigger", "query": "go"}


def run_id(number: int = 1) -> str:
    return f"run_{number:020d}"


@dataclass
class Hand:
    """One connection of an instance."""

    server: "Server"
    speaker: Speaker
    revoked: list[PushKey]
    frames: list[dict[str, Any]] = field(default_factory=list)
    parting: Partings | None = None
    stuck: bool = False

    def put(self, text: str) -> bool:
        if self.stuck or self.parting is not None:
            return False
        self.frames.append(json.loads(text))
        return True

    def part(self, parting: Partings) -> None:
        self.parting = self.parting or parting

    def is_stuck(self) -> bool:
        return self.stuck

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The frames of one type."""
        return [frame for frame in self.frames if frame["type"] == kind]

    async def say(self, kind: str, key: PushKey, **fields: Any) -> None:
        """A frame about a push."""
        self.server.connections.note(self.speaker)
        given = {"type": kind, "run_id": key.wire_id, "fence": key.fence, **fields}
        await self.server.connections.hear(self.speaker, given)

    async def leave(self, *, goodbye: bool = False) -> bool:
        """The connection is over, as the edge would tell it."""
        self.server.connections.drop(self.speaker)
        was = await self.server.instances.gone(self.speaker, goodbye=goodbye)
        await self.server.connections.tell_gone(self.speaker.instance_id, self.speaker.epoch)
        return was


@dataclass
class Server:
    """One process that holds connections, and leases too."""

    database: Database
    clock: FrozenClock
    process_id: str = "prc_1"

    async def open(self) -> "Server":
        self.signal = Signal()
        self.connections = Connections()
        self.instances = Instances(
            self.database,
            Mint(self.clock, SeededEntropy(len(self.process_id) + ord(self.process_id[-1]))),
            self.signal,
            self.process_id,
        )
        self.pushing = Pushing(self.database, self.signal)
        self.said: list[tuple[str, int, str]] = []
        self.delivery = Delivery(
            self.database,
            self.signal,
            self.connections,
            lambda *line: self.said.append(line),
            self.process_id,
        )
        self.connections.on("run_ack", self.delivery.acknowledged)
        self.connections.on("run_progress", self.delivery.progressed)
        self.connections.on("run_result", self.delivery.answered)
        self.connections.on_gone(self.delivery.gone)
        self.heartbeats = Heartbeats(self.database, self.connections, self.process_id, 10.0)
        self.sweep = InstanceSweep(self.database, self.signal, self.connections, TIMEOUT, lambda: None)
        await add_process(
            self.database,
            id=self.process_id,
            started_at=self.clock.micros(),
            heartbeat_at=self.clock.micros(),
        )
        return self

    async def beat(self) -> None:
        """The process lives."""
        await execute(
            self.database,
            "UPDATE processes SET heartbeat_at = :at WHERE id = :id",
            at=self.clock.micros(),
            id=self.process_id,
        )

    async def join(
        self, name: str = "a", *, caller: Caller = CALLER, key_id: str | None = None, **hello: Any
    ) -> Hand:
        """An instance connects here."""
        said = {"role": "pm", "instance": name, **hello}
        speaker, revoked = await self.instances.connect(caller, said)
        hand = Hand(self, speaker, revoked)
        assert self.connections.take(speaker, hand, key_id)
        return hand

    def do(
        self, key: PushKey, *, role: str = "pm", patience: float = 60.0, usage: list[Usage] | None = None
    ) -> "asyncio.Task[PushEnd]":
        """An attempt that this process has an instance do."""
        spent = [] if usage is None else usage
        return asyncio.create_task(self.pushing.do(key, role, FRAME, patience, spent.append))

    async def lease(self, number: int = 1, fence: int = 1) -> PushKey:
        """A running run of this process."""
        await add_running(
            self.database,
            id=run_id(number),
            session_id=f"ses_{number:020d}",
            owner=self.process_id,
            fence=fence,
        )
        return PushKey(run_id(number), "", fence)

    async def status(self, key: PushKey) -> str | None:
        """Where a push stands."""
        rows = await execute(
            self.database,
            "SELECT status FROM run_pushes WHERE run_id = :run_id AND node = :node AND fence = :fence",
            run_id=key.run_id,
            node=key.node,
            fence=key.fence,
        )
        return rows[0]["status"] if rows else None

    async def until(self, key: PushKey, *wanted: str) -> None:
        """Tick until a push stands so."""
        for _ in range(200):
            if await self.status(key) in wanted:
                return
            await self.pushing.tick()
            await self.delivery.tick()
        raise AssertionError(f"the push stays {await self.status(key)}, which is none of {wanted}")

    async def end(self, task: "asyncio.Task[PushEnd]") -> PushEnd:
        """Tick until an attempt has ended."""
        for _ in range(200):
            await self.pushing.tick()
            done, _ = await asyncio.wait({task}, timeout=0.005)
            if done:
                return task.result()
        raise AssertionError("the attempt does not end")
