"""Many at once with one Idempotency-Key, over real sockets, at two servers of one database: one takes effect (IDM-2)."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from support.creations import CREATIONS, Creation
from support.postgres_life import QUICK, a_life, product_on
from support.product import Running, up

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
AT_ONCE = 8  # at each server


@contextmanager
def two_servers(engine: str, folder: Path) -> Iterator[tuple[Running, Running]]:
    """Two processes over one file, or over one PostgreSQL."""
    with ExitStack() as stack:
        if engine == "sqlite":
            first, second = (stack.enter_context(up(folder, **QUICK)) for _ in range(2))
        else:
            url = stack.enter_context(a_life(folder)).database("once")
            first, second = (stack.enter_context(product_on(url, folder)) for _ in range(2))
        yield first, second


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_of_many_at_once_at_two_servers_one_takes_effect(engine: str, tmp_path: Path) -> None:
    """IDM-2, casebook ide-01, ide-03: at every address that makes something."""
    with two_servers(engine, tmp_path) as servers:
        made = asyncio.run(walk(servers))
        assert {"/v1/agents", "/v1/schedules/{schedule}/run", "/v1/tasks", "/v1/jobs", "/v1/apply"} <= made
        for server in servers:
            assert server.stop() == 0


async def walk(servers: tuple[Running, Running]) -> set[str]:
    """Make everything that can be made, each by a crowd; the addresses at which something was."""
    names: dict[str, str] = {}
    found = set()
    head = {"Authorization": f"Bearer {servers[0].started['key']}"}
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx2.AsyncClient(base_url=server.started["address"], headers=head, timeout=30)
            )
            for server in servers
        ]
        described = (await clients[0].get("/openapi.json")).json()["paths"]
        for creation in CREATIONS:
            if creation.path in described:
                answer = await crowd(clients, creation, names)
                if creation.path == "/v1/schedules":
                    names["schedule"] = answer.json()["id"]
                found.add(creation.path)
    return found


async def crowd(
    clients: list[httpx2.AsyncClient], creation: Creation, names: dict[str, str]
) -> httpx2.Response:
    """All ask for the same at once: one is answered as the first, all others with its answer."""
    path, head = creation.path.format(**names), {"idempotency-key": f"once {creation.path}"}
    asked = [
        client.post(path, json=creation.body, headers=head) for _ in range(AT_ONCE) for client in clients
    ]
    answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {creation.status}, answers[0].text
    assert len({answer.text for answer in answers}) == 1, creation.path
    firsts = [answer for answer in answers if "idempotent-replayed" not in answer.headers]
    assert len(firsts) == 1, creation.path
    return firsts[0]
