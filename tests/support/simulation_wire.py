"""One connection between a simulated instance and a simulated server: frames in order, each after a while, until it breaks.

The server's end speaks ASGI, so that the product's own conversation runs over it. An end that stands still finds what came
when it goes on. A break may reach one end long before the other, or never: that is what a half-open connection is.
"""

import asyncio
import json
import random
from typing import Any

from support.simulation_loop import Lane, VirtualLoop

HOPS = (0.0, 0.001, 0.004, 0.02, 0.1)
GONE = {"type": "websocket.disconnect", "code": 1006}
Heard = tuple[str, Any]  # ("frame", frame), ("closed", code), ("broken", None)


class Wire:
    """Both ends of one connection."""

    def __init__(self, loop: VirtualLoop, rng: random.Random, server: Lane, instance: Lane) -> None:
        self._loop, self._rng = loop, rng
        self._server, self._instance = server, instance
        self._to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.to_instance: asyncio.Queue[Heard] = asyncio.Queue()
        self._arrival = {server: 0.0, instance: 0.0}
        self.cut = False
        self._put_to_server({"type": "websocket.connect"})

    @property
    def scope(self) -> dict[str, Any]:
        """The ASGI scope of the server's end."""
        return {
            "type": "websocket",
            "path": "/v1/connect",
            "headers": [],
            "extensions": {"gnomon.abort": self.break_off},
        }

    async def receive(self) -> dict[str, Any]:
        """ASGI, for the server's end."""
        return await self._to_server.get()

    async def send(self, message: Any) -> None:
        """ASGI, likewise."""
        if self.cut:
            raise OSError("the connection is broken")
        if message["type"] == "websocket.send":
            self._put_to_instance(("frame", json.loads(message["text"])))
        elif message["type"] == "websocket.close":
            self._put_to_instance(("closed", message["code"]))
            self.cut = True
            self._put_to_server({**GONE, "code": message["code"]}, 2.0)

    def say(self, frame: dict[str, Any]) -> None:
        """A frame of the instance's; over a broken connection it goes nowhere."""
        if not self.cut:
            self._put_to_server({"type": "websocket.receive", "text": json.dumps(frame)})

    def hang_up(self) -> None:
        """The instance ends it; ``cut`` from then on."""
        if not self.cut:
            self.cut = True
            self._put_to_server(dict(GONE))

    def break_off(self, *, server_knows: bool = True, instance_knows: bool = True) -> None:
        """The connection breaks, and each end hears of it or does not."""
        if self.cut:
            return
        self.cut = True
        if server_knows:
            self._put_to_server(dict(GONE))
        if instance_knows:
            self._put_to_instance(("broken", None))

    def answers(self) -> bool:
        """Whether the server's end would answer a ping by now."""
        return not (self.cut or self._server.parked or self._server.dead)

    def _put_to_server(self, message: dict[str, Any], seconds: float = 0.0) -> None:
        self._later(self._server, self._to_server.put_nowait, message, seconds)

    def _put_to_instance(self, heard: Heard) -> None:
        self._later(self._instance, self.to_instance.put_nowait, heard, 0.0)

    def _later(self, lane: Lane, put: Any, what: Any, seconds: float) -> None:
        at = max(self._arrival[lane], self._loop.time() + seconds + self._rng.choice(HOPS))
        self._arrival[lane] = at  # what was said first arrives first
        self._loop.call_at(at, put, what, context=lane.context.copy())
