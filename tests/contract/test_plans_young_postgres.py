"""What the hot statements are planned as while the tables are still empty: the plans that a young house keeps.

The server plans a statement that is held once, and not again before it has analysed the table. Whatever the table was
then, each row must be found by its key.
"""

import re
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from gnomon.stores import queries
from gnomon.stores.postgres.address import Address
from gnomon.stores.postgres.connection import BY_KEY
from gnomon.stores.postgres.statements import Catalogue, Part, PutOff
from support.postgres_plans import explained, filled, only, planning

SCHEMA = "young"
QUERIES = queries.load("postgres")
CATALOGUE = Catalogue(QUERIES, SCHEMA)
CLAIM = ("slots.advance", "runs.insert", "audit.append", "slots.enter")
CLOSE = ("runs.close_plain", "audit.append")
STOP = ("slots.stop", "slots.note_status", "audit.append")
CHANGES = [
    name
    for name, query in QUERIES.items()
    if query.rows
    and query.statements[0].startswith("UPDATE ")
    and name != "triggers.push"  # it asks the instances as well, which are few
]


@pytest.fixture(scope="module")
def young(postgres_url: str) -> Iterator[Address]:
    with filled(postgres_url, SCHEMA, []) as address:
        yield address


@pytest.fixture
async def raw(young: Address) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    async with planning(young) as connection:
        for name, value in BY_KEY.items():
            await connection.execute(f"SET LOCAL {name} TO {value}")
        yield connection


async def plan(raw: "asyncpg.Connection[asyncpg.Record]", put_off: list[PutOff]) -> list[str]:
    text = CATALOGUE.together(put_off)
    count = max(int(number) for number in re.findall(r"\$(\d+)", text))
    return await explained(raw, text, ["NULL"] * count)


@pytest.mark.parametrize("shared", [False, True], ids=["each its own", "in common"])
@pytest.mark.parametrize("names", [CLAIM, CLOSE, STOP], ids=["claim", "close", "stop"])
async def test_what_goes_together_finds_each_row_by_its_key(
    raw: "asyncpg.Connection[asyncpg.Record]", names: tuple[str, ...], *, shared: bool
) -> None:
    """DSP-5, P6: of 10,000 runs a close of a hundred reads a hundred."""
    parts = [Part.GUARD, *[Part.GUARDED] * (len(names) - 1)]
    lines = await plan(
        raw,
        [
            PutOff(CATALOGUE.sets[name], [], part, QUERIES[name].shared if shared else ())
            for name, part in zip(names, parts, strict=True)
        ],
    )
    assert not only(lines, "Seq Scan"), lines
    assert not only(lines, "Join Filter"), lines
    scans = only(lines, "Index Scan") + only(lines, "Index Only Scan")
    assert len(scans) == len(only(lines, "Index Cond")), lines


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_of_many_finds_each_by_an_index(
    raw: "asyncpg.Connection[asyncpg.Record]", name: str
) -> None:
    lines = await plan(raw, [PutOff(CATALOGUE.sets[name], [])])
    assert not only(lines, "Seq Scan"), lines
    assert not only(lines, "Join Filter"), lines


async def test_a_claim_in_one_trip_finds_each_run_by_its_key(
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """RUN-1, P17."""
    claim = CATALOGUE.plain["runs.claim_at_once"].text
    lines = await explained(raw, claim, ["NULL"] * 3)
    assert len(only(lines, "runs_queue")) == 2, lines
    assert only(lines, "using runs_pkey on runs"), lines
    assert only(lines, "using schedules_pkey on schedules"), lines
    assert not only(lines, "Seq Scan on"), lines
