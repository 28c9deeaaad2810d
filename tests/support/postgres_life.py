"""A PostgreSQL server whose life a test makes hard, and the product on it as real processes.

A user that is no superuser owns the schema, as an operator would have it; the server's own one does what operators do.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from gnomon.adapters.postgres_server import PostgresServer
from support.product import Running, running

QUICK = {
    "GNOMON_TICK_SECONDS": "0.5",
    "GNOMON_SWEEP_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_SECONDS": "0.5",
    "GNOMON_HEARTBEAT_TIMEOUT_SECONDS": "5",
    "GNOMON_SHUTDOWN_GRACE_SECONDS": "2",
    "GNOMON_LOG_FORMAT": "json",
}
USER, PASSWORD = "operator", "a-s3cret-word"  # looked for in every log


def ask(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement over a connection of its own."""

    async def work() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    return asyncio.run(work())


class Life:
    """One server, the user of the product on it, and one database for each test."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        ask(server.url, f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")

    def database(self, name: str) -> str:
        """An empty database of the product's user; its address."""
        ask(self.server.url, f"CREATE DATABASE {name} OWNER {USER}")
        place = self.server.url.rpartition("@")[2].rpartition("/")[0]
        return f"postgresql://{USER}:{PASSWORD}@{place}/{name}"

    def do(self, sql: str) -> None:
        """What an operator does."""
        ask(self.server.url, sql)

    def cut(self) -> int:
        """End every session of the product's user; how many there were."""
        [(count,)] = ask(
            self.server.url,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1",
            USER,
        )
        return int(count)


@contextmanager
def a_life(folder: Path, **options: str) -> Iterator[Life]:
    """A server of a test's own, which may be stopped, started and set otherwise."""
    with PostgresServer(folder / "server", options=options) as server:
        yield Life(server)


@contextmanager
def product_on(url: str, folder: Path, *words: str, **env: str) -> Iterator[Running]:
    """``gnomon up`` over this database, once it answers."""
    settings = {**QUICK, "GNOMON_DATABASE_URL": url, **env}
    with running("up", "--port", "0", "--json", *words, cwd=folder, **settings) as product:
        product.wait_for_start()
        yield product


def readiness(product: Running) -> tuple[int, dict[str, str]]:
    """The status of /readyz, and the sentence of each check that is not well."""
    status, body = product.ask("/readyz")
    return status, {check["name"]: check["detail"] for check in body["checks"] if not check["ok"]}
