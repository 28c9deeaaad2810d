"""Without the ring, and behind a pooler that swallows it, the bounded poll alone starts what another process queued (OPS-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import httpx2
import pytest

from gnomon.domain.errors import Unavailable
from gnomon.settings import Settings
from gnomon.stores.postgres import line
from gnomon.stores.postgres.database import PostgresDatabase
from gnomon.wiring import Center, open_center

pytestmark = pytest.mark.anyio
TICK, BOUND = 0.5, 20.0
TOKEN = "t" * 32


class Mute:
    """A line as a pooler in transaction mode gives it: every call is answered, nothing is ever heard."""

    async def ring(self, text: str) -> None:
        """Rung into nothing."""

    async def carries(self) -> bool:
        """What was tried has not come back."""
        return False

    async def check(self) -> None:
        """All is well, it says."""

    async def close(self) -> None:
        """Closed."""


async def swallowed(*_: object) -> Mute:
    return Mute()


async def refused(*_: object) -> Mute:
    raise Unavailable("no line")


@asynccontextmanager
async def a_center(settings: Settings, *, works: bool) -> AsyncIterator[tuple[Center, httpx2.AsyncClient]]:
    center = await open_center(settings, dispatch=works, work=works, operator_token=TOKEN)
    transport = httpx2.ASGITransport(center.app)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://gnomon.local/v1", headers=headers
    ) as client:
        try:
            yield center, client
        finally:
            await center.drain()
            await center.stop()


async def made(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> str:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


async def seconds_until_started(client: httpx2.AsyncClient, schedule: str) -> float:
    began = perf_counter()
    run = await made(client, f"/schedules/{schedule}/run", {})
    pause = asyncio.Event()
    async with asyncio.timeout(BOUND):
        while (await client.get(f"/runs/{run}")).json()["started_at"] is None:
            try:
                await asyncio.wait_for(pause.wait(), 0.005)
            except TimeoutError:
                continue
    return perf_counter() - began


async def started(url: str, schema: str) -> list[float]:
    settings = Settings(database_url=f"{url}?schema={schema}", tick_seconds=TICK)
    async with a_center(settings, works=False) as (_, office):
        await made(
            office,
            "/agents",
            {
                "slug": "greeter",
                "name": "x",
                "runtime": {"kind": "python", "path": "gnomon.testing.samples:greet"},
            },
        )
        target = {"kind": "agent", "id": "greeter"}
        body = {
            "name": "x",
            "target": target,
            "cadence": {"unit": "day", "at": "00:00", "zone": "Asia/Kolkata"},
            "query": "me",
        }
        schedules = [await made(office, "/schedules", body) for _ in range(6)]
        async with a_center(settings, works=True) as (worker, _):
            await worker.start()
            await seconds_until_started(office, schedules[0])
            return [await seconds_until_started(office, each) for each in schedules[1:]]


@pytest.mark.parametrize("way", [swallowed, refused])
async def test_the_poll_alone_keeps_the_promise_of_a_tick(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Any]
) -> None:
    monkeypatch.setattr(line, "open_line", way)
    took = await started(postgres_url, f"poll_{way.__name__}")
    assert max(took) < TICK + 1.0, "a tick, and what it takes to start on a busy machine"
    assert max(took) > TICK / 10, "nobody rang"


async def test_with_the_ring_nobody_waits_for_a_tick(postgres_url: str) -> None:
    assert sorted(await started(postgres_url, "poll_rung"))[2] < TICK / 2


async def test_a_run_needs_one_connection_at_a_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-1. pg-18: whatever waited for a second one while it holds the first would wait for itself."""
    monkeypatch.setattr(PostgresDatabase.__init__, "__kwdefaults__", {"connections": 1})
    assert len(await started(postgres_url, "poll_one")) == 5
