"""A PostgreSQL schema filled for the sake of its plans, and what the plan of a statement says there."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg

from gnomon.stores.postgres.address import Address, parse
from gnomon.stores.postgres.opening import prepare


@contextmanager
def filled(url: str, schema: str, statements: Iterable[str]) -> Iterator[Address]:
    """A migrated schema after ``statements``; it is dropped at the end."""
    address = parse(f"{url}?schema={schema}")

    async def say(*texts: str) -> None:
        raw = await asyncpg.connect(address.dsn)
        await raw.execute(f"SET search_path TO {schema}")
        for text in texts:
            await raw.execute(text)
        await raw.close()

    asyncio.run(prepare(address))
    asyncio.run(say(*statements))
    yield address
    asyncio.run(say(f"DROP SCHEMA {schema} CASCADE"))


@asynccontextmanager
async def planning(address: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection in a transaction that is rolled back, with plans as they are once they are kept."""
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(
        f"BEGIN; SET LOCAL search_path TO {address.schema}; SET LOCAL plan_cache_mode TO force_generic_plan"
    )
    yield connection
    await connection.execute("ROLLBACK")
    await connection.close()


async def explained(
    raw: "asyncpg.Connection[asyncpg.Record]", text: str, values: list[str], *, analyse: bool = False
) -> list[str]:
    """The plan of a statement; with ``analyse`` it is carried out, and says what came out of each step."""
    given = f"({', '.join(values)})" if values else ""
    await raw.execute(f"PREPARE hot AS {text}")
    options = "ANALYZE, COSTS off, TIMING off, BUFFERS off" if analyse else "COSTS off"
    lines = [row[0] for row in await raw.fetch(f"EXPLAIN ({options}) EXECUTE hot{given}")]
    await raw.execute("DEALLOCATE hot")
    return lines


def only(lines: list[str], words: str) -> list[str]:
    """The steps of a plan that hold these words."""
    return [line.strip().removeprefix("->").strip() for line in lines if words in line]
