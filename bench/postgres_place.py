"""Where the PostgreSQL benches run: a server from the wheel, an empty database for each trial, and a Redis for Celery.

Stock settings but for more shared memory and room for the log, so that no checkpoint falls into a trial. fsync and
synchronous_commit stay on. Every statement of a database is counted that has been put under count.
"""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from gnomon.adapters.postgres_server import PostgresServer

SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "max_connections": "200",
    "autovacuum_naptime": "10s",
    "log_line_prefix": "%d %p ",
    "log_checkpoints": "off",
}


class Place:
    """One server; databases come and go."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self._log = folder / "server.log"

    def fresh(self, name: str) -> str:
        """The address of an empty database of this name."""
        url = self._server.url

        async def make() -> None:
            connection = await asyncpg.connect(url)
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            await connection.execute(f'CREATE DATABASE "{name}"')
            await connection.execute("CHECKPOINT")  # the log's page images are then the trial's own
            await connection.close()

        asyncio.run(make())
        return urlsplit(url)._replace(path=f"/{name}").geturl()

    def count_statements(self, url: str) -> None:
        """Log every statement of this database from the next connection on."""
        ask(url, f"ALTER DATABASE \"{urlsplit(url).path[1:]}\" SET log_statement = 'all'")

    def mark(self) -> int:
        """Where the log ends now."""
        return self._log.stat().st_size

    def statements(self, url: str, since: int) -> list[tuple[str, str]]:
        """The statements of this database that were logged after ``since``: backend and text, in order."""
        name = urlsplit(url).path[1:]
        found: list[tuple[str, str]] = []
        with self._log.open(encoding="utf-8", errors="replace") as log:
            log.seek(since)
            for line in log:
                if line.startswith(f"{name} ") and "LOG:  " in line:
                    backend, text = line[len(name) + 1 :].split(" ", 1)
                    _, _, statement = text.partition("LOG:  ")
                    if statement.startswith(("execute ", "statement: ")):
                        found.append((backend, statement))
                elif line.startswith("\t") and found:  # the further lines of one statement
                    found[-1] = (found[-1][0], found[-1][1] + line.strip() + " ")
        return found


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """A server for the benches, in ``folder``."""
    with PostgresServer(folder / "postgres", options=SETTINGS) as server:
        yield Place(server, folder / "postgres")


@contextmanager
def redis(folder: Path) -> Iterator[int | None]:
    """A Redis that writes nothing to disk; its port, or ``None`` where this machine has none."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            time.sleep(0.05)  # noqa: TID251 - another process starts
        yield port
    finally:
        process.terminate()
        process.wait(10)


def ask(url: str, statement: str, *arguments: object) -> list[asyncpg.Record]:
    """One statement over a connection of its own."""

    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    return asyncio.run(run())
