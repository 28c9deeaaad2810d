"""The wakeup over a real server: heard at once, healed when its backend is killed, its own channel for each schema (OPS-1)."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import pytest

from gnomon.adapters.clock import SystemClock
from gnomon.adapters.postgres_server import PostgresServer
from gnomon.domain.errors import Unavailable
from gnomon.ports.wakeup import News
from gnomon.services import announcer
from gnomon.services.announcer import Announcer
from gnomon.stores.postgres import line
from gnomon.stores.postgres.line import channel_of, open_line

BOUND = 10.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path_factory.mktemp("postgres") / "server") as started:
        yield started


@pytest.fixture
async def other(server: PostgresServer) -> AsyncIterator[Any]:
    """A connection that is none of the program's."""
    connection = await asyncpg.connect(server.url)
    yield connection
    await connection.close()


class Process:
    """One end, and what it heard."""

    def __init__(self, url: str, schema: str = "gnomon") -> None:
        self.heard = asyncio.Event()
        self.times = 0
        self.news = News(0)
        self.end = Announcer(partial(open_line, url, schema), SystemClock(), self._on_heard)

    def _on_heard(self, news: News) -> None:
        self.times += 1
        self.news |= news
        self.heard.set()

    async def up(self) -> "Process":
        self.end.start()
        await until(lambda: self.end.connected)
        return self

    async def hears(self) -> None:
        await asyncio.wait_for(self.heard.wait(), BOUND)
        self.heard.clear()


async def until(condition: Callable[[], Any]) -> None:
    pause = asyncio.Event()
    async with asyncio.timeout(BOUND):
        while not condition():
            try:
                await asyncio.wait_for(pause.wait(), 0.005)
            except TimeoutError:
                continue


async def test_another_process_hears_within_fifteen_milliseconds(server: PostgresServer) -> None:
    """P17: what is left of its bound is for the look that follows."""
    a, b = await Process(server.url).up(), await Process(server.url).up()
    took = []
    for _ in range(60):
        began = perf_counter()
        a.end.announce(News.RUN)
        await b.hears()
        took.append(perf_counter() - began)
        await asyncio.wait({asyncio.create_task(asyncio.Event().wait())}, timeout=0.01)
    assert a.times == 0, "its own rings wake nobody"
    assert b.news == News.RUN
    assert sorted(took)[-3] < 0.015
    await a.end.stop()
    await b.end.stop()


async def test_a_killed_listener_is_replaced_and_looks_for_what_it_missed(
    server: PostgresServer, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-1. pg-02."""
    monkeypatch.setattr(announcer, "_FIRST_PAUSE", 0.01)
    a, b = await Process(server.url).up(), await Process(server.url).up()
    killed = await other.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    assert len(killed) == 2
    await b.hears()
    await until(lambda: a.end.connected and b.end.connected)
    b.heard.clear()
    a.end.announce(News.RUN)
    await b.hears()
    await a.end.stop()
    await b.end.stop()


async def test_processes_of_another_schema_are_not_woken(server: PostgresServer) -> None:
    a, b = await Process(server.url, "one").up(), await Process(server.url, "two").up()
    c = await Process(server.url, "one").up()
    a.end.announce(News.RUN)
    await c.hears()
    assert b.times == 0
    for each in (a, b, c):
        await each.end.stop()


async def test_a_ring_without_a_word_may_be_about_anything(server: PostgresServer, other: Any) -> None:
    """As a process of the version before rings."""
    a = await Process(server.url).up()
    await other.execute(f'NOTIFY "{channel_of("gnomon")}"')
    await a.hears()
    assert a.news == News.ANYTHING
    await a.end.stop()


async def test_a_ring_waits_for_no_disk_and_no_standby(server: PostgresServer, other: Any) -> None:
    """With a standby that never answers every other commit would hang. pg-06: the ring is a transaction by itself."""
    a, b = await Process(server.url).up(), await Process(server.url).up()
    await other.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try:
        await other.execute("SELECT pg_reload_conf()")
        for _ in range(3):
            a.end.announce(News.RUN)
            await b.hears()
    finally:
        await other.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await other.execute("SELECT pg_reload_conf()")
    await a.end.stop()
    await b.end.stop()


async def test_a_line_on_which_nothing_comes_knows_it(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-1. pg-05: what listens is found to hear, and a session that lost its LISTEN not to; nobody else is woken."""
    monkeypatch.setattr(line, "TRIAL_SECONDS", 0.05)
    b = await Process(server.url).up()
    good = await open_line(server.url, "gnomon", lambda _: None, lambda: None)
    assert await good.carries()
    add = asyncpg.Connection.add_listener

    async def taken_and_forgotten(connection: Any, channel: str, heard: Any) -> None:
        await add(connection, channel, heard)
        await connection.execute("UNLISTEN *")

    monkeypatch.setattr(asyncpg.Connection, "add_listener", taken_and_forgotten)
    bad = await open_line(server.url, "gnomon", lambda _: None, lambda: None)
    assert not await bad.carries()
    for each in (good, bad):
        await each.close()
    assert b.times == 0
    await b.end.stop()


async def test_a_server_that_is_not_there_is_told_as_unavailable() -> None:
    with pytest.raises(Unavailable, match="reached"):
        await open_line("postgresql://nobody@127.0.0.1:1/none", "gnomon", lambda _: None, lambda: None)


async def test_a_refused_password_is_told_without_it(server: PostgresServer) -> None:
    url = server.shown_url.partition("?")[0].replace("gnomon@", "gnomon:s3cret@")
    with pytest.raises(Unavailable) as caught:
        await open_line(url, "gnomon", lambda _: None, lambda: None)
    assert "password" in caught.value.message
    assert "s3cret" not in caught.value.message


def test_what_is_rung_is_a_few_letters_whatever_happened() -> None:
    """OPS-1. pg-08: no id, no argument, nothing that could grow."""
    told = [News(number).text for number in range(1, News.ANYTHING.value + 1)]
    assert max(map(len, told)) < 100
    assert [News.read(text).text for text in told] == told


def test_nothing_but_the_line_rings() -> None:
    """OPS-1. pg-06: a ring inside of a transaction would hold up everybody's commits."""
    ours = Path(str(files("gnomon")))
    ringing = {
        str(file.relative_to(ours))
        for kind in ("*.py", "*.sql")
        for file in ours.rglob(kind)
        if re.search(r"\bNOTIFY \S|pg_notify\(", file.read_text("utf-8"))
    }
    assert ringing == {"stores/postgres/line.py"}


def test_a_channel_is_a_name_that_postgresql_takes() -> None:
    assert channel_of("gnomon") == "gnomon_gnomon"
    assert len(channel_of("a" * 63)) == 63
