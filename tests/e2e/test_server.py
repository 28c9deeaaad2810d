"""Our own server: listening before work, stopping in order, and no 40 ms in a kept-alive connection (DSP-1, DSP-10)."""

import asyncio
import socket
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import perf_counter

import pytest
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from gnomon.edges.server import PortInUse, Server, listen
from support import programs

BOUND = 10.0


class Product:
    """Stands for the work behind the server, and writes down what it was asked in which order."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.at_start: Callable[[], Awaitable[None]] | None = None
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.draining = asyncio.Event()
        self.up = asyncio.Event()

    async def start(self) -> None:
        if self.at_start is not None:
            await self.at_start()
        self.steps.append("start")
        self.up.set()

    async def drain(self) -> None:
        self.steps.append("drain")
        self.draining.set()
        await self.may_end.wait()
        self.steps.append("drained")

    async def stop(self) -> None:
        self.steps.append("stop")


async def served(app: FastAPI, product: Product) -> tuple[Server, "asyncio.Task[None]", int]:
    sockets = listen("127.0.0.1", 0)
    server = Server(app, started=product.start, drain=product.drain, stopped=product.stop)
    task = asyncio.create_task(server.serve(sockets=sockets))
    return server, task, sockets[0].getsockname()[1]


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> bytes:
    """One POST over a kept-alive connection, head and body in two writes, as most clients send them."""
    writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
    await writer.drain()
    writer.write(body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    return await reader.readexactly(int(length.split(b":")[1]))


def echo_app() -> FastAPI:
    app = FastAPI()

    @app.post("/echo")
    async def echo() -> dict[str, str]:
        return {"a": "b" * 100}

    return app


def test_a_kept_alive_post_does_not_wait_for_a_delayed_acknowledgement() -> None:
    """Finding 6 of the library trials: about 44 ms each where the listening socket has no protocol."""

    async def scenario() -> float:
        product = Product()
        server, task, port = await served(echo_app(), product)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        times = []
        for _ in range(20):
            begun = perf_counter()
            await request(reader, writer, b"{}")
            times.append(perf_counter() - begun)
        writer.close()
        server.should_exit = True
        await asyncio.wait_for(task, BOUND)
        return statistics.median(times)

    assert asyncio.run(scenario()) < 0.02


def test_the_work_starts_only_when_the_sockets_answer() -> None:
    """DSP-1."""

    async def scenario() -> list[str]:
        product = Product()
        answers: list[bytes] = []

        async def ask() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            answers.append(await asyncio.wait_for(request(reader, writer, b"{}"), BOUND))
            writer.close()

        product.at_start = ask
        server, task, port = await served(echo_app(), product)
        await asyncio.wait_for(product.up.wait(), BOUND)
        assert len(answers) == 1
        server.should_exit = True
        await asyncio.wait_for(task, BOUND)
        return product.steps

    assert asyncio.run(scenario()) == ["start", "drain", "drained", "stop"]


def test_work_that_can_not_start_ends_the_server_and_is_let_go_of() -> None:
    async def scenario() -> list[str]:
        product = Product()

        async def fail() -> None:
            raise RuntimeError("no")

        product.at_start = fail
        _, task, _ = await served(echo_app(), product)
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(task, BOUND)
        return product.steps

    assert asyncio.run(scenario()) == ["stop"]


def test_while_it_drains_nobody_new_comes_in_and_a_websocket_lives_on() -> None:
    """DSP-10: an instance at work answers over the socket it holds, so that has to outlive the drain."""
    from websockets.asyncio.client import connect

    app = FastAPI()

    @app.websocket("/ws")
    async def talk(ws: WebSocket) -> None:
        await ws.accept()
        with suppress(WebSocketDisconnect):
            while True:
                await ws.send_text(await ws.receive_text())

    async def scenario() -> list[str]:
        product = Product()
        product.may_end.clear()
        server, task, port = await served(app, product)
        await asyncio.wait_for(product.up.wait(), BOUND)
        async with connect(f"ws://127.0.0.1:{port}/ws") as ws:
            server.should_exit = True
            await asyncio.wait_for(product.draining.wait(), BOUND)
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)
            await ws.send("still here")
            assert await asyncio.wait_for(ws.recv(), BOUND) == "still here"
            product.may_end.set()
            await asyncio.wait_for(ws.wait_closed(), BOUND)
            assert ws.close_code == 1012
        await asyncio.wait_for(task, BOUND)
        return product.steps

    assert asyncio.run(scenario()) == ["start", "drain", "drained", "stop"]


def test_an_endless_event_stream_does_not_hold_up_the_stop() -> None:
    app = FastAPI()

    @app.get("/events")
    async def events() -> StreamingResponse:
        async def forever() -> AsyncIterator[bytes]:
            yield b": hello\n\n"
            await asyncio.Event().wait()

        return StreamingResponse(forever(), media_type="text/event-stream")

    async def scenario() -> float:
        product = Product()
        server, task, port = await served(app, product)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"hello"), BOUND)
        begun = perf_counter()
        server.should_exit = True
        await asyncio.wait_for(task, BOUND)
        writer.close()
        return perf_counter() - begun

    assert asyncio.run(scenario()) < 5


def test_a_port_in_use_is_told_in_one_line_with_the_way_out() -> None:
    (first,) = listen("127.0.0.1", 0)
    port = first.getsockname()[1]
    try:
        with pytest.raises(PortInUse, match=f"Port {port} on 127.0.0.1 is in use.*--port"):
            listen("127.0.0.1", port)
    finally:
        first.close()


@pytest.mark.parametrize("host", ["no-such-name.invalid", "192.0.2.1"])
def test_a_host_that_is_not_this_machine_is_told(host: str) -> None:
    with pytest.raises(PortInUse, match="no address of this machine"):
        listen(host, 0)


def test_every_address_of_a_name_is_bound_on_one_port_with_nodelay() -> None:
    sockets = listen("localhost", 0)
    try:
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
        for sock in sockets:
            assert sock.proto == socket.IPPROTO_TCP
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        for sock in sockets:
            sock.close()


STUBBORN = """
    import asyncio, sys
    from gnomon.edges.server import to_its_end

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                print("no", flush=True)

    async def orderly():
        try:
            await asyncio.sleep(60)
        finally:
            print("going", flush=True)

    async def main():
        tasks.update({asyncio.create_task(orderly()), *(asyncio.create_task(stubborn()) for _ in range(int(sys.argv[1])))})
        await asyncio.sleep(0)

    tasks = set()
    asyncio.run(to_its_end(main()))
    print("ended by itself")
"""


@pytest.mark.process
@pytest.mark.parametrize(("stubborn", "said"), [(0, {"going", "ended by itself"}), (1, {"going", "no"})])
def test_a_task_that_ignores_its_cancel_keeps_no_process_alive(stubborn: int, said: set[str]) -> None:
    """DSP-10: after the grace what is left is left to its lease, whatever a target does."""
    ended = programs.run(STUBBORN, stubborn)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert said == {line for line in lines if line in {"going", "no", "ended by itself"}}
