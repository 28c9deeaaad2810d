"""A whole server in this process on a real port, and instances that connect to it with the ``websockets`` library."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gnomon.edges.server import Server, listen
from gnomon.services.connections import Connections
from gnomon.settings import Settings
from gnomon.wiring import Center, open_center

BOUND = 15.0
OPERATOR = "the operator of these tests"
ROLE = "pm"


class Peer:
    """One connection of an instance."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.welcome: dict[str, Any] = {}

    async def say(self, kind: str, **fields: Any) -> None:
        """Send a frame."""
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def frame(self, *kinds: str) -> dict[str, Any]:
        """The next frame of one of these types, or of any."""
        async with asyncio.timeout(BOUND):
            while True:
                found: dict[str, Any] = json.loads(await self.socket.recv())
                if not kinds or found["type"] in kinds:
                    return found

    async def closed(self) -> int | None:
        """Read until the connection ends; the code that the server gave."""
        async with asyncio.timeout(BOUND):
            with suppress(ConnectionClosed):
                while True:
                    await self.socket.recv()
        return self.socket.close_code

    async def work(self, output: str = "done") -> dict[str, Any]:
        """Take the next run and do it; its trigger."""
        frame = await self.frame("run_trigger")
        named = {"run_id": frame["run_id"], "fence": frame["fence"]}
        await self.say("run_ack", **named)
        await self.say("run_result", **named, status="succeeded", output=output)
        return frame


class World:
    """The server."""

    def __init__(self, center: Center, server: Server, serving: "asyncio.Task[None]", port: int) -> None:
        self.center = center
        self.connections: Connections = center.app.state.connections
        self.port = port
        self._server = server
        self._serving = serving
        self.http = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {OPERATOR}"},
            timeout=BOUND,
        )

    def stop(self) -> "asyncio.Task[None]":
        """Ask the server to stop, as a signal would; the task ends with it."""
        self._server.should_exit = True
        return self._serving

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/connect"

    @asynccontextmanager
    async def socket(self, key: str = OPERATOR, **options: Any) -> AsyncIterator[Peer]:
        """A connection that has not said hello."""
        headers = {"Authorization": f"Bearer {key}", **options.pop("headers", {})}
        async with connect(self.url, additional_headers=headers, compression=None, **options) as socket:
            yield Peer(socket)

    @asynccontextmanager
    async def instance(self, name: str = "a", *, key: str = OPERATOR, **hello: Any) -> AsyncIterator[Peer]:
        """An instance that was welcomed."""
        options = {option: hello.pop(option) for option in ("ping_interval", "max_queue") if option in hello}
        async with self.socket(key, **options) as peer:
            await peer.say("hello", **{"role": ROLE, "instance": name, **hello})
            peer.welcome = await peer.frame("welcome")
            yield peer

    async def key(self, *scopes: str, **fields: Any) -> str:
        """A key's text."""
        answer = await self.http.post("/v1/keys", json={"scopes": list(scopes), **fields})
        text: str = answer.json()["key"]
        return text

    async def instances(self) -> list[dict[str, Any]]:
        """Every instance, as the API shows it."""
        items: list[dict[str, Any]] = (await self.http.get("/v1/instances")).json()["items"]
        return items

    async def agent(self, slug: str = "hand", **fields: Any) -> None:
        """An agent that is an instance of the role."""
        body = {"slug": slug, "name": slug, "runtime": {"kind": "role", "role": ROLE}, **fields}
        assert (await self.http.post("/v1/agents", json=body)).status_code == 201

    async def run(self, target: str = "hand", kind: str = "agent", **fields: Any) -> str:
        """A run of an agent or a team, by a schedule of its own; its path."""
        body = {
            "name": target,
            "target": {"kind": kind, "id": target},
            "cadence": {"unit": "hour"},
            "query": "go",
            **fields,
        }
        made = await self.http.post("/v1/schedules", json=body)
        assert made.status_code == 201, made.text
        answer = await self.http.post(f"/v1/schedules/{made.json()['id']}/run")
        assert answer.status_code == 202, answer.text
        location: str = answer.headers["location"]
        return location

    async def ended(self, path: str) -> dict[str, Any]:
        """A run once it is over, followed by its stream."""
        async with asyncio.timeout(BOUND), self.http.stream("GET", f"{path}/events") as stream:
            async for _ in stream.aiter_lines():
                pass
        found: dict[str, Any] = (await self.http.get(path)).json()
        return found

    async def until(self, wanted: Any) -> Any:
        """Look at the instances until ``wanted`` finds something; what it found."""
        async with asyncio.timeout(BOUND):
            seen = self.center._link.signal.version
            while not (found := wanted(await self.instances())):
                seen = await self.center._link.signal.wait(seen, 0.05)
            return found


@asynccontextmanager
async def a_world(folder: Path, **settings: Any) -> AsyncIterator[World]:
    """A server that is stopped at the end."""
    center = await open_center(
        Settings(database_url=f"sqlite:///{folder / 'gnomon.db'}", **settings), operator_token=OPERATOR
    )
    sockets = listen("127.0.0.1", 0)
    up = asyncio.Event()

    async def started() -> None:
        await center.start()
        up.set()

    server = Server(
        center.app,
        started=started,
        drain=center.drain,
        stopped=center.stop,
        ping_seconds=center_ping(settings),
    )
    task = asyncio.create_task(server.serve(sockets=sockets))
    await up.wait()
    world = World(center, server, task, sockets[0].getsockname()[1])
    try:
        yield world
    finally:
        await world.http.aclose()
        await world.stop()


def center_ping(settings: dict[str, Any]) -> float:
    """How often peers are asked for a sign of life."""
    return float(settings.get("heartbeat_seconds", 10))


def only(items: Iterable[dict[str, Any]], **fields: Any) -> dict[str, Any] | None:
    """The one record with these fields."""
    found = [item for item in items if all(item[name] == value for name, value in fields.items())]
    return found[0] if len(found) == 1 else None
