"""Real processes race for due jobs: one trigger for each slot, and nobody is filled beyond its room (JOB-3, PRF-3)."""

import asyncio
import json

import pytest

from gnomon.domain.breach import Breach
from gnomon.services.verify import Verify
from support.board_workers import open_database
from support.job_racers import fill, table
from support.programs import race
from support.rows import execute

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
JOBS, ROOM, PROCESSES = 150, 40, 4
CONTEND = """
    import asyncio, sys
    from support.job_racers import contend
    asyncio.run(contend(sys.argv[1]))
"""


def test_each_slot_is_given_once_by_one_of_several_processes(url: str) -> None:
    """JOB-2, JOB-3, C1: four processes that scan at once, over both engines."""
    asyncio.run(fill(url, JOBS, ROOM))
    said = [json.loads(out) for out in race(CONTEND, *[(url,)] * PROCESSES)]
    assert sum(one.get("given", 0) for one in said) == 2 * ROOM
    assert sum(bool(one) for one in said) > 1, "a race needs two"

    async def look() -> list[str]:
        database, triggers, audit = open_database(url), table(url, "triggers"), table(url, "audit_entries")
        held = await execute(
            database,
            f"SELECT instance_id, count(*) AS n FROM {triggers} WHERE instance_id IS NOT NULL GROUP BY instance_id",
        )
        assert {row["instance_id"]: row["n"] for row in held} == {"ins_a": ROOM, "ins_b": ROOM}
        (counted,) = await execute(
            database, f"SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM {triggers}"
        )
        assert (counted["n"], counted["jobs"]) == (JOBS, JOBS)
        (told,) = await execute(database, f"SELECT count(*) AS n FROM {audit} WHERE action = 'TRIGGER'")
        assert told["n"] == JOBS
        breaches: list[Breach] = []
        await Verify(database, gapless=False).run(breaches.append)
        await database.close()
        return [breach.sentence for breach in breaches]

    assert asyncio.run(look()) == []
