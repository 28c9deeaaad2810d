"""One connection that listens and rings: LISTEN and NOTIFY on a channel of the schema's own, and nothing else.

It is never one of the pool: what listens keeps state in its session, and what rings would hold up other commits, for
PostgreSQL writes notifications under one lock for all databases.
"""

from collections.abc import Callable
from typing import Any

import asyncpg

from gnomon.stores.postgres.failures import FAILURES, translated

_CALL_SECONDS = 5.0
_LONGEST_NAME = 63  # letters of a name; two schemas that would share a channel only wake each other


def channel_of(schema: str) -> str:
    """The channel on which the processes of one schema ring."""
    return f"gnomon_{schema}"[:_LONGEST_NAME]


class PostgresLine:
    """``ports.wakeup.Line`` over one connection; ``open_line`` makes it."""

    def __init__(self, connection: Any, channel: str) -> None:
        self._connection = connection
        self._channel = channel

    async def ring(self, text: str) -> None:
        """Tell the others.

        In one trip. The commit waits for no disk and no standby: a ring that is lost in a crash woke nobody up anyway.
        """
        await self._say(
            f"BEGIN; SET LOCAL synchronous_commit TO off; NOTIFY \"{self._channel}\", '{text}'; COMMIT"
        )

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
        own = connection.get_server_pid()

        def heard(_connection: Any, pid: int, _channel: str, payload: object) -> None:
            if pid != own:
                on_ring(str(payload))

        connection.add_termination_listener(lambda _: on_lost())
        await connection.add_listener(channel, heard)
    except FAILURES as error:
        raise translated(error) from error
    return PostgresLine(connection, channel)
