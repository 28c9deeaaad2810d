"""Claims given back: as if they had not been made (DSP-10), by their holder alone (casebook lea-25)."""

from typing import Any

import pytest

from gnomon.stores import runs
from gnomon.stores.database import Database, Row
from gnomon.testing.clock import FrozenClock
from support.rows import AT, add_run, add_running, one

pytestmark = pytest.mark.anyio


async def queue(database: Database, run_id: str, **changes: Any) -> None:
    """A queued run."""
    await add_run(database, **{"id": run_id, "session_id": f"ses_{run_id}", **changes})


async def claim(database: Database, limit: int = 10, owner: str = "prc_mine") -> list[Row]:
    return await database.write(lambda tx: runs.claim(tx, owner, "clm_1", limit))


async def give_back(database: Database, run_id: str, fence: int, owner: str = "prc_mine") -> set[str]:
    return await database.write(lambda tx: runs.give_back(tx, owner, [(run_id, fence)]))


async def test_a_claim_given_back_is_as_if_it_had_not_been_made(database: Database) -> None:
    """DSP-10: its attempt, its start and its place in the queue; only the fence has grown."""
    await queue(database, "run_a", claimable_at=AT - 500, scheduled_for=AT - 500)
    await queue(database, "run_b", claimable_at=AT - 400, scheduled_for=AT - 400)
    before = await one(database, "runs", id="run_a")
    (row,) = await claim(database, 1)
    assert await give_back(database, "run_a", row["fence"]) == {"run_a"}
    after = await one(database, "runs", id="run_a")
    assert {name for name in after if after[name] != before[name]} == {"fence"}
    assert [row["id"] for row in await claim(database)] == ["run_a", "run_b"]


async def test_a_run_that_was_born_claimed_and_is_given_back_keeps_the_instant_of_its_birth(
    database: Database,
) -> None:
    """DSP-10, RUN-9: it is told by its start only as long as there is one."""
    run = await add_running(database, created_at=None)
    await give_back(database, run["id"], 7)
    after = await one(database, "runs", id=run["id"])
    assert (after["started_at"], after["created_at"]) == (None, AT)


async def test_a_later_attempt_given_back_keeps_the_actual_start(database: Database) -> None:
    """DSP-10, RUN-9."""
    await queue(database, "run_a", attempt=1, started_at=AT - 100, scheduled_for=AT - 5, claimable_at=AT - 5)
    (row,) = await claim(database)
    await give_back(database, "run_a", row["fence"])
    after = await one(database, "runs", id="run_a")
    assert (after["attempt"], after["started_at"], after["claimable_at"]) == (1, AT - 100, AT - 5)


async def test_after_the_clock_was_set_back_a_claim_given_back_is_claimable_at_once(
    database: Database, clock: FrozenClock
) -> None:
    """DSP-10, casebook mis-08."""
    await queue(database, "run_a")
    (row,) = await claim(database)
    clock.jump(-3_600)
    await give_back(database, "run_a", row["fence"])
    assert [row["id"] for row in await claim(database)] == ["run_a"]


@pytest.mark.parametrize(("owner", "fence"), [("prc_other", 7), ("prc_mine", 6), ("prc_mine", 8)])
async def test_only_the_holder_gives_back(database: Database, owner: str, fence: int) -> None:
    """DSP-10, casebook lea-25."""
    run = await add_running(database)
    before = await one(database, "runs", id=run["id"])
    assert await give_back(database, run["id"], fence, owner) == set()
    assert await one(database, "runs", id=run["id"]) == before


async def test_what_is_over_is_not_given_back(database: Database) -> None:
    """RUN-1: a terminal status is never left."""
    over = {"status": "succeeded", "lease_until": None, "finished_at": AT}
    run = await add_running(database, **over)
    assert await give_back(database, run["id"], 7) == set()
    assert (await one(database, "runs", id=run["id"]))["status"] == "succeeded"
