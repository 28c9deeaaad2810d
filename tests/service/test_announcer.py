"""Rings between processes: one for many announcements, never in a crowd, heard once, and a line that heals (OPS-1)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from gnomon.adapters.clock import SystemClock
from gnomon.domain.errors import Unavailable
from gnomon.ports.wakeup import News
from gnomon.services import announcer
from gnomon.services.announcer import LONGEST_SECONDS, SHORTEST_SECONDS, Announcer, Pacing, Spacing
from gnomon.services.signal import Signal
from gnomon.testing.clock import FrozenClock
from support.databases import START

BOUND, RUN = 5.0, News.RUN


class Exchange:
    """What lies between the processes: lines that a test can break, and how often each was used."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.fail: Exception | None = None
        self.deaf = False
        self.opened = 0

    async def open(self, on_ring: Callable[[str], None], on_lost: Callable[[], None]) -> "Line":
        self.opened += 1
        if self.fail is not None:
            raise self.fail
        line = Line(self, on_ring, on_lost)
        self.lines.append(line)
        return line


class Line:
    def __init__(
        self, exchange: Exchange, on_ring: Callable[[str], None], on_lost: Callable[[], None]
    ) -> None:
        self.exchange = exchange
        self.on_ring = on_ring
        self.on_lost = on_lost
        self.rung = 0
        self.texts: list[str] = []
        self.checked = 0
        self.closed = False
        self.fail: Exception | None = None
        self.held: asyncio.Event | None = None
        self.deaf = exchange.deaf

    async def carries(self) -> bool:
        return not self.deaf

    async def ring(self, text: str) -> None:
        if self.fail is not None:
            raise self.fail
        self.rung += 1
        self.texts.append(text)
        for other in self.exchange.lines:
            if other is not self and not other.closed:
                other.on_ring(text)
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


def process(exchange: Exchange) -> tuple[Announcer, list[News]]:
    heard: list[News] = []
    return Announcer(exchange.open, SystemClock(), heard.append), heard


async def both(exchange: Exchange) -> tuple[Announcer, list[News], Announcer, list[News]]:
    (a, heard_a), (b, heard_b) = process(exchange), process(exchange)
    a.start()
    b.start()
    await until(lambda: a.connected and b.connected)
    return a, heard_a, b, heard_b


async def test_what_one_announces_the_others_hear_and_it_itself_does_not(exchange: Exchange) -> None:
    a, heard_a, b, heard_b = await both(exchange)
    a.announce(RUN)
    await until(lambda: heard_b)
    assert heard_a == []
    await a.stop()
    await b.stop()
    assert all(line.closed for line in exchange.lines)


async def test_a_thousand_announcements_at_once_are_two_rings_at_most(exchange: Exchange) -> None:
    a, _, b, heard_b = await both(exchange)
    for _ in range(1_000):
        a.announce(RUN)
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
    a.announce(RUN)
    await until(lambda: line.rung == 1)
    for _ in range(10):
        a.announce(RUN)
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
    a.announce(RUN)
    await a.stop()
    await until(lambda: heard_b)
    await b.stop()


async def test_a_process_that_never_tells_nor_listens_opens_nothing(exchange: Exchange) -> None:
    a, _ = process(exchange)
    await a.stop()
    assert exchange.opened == 0
    a.announce(RUN)
    await asyncio.sleep(0)
    assert exchange.opened == 0, "after the stop nothing is opened any more"


async def test_a_lost_line_is_opened_again_and_what_may_have_been_missed_is_looked_for(
    exchange: Exchange,
) -> None:
    """OPS-1. pg-02."""
    a, heard_a, b, _ = await both(exchange)
    exchange.lines[0].on_lost()
    await until(lambda: len(exchange.lines) == 3 and a.connected)
    assert heard_a == [News.ANYTHING]
    assert exchange.lines[0].closed
    b.announce(RUN)
    await until(lambda: len(heard_a) == 2)
    await a.stop()
    await b.stop()


async def test_a_line_on_which_nothing_comes_is_told_once_and_rings_all_the_same(exchange: Exchange) -> None:
    """OPS-1. pg-05: as behind a pooler that gives each transaction another session."""
    b, heard = process(exchange)
    b.start()
    await until(lambda: b.connected)
    exchange.deaf = True
    a, _ = process(exchange)
    with capture_logs() as logs:
        a.start()
        await until(lambda: len(exchange.lines) == 2 and not a.connected and logs)
        exchange.lines[1].on_lost()
        await until(lambda: len(exchange.lines) == 3)
        a.announce(RUN)
        await until(lambda: heard)
    assert not a.connected, "it does not say that it hears"
    assert [log["event"] for log in logs] == ["wakeup_line_deaf"]
    await a.stop()
    await b.stop()


