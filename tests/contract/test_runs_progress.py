"""What a run leaves behind while it works, and how it is asked to stop (TGT-2, TGT-3, RUN-8, RUN-10; casebook lea-32)."""

from typing import Any

import pytest

from gnomon.stores import runs
from gnomon.stores.database import Database, Tx
from gnomon.testing.clock import FrozenClock
from support.rows import AT, RUN, add_run, add_running, execute, one

pytestmark = pytest.mark.anyio
ID = RUN["id"]
OVER: dict[str, Any] = {"status": "succeeded", "lease_until": None, "finished_at": AT}


async def _checkpoint(tx: Tx, owner: str, fence: int) -> bool:
    return await runs.checkpoint(tx, run_id=ID, node="a", owner=owner, fence=fence, output="out", usage=None)


# --- checkpoints and events -----------------------------------------------------------------------------------------


async def test_a_checkpoint_is_kept_once_and_its_repeat_is_told_as_kept(database: Database) -> None:
    """TGT-3: a lost answer is asked for again; what was kept first stays."""
    await add_running(database)
    for output in ("first", "second"):
        kept = await database.write(
            lambda tx, output=output: runs.checkpoint(  # type: ignore[misc]
                tx, run_id=ID, node="a", owner="prc_mine", fence=7, output=output, usage=None
            )
        )
        assert kept
    (found,) = await database.read(lambda tx: runs.checkpoints(tx, ID))
    assert dict(found) == {"node": "a", "output": "first", "usage": None}


async def test_a_resumed_run_sees_what_its_former_holder_kept(database: Database) -> None:
    """RUN-8, TGT-3: the checkpoint stays under the fence it was written under."""
    await add_running(database, fence=8)
    await execute(
        database,
        "INSERT INTO checkpoints VALUES (:run_id, 'a', 7, 'kept', NULL, 0)",
        run_id=ID,
    )
    assert await database.write(lambda tx: _checkpoint(tx, "prc_mine", 8))
    assert (await one(database, "checkpoints", run_id=ID))["fence"] == 7
    assert len(await database.read(lambda tx: runs.checkpoints(tx, "run_other"))) == 0


def progress(fence: int = 7, most: int = 100, data: str = "{}") -> dict[str, Any]:
    return {"run_id": ID, "fence": fence, "kind": "progress", "data": data, "most": most}


async def test_events_are_numbered_for_each_run(database: Database) -> None:
    """TGT-2."""
    await add_running(database)
    await add_running(database, id="run_other", session_id="ses_other")
    rows = [progress(data="1"), progress() | {"run_id": "run_other"}, progress(data="2")]
    await database.write(lambda tx: runs.events(tx, rows))
    found = await execute(database, "SELECT run_id, seq, data FROM run_events ORDER BY run_id, seq")
    assert [(row["run_id"], row["seq"], row["data"]) for row in found] == [
        (ID, 1, "1"),
        (ID, 2, "2"),
        ("run_other", 1, "{}"),
    ]


@pytest.mark.parametrize(("changes", "fence"), [({}, 6), ({}, 8), (OVER, 7)])
async def test_a_zombie_s_events_change_nothing(
    database: Database, changes: dict[str, Any], fence: int
) -> None:
    """RUN-6, casebook lea-32."""
    await add_running(database, **changes)
    await database.write(lambda tx: runs.events(tx, [progress(fence)]))
    assert await execute(database, "SELECT * FROM run_events") == []


async def test_events_are_bounded(database: Database) -> None:
    """TGT-5: a target that talks without end fills no disk."""
    await add_running(database)
    await database.write(lambda tx: runs.events(tx, [progress(most=3) for _ in range(9)]))
    assert len(await execute(database, "SELECT * FROM run_events")) == 3


# --- cancels --------------------------------------------------------------------------------------------------------


async def test_a_running_run_is_asked_to_stop_and_the_first_who_asks_is_kept(
    database: Database, clock: FrozenClock
) -> None:
    """RUN-10."""
    await add_running(database)
    assert await database.read(lambda tx: runs.cancels(tx, "prc_mine")) == []
    assert await database.write(lambda tx: runs.ask_cancel(tx, ID, "usr_1")) is not None
    clock.advance(5)
    assert await database.write(lambda tx: runs.ask_cancel(tx, ID, "usr_2")) is not None
    row = await one(database, "runs", id=ID)
    assert (row["cancel_at"], row["cancel_by"], row["status"]) == (AT, "usr_1", "running")
    assert await database.read(lambda tx: runs.cancels(tx, "prc_mine")) == [(ID, "usr_1")]
    assert await database.read(lambda tx: runs.cancels(tx, "prc_other")) == []


async def test_what_is_queued_or_over_is_not_asked(database: Database) -> None:
    """RUN-10."""
    await add_run(database, id="run_queued")
    await add_running(database, **OVER, cancel_at=AT, cancel_by="usr_1")
    assert await database.write(lambda tx: runs.ask_cancel(tx, "run_queued", "usr_2")) is None
    assert await database.write(lambda tx: runs.ask_cancel(tx, ID, "usr_2")) is None
    assert (await one(database, "runs", id="run_queued"))["cancel_at"] is None
    assert await database.read(lambda tx: runs.cancels(tx, "prc_mine")) == []
