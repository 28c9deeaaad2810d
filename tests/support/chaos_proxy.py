"""A TCP proxy that lies: before a database server it drops replies, cuts the line at a commit, or holds it open in silence.

It runs on a thread of its own. Knows bytes and nothing of what they mean, but for the word that ends a transaction.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from types import TracebackType
from typing import Self

BOUND_SECONDS = 10.0


class Mode(StrEnum):
    """What happens to what passes.

    ``deaf`` swallows replies, and the connections that lost one never hear anything again; ``hold`` moves nothing in
    either direction; ``cut`` lets a COMMIT through and closes before its answer.
    """

    PASS = "pass"
    DEAF = "deaf"
    HOLD = "hold"
    CUT = "cut"


class FaultProxy:
    """One listening port before one server."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._mode = Mode.PASS
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._listening = threading.Event()
        self.port = 0
        self.done: Counter[str] = Counter()  # what was swallowed, held and cut

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(BOUND_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(BOUND_SECONDS)

    def turn(self, mode: Mode) -> None:
        """From now on."""
        self._call(lambda: self._turn(mode))

    def cut_all(self) -> None:
        """Close every connection at once."""
        self._call(lambda: list(map(asyncio.StreamWriter.close, self._open)))

    def _call(self, what: Callable[[], object]) -> None:
        done = threading.Event()

        def do() -> None:
            what()
            done.set()

        self._loop.call_soon_threadsafe(do)
        assert done.wait(BOUND_SECONDS)

    def _turn(self, mode: Mode) -> None:
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end(server))
        self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        """Let go of every connection, also of those that are only just being made."""
        for (
            listening
        ) in server.sockets:  # a server that is closed drops what it has accepted, and leaves it open
            self._loop.remove_reader(listening)
        self._over = True
        self._turn(Mode.PASS)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for writer in self._open:
                writer.transport.abort()
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        await asyncio.sleep(0)  # the sockets themselves are closed a step later

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = [writer]
        try:
            back_reader, back = await asyncio.open_connection(*self._target)
            made.append(back)
            self._open.update(made)
            if not self._over:
                line = _Line(self, writer, back)
                await asyncio.gather(line.up(reader), line.down(back_reader))
        except OSError:
            pass
        finally:
            for each in made:
                self._open.discard(each)
                each.close()

    async def held(self, name: str) -> None:
        """Return as soon as something may move."""
        while self._mode is Mode.HOLD:
            self.done[name] += 1
            await self._changed.wait()

    @property
    def mode(self) -> Mode:
        """What is done at present."""
        return self._mode


class _Line:
    """One connection through the proxy."""

    def __init__(self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._deaf = False

    async def up(self, reader: asyncio.StreamReader) -> None:
        """From the client to the server."""
        while data := await reader.read(65_536):
            await self._proxy.held("held requests")
            self._server.write(data)
            await self._server.drain()
            if self._proxy.mode is Mode.CUT and b"COMMIT" in data:
                self._proxy.done["cut commits"] += 1
                self._client.transport.abort()
        self._server.close()

    async def down(self, reader: asyncio.StreamReader) -> None:
        """From the server to the client."""
        while data := await reader.read(65_536):
            await self._proxy.held("held replies")
            if self._deaf or self._proxy.mode is Mode.DEAF:
                self._deaf = True
                self._proxy.done["swallowed replies"] += 1
                continue
            with suppress(OSError):
                self._client.write(data)
                await self._client.drain()
        self._client.close()
