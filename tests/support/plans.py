"""How an engine would run a named query: its plan as lines, and which tables it would read from end to end.

On a small table PostgreSQL reads it all whatever the indexes are; here it is kept from that, so that what is left are
the statements that no index serves.
"""

import re
from collections.abc import Mapping
from typing import Any

from gnomon.stores import queries
from gnomon.stores.database import Database, Tx
from gnomon.stores.postgres.connection import Connection
from gnomon.stores.postgres.statements import Catalogue
from support.postgres import SCHEMA
from support.rows import execute

_SCAN = re.compile(r"^(?:SCAN|.*\bSeq Scan on) (\w+)")


async def plan(database: Database, name: str, given: Mapping[str, Any]) -> list[str]:
    """The steps of a query that has one statement; ``given`` holds the parameters it takes, and may hold more."""

    async def work(tx: Tx) -> list[str] | None:
        if not isinstance(tx, Connection):
            return None
        query = queries.load("postgres")[name]
        raw = await tx.ready()
        await raw.execute("SET LOCAL enable_seqscan TO off")
        text = Catalogue({name: query}, SCHEMA).plain[name].text
        rows = await raw.fetch(f"EXPLAIN {text}", *(given[name] for name in query.parameters))
        return [row[0] for row in rows]

    lines = await database.write(work)
    if lines is not None:
        return lines
    query = queries.load("sqlite")[name]
    wanted = {name: given[name] for name in query.parameters}
    return [row["detail"] for row in await execute(database, f"EXPLAIN QUERY PLAN {query.text}", **wanted)]


def scanned(lines: list[str]) -> set[str]:
    """The tables that a plan reads from end to end."""
    return {match.group(1) for line in lines if (match := _SCAN.match(line))}
