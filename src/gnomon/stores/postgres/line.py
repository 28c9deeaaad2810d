"""One connection that listens and rings: LISTEN and NOTIFY on a channel of the schema's own, and nothing else.

It is never one of the pool: what listens keeps state in its session, and what rings would hold up other commits, for
PostgreSQL writes notifications under one lock for all databases.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncpg

from gnomon.stores.postgres.failures import FAILURES, translated

_CALL_SECONDS = 5.0
# Behind a pooler that gives each transaction another session LISTEN is taken, and nothing ever comes.
TRIAL_SECONDS = 2.0
_TRIAL = "trial "
_LONGEST_NAME = 63  # letters of a name; two schemas that would share a channel only wake each other


def channel_of(schema: str) -> str:
    """The channel on which the processes of one schema ring."""
    return f"gnomon_{schema}"[:_LONGEST_NAME]


class PostgresLine:
    """``ports.wakeup.Line`` over one connection; ``open_line`` makes it."""

    def __init__(self, connection: Any, channel: str, came_back: asyncio.Event) -> None:
        self._connection = connection
        self._channel = channel
        self._came_back = came_back

    async def ring(self, text: str) -> None:
        """Tell the others.

        In one trip. The commit waits for no disk and no standby: a ring that is lost in a crash woke nobody up anyway.
        """
        await self._say(
            f"BEGIN; SET LOCAL synchronous_commit TO off; NOTIFY \"{self._channel}\", '{text}'; COMMIT"
        )

    async def carries(self) -> bool:
        """Whether the ring of its opening has come back."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came_back.wait(), TRIAL_SECONDS)
        return self._came_back.is_set()

    async def check(self) -> None:
        """Return if the server still answers."""
        await self._say("SELECT 1")

    async def close(self) -> None:
        """Close it, without a word to a server that may be gone."""
        self._connection.terminate()

    async def _say(self, text: str) -> None:
        try:
            await self._connection.execute(text, timeout=_CALL_SECONDS)
        except FAILURES as error:
            raise translated(error) from error


async def open_line(
    dsn: str, schema: str, on_ring: Callable[[str], None], on_lost: Callable[[], None]
) -> PostgresLine:
    """Connect and listen; ``on_ring`` is called for what another process rings, ``on_lost`` when the connection ends.

    Raises:
        Unavailable: the server can't be reached, or refuses us.
    """
    channel = channel_of(schema)
    try:
        connection = await asyncpg.connect(dsn, timeout=_CALL_SECONDS, statement_cache_size=0)
        own, came_back = connection.get_server_pid(), asyncio.Event()
        trial = f"{_TRIAL}{own}"

        def heard(_connection: Any, pid: int, _channel: str, payload: object) -> None:
            text = str(payload)
            if text == trial:
                came_back.set()
            elif pid != own and not text.startswith(_TRIAL):
                on_ring(text)

        connection.add_termination_listener(lambda _: on_lost())
        await connection.add_listener(channel, heard)
    except FAILURES as error:
        raise translated(error) from error
    line = PostgresLine(connection, channel, came_back)
    await line.ring(trial)
    return line
