"""What people do with schedules and runs, over a house: the services of one desk, and the shortest valid definition."""

from dataclasses import dataclass
from typing import Any

from gnomon.domain.schedule import Schedule
from gnomon.services.explain import Explain, Explanation
from gnomon.services.gates import Gates
from gnomon.services.pausing import Pausing
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from support.house import AGENT, House

HOURLY: dict[str, Any] = {"unit": "hour", "every": 1}


@dataclass
class Desk:
    """The services, all over the database and the signal of one house."""

    house: House
    schedules: Schedules
    pausing: Pausing
    run_now: RunNow
    explain: Explain
    runs: Runs

    async def make(self, cadence: dict[str, Any] | None = None, **fields: Any) -> Schedule:
        """A schedule made the way people make one, by ana."""
        made = await self.schedules.create(written(cadence, **fields), "ana")
        assert isinstance(made, Schedule)
        return made

    async def verdict(self, schedule: Schedule, at: Any) -> Explanation:
        """What became of an instant."""
        return await self.explain.explain(schedule.id, at)


def written(cadence: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A definition as people write it."""
    return {
        "name": "nightly",
        "target": {"kind": "agent", "id": AGENT},
        "cadence": cadence or HOURLY,
        "query": "go",
    } | fields


def a_desk(house: House) -> Desk:
    """The services over a house that is open."""
    database, signal = house.database, house.signal
    return Desk(
        house,
        Schedules(database=database, mint=house.mint, signal=signal),
        Pausing(database=database, signal=signal),
        RunNow(database=database, mint=house.mint, signal=signal, gates=Gates()),
        Explain(database=database),
        Runs(database=database, signal=signal, closing=house.engine.closing),
    )
