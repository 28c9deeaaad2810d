"""Rings between processes: one for many announcements, never in a crowd, heard once, and a line that heals (OPS-1)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from gnomon.adapters.clock import SystemClock
from gnomon.domain.errors import Unavailable
from gnomon.services import announcer
from gnomon.services.announcer import LONGEST_SECONDS, SHORTEST_SECONDS, Announcer, Spacing
from gnomon.services.signal import Signal

BOUND = 5.0


class Exchange:
    """What lies between the processes: lines that a test can break, and how often each was used."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.fail: Exception | None = None
        self.opened = 0

    async def open(self, on_ring: Callable[[], None], on_lost: Callable[[], None]) -> "Line":
        self.opened += 1
        if self.fail is not None:
            raise self.fail
        line = Line(self, on_ring, on_lost)
        self.lines.append(line)
        return line


class Line:
    def __init__(self, exchange: Exchange, on_ring: Callable[[], None], on_lost: Callable[[], None]) -> None:
        self.exchange = exchange
        self.on_ring = on_ring
        self.on_lost = on_lost
        self.rung = 0
        self.checked = 0
        self.closed = False
        self.fail: Exception | None = None
        self.held: asyncio.Event | None = None

    async def ring(self) -> None:
        if self.fail is not None:
            raise self.fail
        self.rung += 1
        for other in self.exchange.lines:
            if other is not self and not other.closed:
                other.on_ring()
        if self.held is not None:
            await self.held.wait()

    async def check(self) -> None:
        self.checked += 1
        if self.fail is not None:
            raise self.fail

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcer, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(announcer, "_LONGEST_PAUSE", 0.004)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110 - lets the others go on: no time has to pass
            await asyncio.sleep(0)


def process(exchange: Exchange) -> tuple[Announcer, list[int]]:
    heard: list[int] = []
    return Announcer(exchange.open, SystemClock(), lambda: heard.append(1)), heard


async def both(exchange: Exchange) -> tuple[Announcer, list[int], Announcer, list[int]]:
    (a, heard_a), (b, heard_b) = process(exchange), process(exchange)
    a.start()
    b.start()
    await until(lambda: a.connected and b.connected)
    return a, heard_a, b, heard_b


async def test_what_one_announces_the_others_hear_and_it_itself_does_not(exchange: Exchange) -> None:
    a, heard_a, b, heard_b = await both(exchange)
    a.announce()
    await until(lambda: heard_b)
    assert heard_a == []
    await a.stop()
    await b.stop()
    assert all(line.closed for line in exchange.lines)


async def test_a_thousand_announcements_at_once_are_two_rings_at_most(exchange: Exchange) -> None:
    a, _, b, heard_b = await both(exchange)
    for _ in range(1_000):
        a.announce()
    await until(lambda: heard_b)
    await a.stop()
    await b.stop()
    assert 1 <= exchange.lines[0].rung <= 2


async def test_one_ring_is_under_way_at_a_time_and_what_comes_meanwhile_is_the_next(
    exchange: Exchange,
) -> None:
    a, _ = process(exchange)
    a.start()
    await until(lambda: a.connected)
    line = exchange.lines[0]
    line.held = asyncio.Event()
    a.announce()
    await until(lambda: line.rung == 1)
    for _ in range(10):
        a.announce()
        await asyncio.sleep(0)
    assert line.rung == 1
    line.held.set()
    await until(lambda: line.rung == 2)
    await a.stop()
    assert line.rung == 2


async def test_a_process_that_only_tells_needs_no_start_and_tells_before_it_goes(exchange: Exchange) -> None:
    b, heard_b = process(exchange)
    b.start()
    await until(lambda: b.connected)
    a, _ = process(exchange)
    a.announce()
    await a.stop()
    await until(lambda: heard_b)
    await b.stop()


async def test_a_process_that_never_tells_nor_listens_opens_nothing(exchange: Exchange) -> None:
    a, _ = process(exchange)
    await a.stop()
    assert exchange.opened == 0
    a.announce()
    await asyncio.sleep(0)
    assert exchange.opened == 0, "after the stop nothing is opened any more"