async def test_a_ring_that_failed_is_rung_on_the_next_line(exchange: Exchange) -> None:
    a, _, b, heard_b = await both(exchange)
    exchange.lines[0].fail = Unavailable("gone")
    a.announce(RUN)
    await until(lambda: heard_b)
    assert exchange.lines[2].rung == 1
    await a.stop()
    await b.stop()


async def test_an_exchange_that_is_down_is_tried_again_and_told_once(exchange: Exchange) -> None:
    """OPS-1. pg-15."""
    exchange.fail = Unavailable("no server")
    a, heard = process(exchange)
    with capture_logs() as logs:
        a.start()
        await until(lambda: exchange.opened >= 4)
        exchange.fail = None
        await until(lambda: a.connected)
    assert [entry["event"] for entry in logs] == ["wakeup_line_down", "wakeup_line_up"]
    assert heard == [News.ANYTHING]
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

    a = Announcer(hangs, SystemClock(), lambda _: None)
    a.announce(RUN)
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
    clock, heard = FrozenClock(START), list[News]()
    a = Announcer(exchange.open, clock, heard.append)
    a.start()
    await until(lambda: a.connected)
    ring = exchange.lines[0].on_ring
    ring("run")
    assert heard == [RUN], "at once after quiet"
    for _ in range(100):
        ring("run")
    assert heard == [RUN]
    clock.advance(SHORTEST_SECONDS)
    await until(lambda: heard == [RUN, RUN])
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
    told: list[News] = []
    signal = Signal(told.append)
    waiting: Awaitable[int] = asyncio.ensure_future(signal.wait(0, BOUND))
    await asyncio.sleep(0)
    signal.wake()
    assert (await waiting, told) == (1, [])
    signal.notify()
    assert (signal.version, told) == (2, [News.ANYTHING])


async def test_what_is_told_is_what_the_others_hear_and_what_is_not_understood_may_be_anything(
    exchange: Exchange,
) -> None:
    """A process of another version rings without a word, or with words that are not known here."""
    a, _, b, heard = await both(exchange)
    a.announce(News.SLOT)
    a.announce(News.RUN)
    await until(lambda: heard)
    assert heard == [News.RUN | News.SLOT]
    assert exchange.lines[0].texts == ["run,slot"]
    for text in ("", "run,moon", "SLOT", "run slot"):
        heard.clear()
        exchange.lines[1].on_ring(text)
        await until(lambda: heard and sum(news.value for news in heard) >= News.ANYTHING.value)
    await a.stop()
    await b.stop()


def test_what_costs_every_loop_a_look_keeps_its_distance_and_holds_up_nothing_else() -> None:
    """P17: a run is told at once although something else was told a moment before."""
    pacing = Pacing()
    pacing.waiting = News.ANYTHING
    assert pacing.take(100.0) == News.ANYTHING
    pacing.waiting = News.ANYTHING
    assert pacing.wait(100.0) == pytest.approx(SHORTEST_SECONDS)
    now = 100.0 + 1.5 * SHORTEST_SECONDS
    assert pacing.take(now) == News.RUN | News.SLOT
    assert pacing.waiting == News.OTHER
    assert pacing.wait(now) > 0
    assert pacing.take(now) == News(0)
    assert pacing.take(now, everything=True) == News.OTHER, "a process that goes tells all it has to tell"


async def test_an_ear_is_woken_by_its_own_news_and_the_signal_by_any() -> None:
    """P17, P21: a run that was queued costs the dispatchers no look, a schedule the runners none."""
    signal = Signal()
    run, slot = signal.ear(News.RUN | News.OTHER), signal.ear(News.SLOT | News.OTHER)
    signal.notify(News.RUN)
    assert (signal.version, run.version, slot.version) == (1, 1, 0)
    signal.wake(News.SLOT)
    assert (signal.version, run.version, slot.version) == (2, 1, 1)
    signal.notify()
    assert (signal.version, run.version, slot.version) == (3, 2, 2)
    waiting: Awaitable[int] = asyncio.ensure_future(slot.wait(2, BOUND))
    await asyncio.sleep(0)
    slot.wake()
    assert (await waiting, signal.version, run.version) == (3, 3, 2)
