"""What bounds the http runtime: sizes, bombs, floods, hanging and trickling targets (TGT-5, RUN-10)."""

import asyncio
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from gnomon.domain.agent import HttpRuntime
from gnomon.domain.invocation import Deferred, Failing, Limits, Result, TargetFailure
from gnomon.ports.clock import Clock
from gnomon.runtimes.http import HttpTargets
from gnomon.testing.clock import FrozenClock
from support.targets import Answer, Heard, Server, an_invocation, says, serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)
JSON = "application/json"


async def ask(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    secret: str | None = None,
    heard: Heard | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
) -> Result | Deferred:
    targets = HttpTargets(clock or FrozenClock(NOW), allow_private=True)
    invocation = an_invocation(
        limits=limits or Limits(), traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    try:
        return await targets.invoke(HttpRuntime(url, headers or {}), secret, invocation, heard or Heard())
    finally:
        await targets.close()


def against(
    answer: Answer, limits: Limits | None = None, then: Callable[[Server], None] | None = None
) -> Result | Deferred:
    async def scenario() -> Result | Deferred:
        async with serving(answer) as server:
            found = await ask(server.url, limits=limits)
            if then is not None:
                then(server)
            return found

    return asyncio.run(scenario())


def failing(answer: Answer, limits: Limits | None = None) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        against(answer, limits)
    return caught.value


def test_an_answer_past_the_limit_is_not_read_to_its_end_tgt_5() -> None:
    sent = 0

    async def flood(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(1_000):
            writer.write(b"x" * 1_000_000)
            sent += 1
            await writer.drain()

    failure = failing(flood, Limits(output_bytes=1_000))
    assert failure.code is Failing.OUTPUT_TOO_LARGE
    assert not failure.retryable
    assert sent < 100


def test_without_a_limit_there_is_still_a_cap_tgt_5() -> None:
    async def flood(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1_000):
            writer.write(b"x" * 1_000_000)
            await writer.drain()

    assert failing(flood).code is Failing.OUTPUT_TOO_LARGE


def test_a_gzip_bomb_is_counted_as_it_unpacks_tgt_5() -> None:
    pack = zlib.compressobj(9, wbits=31)
    bomb = b"".join(pack.compress(b"\0" * 1_000_000) for _ in range(300)) + pack.flush()
    assert len(bomb) < 400_000
    assert failing(says("200 OK", bomb, Content_Encoding="gzip")).code is Failing.OUTPUT_TOO_LARGE
    tracemalloc.start()
    try:
        failure = failing(says("200 OK", bomb, Content_Encoding="gzip"), Limits(output_bytes=1_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert failure.code is Failing.OUTPUT_TOO_LARGE
    assert peak < 3_000_000  # the answer itself, buffers of sockets; not what it unpacks to


def test_a_flood_of_headers_is_refused() -> None:
    rows = b"".join(b"X-%d: y\r\n" % i for i in range(10_000))
    failure = failing(b"HTTP/1.1 200 OK\r\n" + rows + b"\r\n")
    assert failure.code is Failing.NONSENSE
    endless = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000
    assert failing(endless).code is Failing.NONSENSE


async def hang(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def hang_in_the_body(
    server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
    await reader.read()


async def trickle(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    gone = asyncio.create_task(reader.read())
    while not gone.done():
        writer.write(b"1\r\nx\r\n")
        await asyncio.wait({gone}, timeout=0.005)


@pytest.mark.parametrize("answer", [hang, hang_in_the_body, trickle])
def test_a_cancelled_attempt_closes_its_connection_run_10(
    answer: Callable[[Server, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    """A target that hangs, stops or trickles is ended by the caller's deadline, and notices."""

    async def scenario() -> None:
        async with serving(answer) as server:
            attempt = asyncio.create_task(ask(server.url))
            await asyncio.wait_for(server.came.wait(), 5)
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            await asyncio.wait_for(server.gone.wait(), 5)

    asyncio.run(scenario())
