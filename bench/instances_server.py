"""One server of the bench, in a process of its own: ``gnomon``, or ``raw``, the ``websockets`` library with nothing around it.

It says where it listens, then does what each line of its standard input asks: ``memory``, ``broadcast COUNT``,
``pace SECONDS``; and answers each with one line of JSON.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import psutil
import uvloop
from websockets.asyncio.server import ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed

A_SECOND = 1_000  # frames
PADDING = "x" * 150
OPERATOR = "bench"
SendAll = Callable[[str], Awaitable[None]]
SendOne = Callable[[int, str], Awaitable[None]]


def stamped(kind: str) -> str:
    """A frame that says when it was sent, on the clock that all processes of a machine share.

    It is written as the product writes it, so that both servers send the same bytes.
    """
    return json.dumps(
        {"type": "revoke", "run_id": f"{kind}{time.monotonic_ns()}", "fence": 1, "padding": PADDING},
        separators=(",", ":"),
    )


@asynccontextmanager
async def gnomon(folder: Path) -> AsyncIterator[tuple[int, SendAll, SendOne]]:
    """The product's server with its engine, on a fresh file."""
    from gnomon.adapters import logs
    from gnomon.edges.server import Server, listen
    from gnomon.settings import Settings
    from gnomon.wiring import open_center

    logs.configure(level="warning", as_json=True)
    settings = Settings(database_url=f"sqlite:///{folder / 'gnomon.db'}")
    center = await open_center(settings, operator_token=OPERATOR)
    sockets, up = listen("127.0.0.1", 0), asyncio.Event()

    async def started() -> None:
        await center.start()
        up.set()

    server = Server(center.app, started=started, drain=center.drain, stopped=center.stop)
    task = asyncio.create_task(server.serve(sockets=sockets))
    await up.wait()
    connections = center.app.state.connections
    there = cache(connections.speakers)  # of the first paced frame: nobody comes or goes after it

    async def send_all(text: str) -> None:
        to = [(speaker.instance_id, speaker.epoch) for speaker in connections.speakers()]
        assert await connections.send_all(to, json.loads(text)) == len(to)
        await asyncio.sleep(0)

    async def send_one(number: int, text: str) -> None:
        speaker = there()[number % len(there())]
        assert await connections.send(speaker.instance_id, speaker.epoch, json.loads(text))

    yield sockets[0].getsockname()[1], send_all, send_one
    server.should_exit = True
    await task


@asynccontextmanager
async def raw(_folder: Path) -> AsyncIterator[tuple[int, SendAll, SendOne]]:
    """The library's own server: a set of connections, and its broadcast."""
    there: list[ServerConnection] = []

    async def talk(socket: ServerConnection) -> None:
        there.append(socket)
        await socket.send('{"type": "welcome"}')
        with suppress(ConnectionClosed):
            async for _ in socket:
                pass

    async def send_all(text: str) -> None:
        broadcast(there, text)
        await asyncio.sleep(0)

    async def send_one(number: int, text: str) -> None:
        await there[number % len(there)].send(text)

    async with serve(talk, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        yield server.sockets[0].getsockname()[1], send_all, send_one


async def pace(seconds: float, send_one: SendOne) -> None:
    """So many frames a second, each to the next connection; one that comes late is not made up for by a burst."""
    began = time.monotonic()
    for number in range(round(seconds * A_SECOND)):
        wait = began + number / A_SECOND - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        await send_one(number, stamped("p"))


async def main(kind: str) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb")
    )
    with tempfile.TemporaryDirectory() as name:
        async with {"gnomon": gnomon, "raw": raw}[kind](Path(name)) as (port, send_all, send_one):
            answer(port=port)
            while line := (await reader.readline()).decode().split():
                if line[0] == "memory":
                    answer(memory=psutil.Process().memory_info().rss)
                elif line[0] == "broadcast":
                    began = time.process_time()
                    for _ in range(int(line[1])):
                        await send_all(stamped("b"))
                    answer(sent=int(line[1]), cpu=time.process_time() - began)
                else:
                    await pace(float(line[1]), send_one)
                    answer(sent=line[1])


def answer(**said: object) -> None:
    """One line for whoever asked."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1]))
