"""Servers over one database and the instances connected to them, driven tick by tick on a frozen clock.

Everything is the product's but the socket: an instance here is the other end of a connection, which keeps the frames it
gets and says what a test lets it say.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gnomon.domain.caller import Caller, system
from gnomon.domain.job import Job
from gnomon.ports.push import Partings, Speaker
from gnomon.services.connections import Connections
from gnomon.services.job_engine import JobEngine
from gnomon.services.jobs import Jobs
from gnomon.services.mint import Mint
from gnomon.services.signal import Signal
from gnomon.stores import instances
from gnomon.stores.database import Database, Row
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support.house import rows
from support.rows import add_process

CALLER: Caller = system("test")
EVERY_FIVE_MINUTES: dict[str, Any] = {
    "slug": "digest",
    "role": "pm",
    "cadence": {"unit": "minute", "every": 5},
    "dedup_key": "{{job}}-{{now}}",
    "payload": {"repo": "a/b"},
}


@dataclass
class Worker:
    """One instance: the far end of its present connection."""

    server: "Server"
    speaker: Speaker
    frames: list[dict[str, Any]] = field(default_factory=list)
    done: list[dict[str, Any]] = field(default_factory=list)  # triggers that it has acknowledged and ended
    parting: Partings | None = None
    reads: bool = True  # or its buffer is full

    def put(self, text: str) -> bool:
        """See ``ports.push.Link``."""
        if not self.reads or self.parting is not None:
            return False
        self.frames.append(json.loads(text))
        return True

    def part(self, parting: Partings) -> None:
        """See ``ports.push.Link``."""
        self.parting = parting

    def is_stuck(self) -> bool:
        """See ``ports.push.Link``."""
        return not self.reads

    @property
    def pushes(self) -> list[dict[str, Any]]:
        """The triggers that came, in order."""
        return [frame for frame in self.frames if frame["type"] == "job_trigger"]

    async def say(self, kind: str, **fields: Any) -> None:
        """A frame of the instance's."""
        await self.server.connections.hear(self.speaker, {"type": kind, **fields})

    async def acknowledge(self, trigger_id: str | None = None) -> None:
        """Acknowledge a trigger, the last one that came."""
        await self.say("ack", trigger_id=trigger_id or self.pushes[-1]["trigger_id"])

    async def finish(self, trigger_id: str | None = None, status: str = "succeeded", **more: Any) -> None:
        """End a trigger, the last one that came."""
        await self.say(
            "result", trigger_id=trigger_id or self.pushes[-1]["trigger_id"], status=status, **more
        )

    async def work(self) -> None:
        """Do everything that came."""
        for push in self.pushes:
            await self.acknowledge(push["trigger_id"])
            await self.finish(push["trigger_id"])
            self.done.append(push)
        self.frames.clear()

    async def end(self) -> None:
        """The connection breaks, and the server notices."""
        speaker = self.speaker
        self.server.connections.drop(speaker)
        await self.server.database.write(
            lambda tx: instances.gone(
                tx, self.server.process_id, speaker.instance_id, speaker.epoch, goodbye=False
            )
        )
        await self.server.connections.tell_gone(speaker.instance_id, speaker.epoch)


@dataclass
class Server:
    """One process: it makes triggers and sends them over the connections that it holds."""

    database: Database
    clock: FrozenClock
    mint: Mint
    process_id: str = ""
    may_claim: bool = True

    async def open(self) -> "Server":
        """Build it, and write its row."""
        self.process_id = self.mint.process()
        self.connections = Connections()
        self.signal = Signal()
        self.engine = JobEngine(
            database=self.database,
            connections=self.connections,
            mint=self.mint,
            signal=self.signal,
            process_id=self.process_id,
            heartbeat_timeout_seconds=120,
            may_claim=lambda: self.may_claim,
            calm_us=lambda: None,
        )
        self.jobs = Jobs(self.database, self.mint, self.signal)
        await add_process(self.database, id=self.process_id, heartbeat_at=self.clock.micros())
        return self

    async def neighbour(self, seed: int = 99, database: Database | None = None) -> "Server":
        """Another one over the same database."""
        mint = Mint(self.clock, SeededEntropy(seed))
        return await Server(database or self.database, self.clock, mint).open()

    async def job(self, **changes: Any) -> Job:
        """A job of every five minutes."""
        made = await self.jobs.create(CALLER, {**EVERY_FIVE_MINUTES, **changes})
        assert isinstance(made, Job)
        return made

    async def connect(
        self, name: str = "a", *, role: str = "pm", room: int = 10, in_flight: Iterable[Any] | None = ()
    ) -> Worker:
        """An instance connects and says hello."""
        row = await self.database.write(
            lambda tx: instances.connect(
                tx,
                f"ins_{role}_{name}",
                role,
                name,
                server=self.process_id,
                version=None,
                max_in_flight=room,
            )
        )
        worker = Worker(self, Speaker(row["id"], role, name, row["epoch"]))
        assert self.connections.take(worker.speaker, worker)
        hello: dict[str, Any] = {"type": "hello"}
        if in_flight is not None:
            hello["in_flight"] = list(in_flight)
        await self.connections.tell_hello(worker.speaker, hello)
        return worker

    async def tick(self) -> float | None:
        """One tick of the jobs, and one of the delivery; when the next of the jobs is asked for."""
        wait = await self.engine.dispatcher.tick()
        await self.engine.delivery.tick()
        return wait

    async def triggers(self) -> list[Row]:
        """Every trigger, by slot."""
        return await rows(self.database, "SELECT * FROM triggers ORDER BY nominal_fire_at, id")

    async def trigger(self) -> Row:
        """The only one."""
        (found,) = await self.triggers()
        return found

    async def audit(self, action: str) -> list[Row]:
        """The audit's entries of one action."""
        return await rows(
            self.database, "SELECT * FROM audit_entries WHERE action = :action ORDER BY seq", action=action
        )
