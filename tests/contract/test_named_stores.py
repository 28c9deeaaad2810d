"""Agents, teams and calendars on every engine: one slug at a time, versions that count, deletion that keeps the row."""

from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import pytest

from gnomon.domain.agent import Agent, CommandRuntime, HttpRuntime, LlmRuntime
from gnomon.domain.calendar import Calendar
from gnomon.domain.invocation import Limits
from gnomon.domain.team import Node, Team
from gnomon.stores import agents, calendars, teams
from gnomon.stores.database import Database, Tx, UniqueViolation
from support.databases import START

AGENT = Agent(
    "agt_1", "writer", "Wörk 🙂", LlmRuntime("test"), 300, None, Limits(), True, 1, START, "key_1", START
)
TEAM = Team(
    "tea_1",
    "crew",
    "Crew",
    (Node("a", "writer", "{{query}}"), Node("b", "writer", "x", ("a",))),
    "b",
    5,
    Limits(cost=0.5),
    True,
    1,
    START,
    "key_1",
    START,
)
CALENDAR = Calendar("cal_1", "de", "Germany", (date(2026, 12, 25),), 1, START, "key_1", START)


async def _insert(store: Any, record: Any, tx: Tx) -> None:
    await store.insert(tx, record)


NOUNS = [(agents, AGENT), (teams, TEAM), (calendars, CALENDAR)]
named = pytest.mark.parametrize(("store", "record"), NOUNS, ids=["agent", "team", "calendar"])


@named
async def test_a_record_comes_back_as_it_went_in_by_id_and_by_slug(
    database: Database, store: Any, record: Any
) -> None:
    assert await database.write(lambda tx: store.insert(tx, record)) == record
    for name in (record.id, record.slug):
        assert await database.read(partial(store.find, name=name)) == record
    assert await database.read(lambda tx: store.find(tx, "nobody")) is None


@named
async def test_a_slug_is_taken_once(database: Database, store: Any, record: Any) -> None:
    await database.write(lambda tx: store.insert(tx, record))
    with pytest.raises(UniqueViolation):
        await database.write(lambda tx: store.insert(tx, replace(record, id="x_2")))


@named
async def test_an_update_counts_the_version_and_an_old_one_does_nothing(
    database: Database, store: Any, record: Any
) -> None:
    """SCH-4: of two edits from one version, one wins."""
    await database.write(lambda tx: store.insert(tx, record))
    wanted = replace(record, name="Another")
    saved = await database.write(lambda tx: store.update(tx, wanted))
    assert saved == replace(wanted, version=2)
    assert await database.write(lambda tx: store.update(tx, replace(record, name="Lost"))) is None
    assert await database.read(lambda tx: store.find(tx, record.id)) == saved


@named
async def test_a_deleted_record_is_gone_and_its_slug_is_free(
    database: Database, store: Any, record: Any
) -> None:
    await database.write(lambda tx: store.insert(tx, record))
    await database.write(lambda tx: store.delete(tx, record.id))
    for name in (record.id, record.slug):
        assert await database.read(partial(store.find, name=name)) is None
    assert await database.read(lambda tx: store.page(tx, "", 10)) == []
    successor = replace(record, id=record.id + "9")
    assert await database.write(lambda tx: store.insert(tx, successor)) == successor


@named
async def test_pages_go_by_id_and_leave_nobody_out(database: Database, store: Any, record: Any) -> None:
    for n in (3, 1, 2, 5, 4):
        await database.write(partial(_insert, store, replace(record, id=f"x_{n}", slug=f"s{n}")))
    first = await database.read(lambda tx: store.page(tx, "", 3))
    rest = await database.read(lambda tx: store.page(tx, first[-1].id, 3))
    assert [found.id for found in (*first, *rest)] == ["x_1", "x_2", "x_3", "x_4", "x_5"]


async def test_every_part_of_an_agent_is_kept(database: Database) -> None:
    full = replace(
        AGENT,
        runtime=CommandRuntime(("sh", "-c", 'echo "é\\u0000"'), "/tmp", {"A": "b\nc"}),
        daily_cap=7,
        limits=Limits(10, 20, 0.25),
        enabled=False,
        secret="whsec_x",
    )
    assert await database.write(lambda tx: agents.insert(tx, full)) == full
    http = replace(full, runtime=HttpRuntime("https://a.b/", {"X-Y": "z"}), enabled=True)
    assert await database.write(lambda tx: agents.update(tx, http)) == replace(http, version=2)


async def test_a_deleted_agent_forgets_its_secret(database: Database) -> None:
    """SEC-3: what nobody needs any more is not kept."""
    await database.write(lambda tx: agents.insert(tx, replace(AGENT, secret="whsec_x")))
    assert await database.write(lambda tx: agents.delete(tx, AGENT.id))
    assert not await database.write(lambda tx: agents.delete(tx, AGENT.id))
