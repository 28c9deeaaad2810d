"""Real processes race for the tasks of one board, and each is held by one of them (BRD-1, PRF-3)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gnomon.domain.breach import Breach
from gnomon.services.verify import Verify
from gnomon.stores.postgres.address import parse
from support.board_workers import fill, open_database
from support.processes import look as look_into
from support.programs import race

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
TASKS = 120
CONTEND = """
    import asyncio, sys
    from support.board_workers import contend
    asyncio.run(contend(sys.argv[1], sys.argv[2]))
"""


def look(url: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement that only a test has."""
    if not url.startswith("postgresql"):
        return look_into(Path(url), sql)

    async def ask() -> list[tuple[Any, ...]]:
        address = parse(url)
        raw = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
        found = [tuple(row) for row in await raw.fetch(sql)]
        await raw.close()
        return found

    return asyncio.run(ask())


async def judged(url: str) -> list[str]:
    database = open_database(url)
    found: list[Breach] = []
    await Verify(database, gapless=False).run(found.append)
    await database.close()
    return [breach.sentence for breach in found]


def test_each_task_is_held_by_one_of_several_processes(url: str) -> None:
    """BRD-1, BRD-7: four processes, needs three deep: each task is claimed once, done once, and no process did it all."""
    asyncio.run(fill(url, TASKS))
    said = [json.loads(out) for out in race(CONTEND, *[(url, f"pm-{number}") for number in range(4)])]
    held = [each for one in said for each in one]
    assert len(held) == len({each["task"] for each in held}) == TASKS
    assert {each["fence"] for each in held} == {1}
    assert sum(bool(one) for one in said) > 1, "a race needs two"
    actions = dict(
        look(url, "SELECT action, count(*) FROM audit_entries WHERE subject_kind = 'task' GROUP BY action")
    )
    assert actions == {"CREATE": TASKS, "CLAIM": TASKS, "RELEASE": TASKS}
    began = {each["task"]: each["begun"] for each in held}
    ended = {each["task"]: each["ended"] for each in held}
    needs = look(url, "SELECT task_id, prerequisite_id FROM task_prerequisites")
    assert needs
    assert all(began[task] >= ended[needed] for task, needed in needs)
    assert asyncio.run(judged(url)) == []
