"""A thousand instances in one process: bare sockets that cost as little as they can, so that the server is measured.

``instances_peers.py PORT COUNT BROADCASTS PACED``: connects, says ``ready``, then tells how long the broadcasts took and
how long each paced frame was under way.
"""

import asyncio
import json
import re
import sys
import time
from typing import cast

import uvloop

_SENT = re.compile(rb'"run_id": ?"([bp])(\d+)"')
_WELCOME = b'"welcome"'


class Peer(asyncio.Protocol):
    """One instance; it reads no frame but the stamps in what comes."""

    def __init__(self, crowd: "Crowd", number: int) -> None:
        self.crowd = crowd
        self.number = number
        self.rest = b""
        self.shaken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its base
        self.transport.write(
            b"GET /v1/connect HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            b"Authorization: Bearer bench\r\n\r\n"
        )

    def say_hello(self) -> None:
        hello = json.dumps({"type": "hello", "role": "pm", "instance": str(self.number)}).encode()
        self.transport.write(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self.shaken:
            self.shaken = True
            self.say_hello()
        data = self.rest + data
        end = 0
        for found in _SENT.finditer(data):
            self.crowd.got(found.group(1), int(found.group(2)), now)
            end = found.end()
        if _WELCOME in data:
            self.crowd.welcomed()
            end = max(end, data.rindex(_WELCOME) + len(_WELCOME))
        self.rest = data[end:][-100:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.lost += 1


class Crowd:
    """All of them, and what they got."""

    def __init__(self, count: int, broadcasts: int, paced: int) -> None:
        self.waiting = count
        self.broadcast_left = count * broadcasts
        self.paced_left = paced
        self.first = 0
        self.late: list[int] = []
        self.lost = 0
        self.ready, self.all_heard, self.all_paced = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def welcomed(self) -> None:
        self.waiting -= 1
        if not self.waiting:
            self.ready.set()

    def got(self, kind: bytes, sent: int, now: int) -> None:
        if kind == b"p":
            self.late.append(now - sent)
            if len(self.late) == self.paced_left:
                self.all_paced.set()
            return
        self.first = min(self.first, sent) if self.first else sent
        self.broadcast_left -= 1
        if not self.broadcast_left:
            self.seconds = (now - self.first) / 1e9
            self.all_heard.set()


async def main(port: int, count: int, broadcasts: int, paced: int) -> None:
    loop, crowd = asyncio.get_running_loop(), Crowd(count, broadcasts, paced)
    for begin in range(0, count, 50):
        await asyncio.gather(
            *(
                loop.create_connection(lambda number=number: Peer(crowd, number), "127.0.0.1", port)  # type: ignore[misc]
                for number in range(begin, min(begin + 50, count))
            )
        )
    await crowd.ready.wait()
    tell(ready=True)
    await crowd.all_heard.wait()
    tell(seconds=crowd.seconds)
    await crowd.all_paced.wait()
    late = sorted(crowd.late)
    at = [late[min(len(late) - 1, int(len(late) * part))] / 1e6 for part in (0.5, 0.99, 1.0)]
    tell(p50=at[0], p99=at[1], most=at[2], lost=crowd.lost)


def tell(**said: object) -> None:
    """One line for whoever started this."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*map(int, sys.argv[1:])))