async def test_a_lost_line_is_opened_again_and_what_may_have_been_missed_is_looked_for(
    exchange: Exchange,
) -> None:
    a, heard_a, b, _ = await both(exchange)
    exchange.lines[0].on_lost()
    await until(lambda: len(exchange.lines) == 3 and a.connected)
    assert heard_a == [1]
    assert exchange.lines[0].closed
    b.announce()
    await until(lambda: len(heard_a) == 2)
    await a.stop()
    await b.stop()


async def test_a_ring_that_failed_is_rung_on_the_next_line(exchange: Exchange) -> None:
    a, _, b, heard_b = await both(exchange)
    exchange.lines[0].fail = Unavailable("gone")
    a.announce()
    await until(lambda: heard_b)
    assert exchange.lines[2].rung == 1
    await a.stop()
    await b.stop()


async def test_an_exchange_that_is_down_is_tried_again_and_told_once(exchange: Exchange) -> None:
    exchange.fail = Unavailable("no server")
    a, heard = process(exchange)
    with capture_logs() as logs:
        a.start()
        await until(lambda: exchange.opened >= 4)
        exchange.fail = None
        await until(lambda: a.connected)
    assert [entry["event"] for entry in logs] == ["wakeup_line_down", "wakeup_line_up"]
    assert heard == [1]
    await a.stop()


async def test_an_error_of_an_unknown_kind_ends_no_listening(exchange: Exchange) -> None:
    exchange.fail = RuntimeError("a bug in a driver")
    a, _ = process(exchange)
    a.start()
    await until(lambda: exchange.opened >= 2)
    exchange.fail = None
    await until(lambda: a.connected)
    await a.stop()


async def test_the_stop_does_not_wait_for_an_exchange_that_is_down(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "FLUSH_SECONDS", 0.01)

    async def hangs(*_: object) -> Any:
        await asyncio.Event().wait()

    a = Announcer(hangs, SystemClock(), lambda: None)
    a.announce()
    async with asyncio.timeout(BOUND):
        await a.stop()


async def test_a_line_that_died_without_a_word_is_found_out(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "CHECK_SECONDS", 0.002)
    a, _ = process(exchange)
    a.start()
    await until(lambda: exchange.lines and exchange.lines[0].checked > 1)
    exchange.lines[0].fail = Unavailable("silence")
    await until(lambda: len(exchange.lines) == 2)
    await a.stop()


async def test_rings_that_come_in_a_crowd_are_heard_together(exchange: Exchange) -> None:
    a, heard = process(exchange)
    a.start()
    await until(lambda: a.connected)
    ring = exchange.lines[0].on_ring
    ring()
    assert heard == [1], "at once after quiet"
    for _ in range(100):
        ring()
    assert heard == [1]
    await until(lambda: heard == [1, 1])
    await a.stop()


def test_spacing_is_short_after_quiet_and_grows_in_a_crowd_up_to_its_bound() -> None:
    spacing, now = Spacing(), 100.0
    assert spacing.wait(now) == 0
    gaps = []
    for _ in range(8):
        spacing.passed(now)
        gaps.append(spacing.wait(now))
        now += gaps[-1]
    assert gaps[0] == pytest.approx(SHORTEST_SECONDS)
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(LONGEST_SECONDS)
    now += 3 * LONGEST_SECONDS
    assert spacing.wait(now) == 0
    spacing.passed(now)
    assert spacing.wait(now) == pytest.approx(SHORTEST_SECONDS)


async def test_a_signal_announces_what_is_notified_and_not_what_only_wakes() -> None:
    told: list[int] = []
    signal = Signal(lambda: told.append(1))
    waiting: Awaitable[int] = asyncio.ensure_future(signal.wait(0, BOUND))
    await asyncio.sleep(0)
    signal.wake()
    assert (await waiting, told) == (1, [])
    signal.notify()
    assert (signal.version, told) == (2, [1])
