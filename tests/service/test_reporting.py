"""What targets report, gathered and written beside everything else that writes (TGT-2)."""

from datetime import timedelta
from typing import Any

import pytest

from gnomon.services import reporting
from gnomon.stores import runs
from gnomon.stores.database import Tx
from support.databases import START
from support.house import House, a_schedule, an_agent

pytestmark = pytest.mark.anyio


async def test_a_flood_crowds_out_no_other_run_and_holds_the_write_lock_for_short(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TGT-2, RUN-4: a target that says a line a microsecond costs nobody a report, a heartbeat or a lease."""
    batches: list[int] = []
    write = runs.events

    async def counted(tx: Tx, rows: list[dict[str, Any]]) -> None:
        batches.append(len(rows))
        await write(tx, rows)

    monkeypatch.setattr(runs, "events", counted)
    await an_agent(house.database)
    holds = [house.runtime.hangs() for _ in range(2)]
    for number, _ in enumerate(holds):
        await a_schedule(
            house.database,
            {"unit": "hour"},
            schedule_id=f"sch_{number:020}",
            next_fire_at=house.clock.now(),
            anchor=START - timedelta(hours=5),
        )
    await house.dispatch()
    for hold in holds:
        await hold.started.wait()
    flooding, quiet = house.runtime.calls
    quiet.reporter.progress("heard")
    for _ in range(60_000):
        flooding.reporter.progress("y")
    await house.engine.reports.flush()
    kept = await house.rows("SELECT run_id, count(*) AS lines FROM run_events GROUP BY run_id")
    assert {row["run_id"]: row["lines"] for row in kept} == {
        quiet.invocation.run_id: 1,
        flooding.invocation.run_id: reporting.MOST_EVENTS,
    }
    assert max(batches) <= reporting.BATCH
    assert sum(batches) == reporting.MOST_EVENTS + 1
    for hold in holds:
        hold.release()
    await house.idle()
