"""A pooler that takes no settings with a connection: the house works through it all the same (ADR 0049)."""

import asyncio
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.connection import BY_KEY, connect

pytestmark = pytest.mark.anyio
TLS_ASKED = struct.pack("!ii", 8, 80877103)


def refusal(setting: str) -> bytes:
    """What PgBouncer answers to a startup parameter that it does not know."""
    fields = {"S": "FATAL", "C": "08P01", "M": f"unsupported startup parameter: {setting}"}
    body = b"".join(key.encode() + value.encode() + b"\0" for key, value in fields.items()) + b"\0"
    return b"E" + struct.pack("!i", len(body) + 4) + body


class Pooler:
    """Passes on what it understands."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self.refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(8)
        if first == TLS_ASKED:
            writer.write(b"N")
            first = await reader.readexactly(8)
        (length,) = struct.unpack("!i", first[:4])
        asked = first + await reader.readexactly(length - 8)
        unknown = [name for name in BY_KEY if name.encode() in asked]
        if unknown:
            self.refused += 1
            writer.write(refusal(unknown[0]))
            writer.close()
            return
        back, onward = await asyncio.open_connection(*self._server)
        onward.write(asked)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pass_on(reader, onward))
            both.create_task(self._pass_on(back, writer))

    @staticmethod
    async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.close()


@pytest.fixture
async def pooler(postgres_address: Address) -> AsyncIterator[tuple[Pooler, Address]]:
    url = urlsplit(postgres_address.dsn)
    assert url.hostname is not None
    passing = Pooler(url.hostname, url.port or 5432)
    server = await asyncio.start_server(passing.serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    user = url.netloc.rpartition("@")[0]
    yield passing, parse(url._replace(netloc=f"{user}@127.0.0.1:{port}").geturl())
    server.close()


async def test_settings_that_a_pooler_refuses_are_left_out(pooler: tuple[Pooler, Address]) -> None:
    passing, address = pooler
    raw = await connect(address, cached=0)
    assert await raw.fetchval("SHOW enable_seqscan") == "on"
    assert passing.refused == 1
    await raw.close()


async def test_a_server_takes_them(postgres_address: Address) -> None:
    raw = await connect(postgres_address, cached=0)
    for name, value in BY_KEY.items():
        assert await raw.fetchval(f"SHOW {name}") == value
    await raw.close()
