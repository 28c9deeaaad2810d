"""A database that has lived: every kind of ending, skip, pause, edit and loss, made by the product itself.

``lived_file`` copies it, with its clock at the instant at which it was left: one run is in work, one waits for it.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gnomon.domain.caller import system
from gnomon.domain.instants import from_micros
from gnomon.domain.schedule import Schedule
from gnomon.domain.target import Target, TargetKind
from gnomon.services.mint import Mint
from gnomon.services.pausing import disable_of_target
from gnomon.services.sessions import Sessions
from gnomon.testing.clock import FrozenClock, SeededEntropy
from support import lived_board, lived_jobs
from support.databases import START, open_database
from support.desk import Desk, a_desk
from support.house import AGENT, House, a_team, an_agent
from support.rows import add

EVERY_5 = {"unit": "minute", "every": 5}
OTHER_AGENT = "agt_" + "1" * 20
TEAM = "tea_" + "0" * 20


@dataclass
class Life:
    """Whose life it was: schedules by what became of them, and where the clock was left."""

    desk: Desk
    schedules: dict[str, str] = field(default_factory=dict)

    @property
    def house(self) -> House:
        """The one process that did most of it."""
        return self.desk.house

    async def make(self, name: str, **fields: object) -> Schedule:
        """A schedule with a slot every five minutes."""
        made = await self.desk.make(EVERY_5, name=name, **fields)
        self.schedules[name] = made.id
        return made

    async def elapse(self, seconds: int) -> None:
        """Let time pass as it does in a process whose watchdog watches."""
        for begun in range(0, seconds, 60):
            await self.house.elapse(min(60, seconds - begun))
            await self.house.engine.watchdog.tick()

    async def slot(self) -> None:
        """The next five minutes, and what comes due in them."""
        await self.elapse(300)
        await self.house.dispatch()
        await self.house.idle()

    async def end(self, made: Schedule) -> None:
        """No slot of it comes between what follows."""
        await self.elapse(100)
        await self.desk.pausing.pause(made.id, "bo", reason="enough")


async def _plain(life: Life) -> None:
    made = await life.make("plain")
    await life.slot()
    await life.slot()
    await life.desk.run_now.run(made.id, "cy")
    await life.house.claim()
    await life.house.idle()
    await life.end(made)
    await life.elapse(900)
    await life.desk.pausing.resume(made.id, "bo")
    await life.slot()
    await life.end(made)


async def _retried(life: Life) -> None:
    made = await life.make("retried", retry={"max_attempts": 2, "backoff_seconds": 5})
    life.house.runtime.fails(retryable=True)
    await life.slot()
    await life.elapse(10)
    await life.house.claim()
    await life.house.idle()
    life.house.runtime.fails()
    await life.slot()
    await life.end(made)


async def _standstill(life: Life) -> None:
    made = await life.make("standstill")
    await life.slot()
    await life.elapse(1_500)
    await life.slot()
    await life.end(made)


async def _skipped(life: Life) -> None:
    made = await life.make("skipped")
    hold = life.house.runtime.hangs()
    await life.elapse(300)
    await life.house.dispatch()
    await hold.started.wait()
    await life.elapse(300)
    await life.house.dispatch()
    hold.release("late")
    await life.house.idle()
    await life.slot()
    await life.end(made)


async def _edited(life: Life) -> None:
    made = await life.make("edited")
    await life.slot()
    await life.desk.schedules.edit(made.id, {"cadence": {"unit": "minute", "every": 10}}, "cy")
    await life.slot()
    await life.slot()
    await life.end(made)


async def _erased(life: Life) -> None:
    made = await life.make("erased")
    await life.slot()
    (run,) = await life.house.rows("SELECT * FROM runs WHERE schedule_id = :id", id=made.id)
    await Sessions(life.house.database).erase(system("ana"), "ses_" + run["id"][4:])
    await life.end(made)


async def _fixed(life: Life) -> None:
    made = await life.make("fixed", session_mode="fixed")
    await life.slot()
    await life.slot()
    await life.end(made)


async def _counted(life: Life) -> None:
    await life.make("counted", max_runs=1)
    await life.slot()


async def _deleted(life: Life) -> None:
    made = await life.make("deleted")
    await life.slot()
    await life.desk.schedules.edit(made.id, {"query": "go on"}, "cy")
    await life.slot()
    await life.desk.schedules.delete(made.id, "ana")


async def _team(life: Life) -> None:
    nodes = [
        {"id": "a", "agent": AGENT, "query": "{{query}}", "after": []},
        {"id": "b", "agent": AGENT, "query": "{{nodes.a.output}}", "after": ["a"]},
    ]
    await a_team(life.house.database, TEAM, nodes, "b")
    made = await life.make("team", target={"kind": "team", "id": TEAM})
    await life.slot()
    await life.end(made)


async def _gone(life: Life) -> None:
    database = life.house.database
    await an_agent(database, OTHER_AGENT)
    await life.make("gone", target={"kind": "agent", "id": OTHER_AGENT})
    await life.slot()
    key = {"name": "k", "hint": "abcd", "created_at": 0, "created_by": "ana", "target_kind": "agent"}
    await add(
        database, "api_keys", key, id="key_1", hash=b"1", target_id=OTHER_AGENT, revoked_at=1, scopes="[]"
    )
    await life.house.rows("UPDATE agents SET deleted_at = 1 WHERE id = :id", id=OTHER_AGENT)
    await database.write(lambda tx: disable_of_target(tx, Target(TargetKind.AGENT, OTHER_AGENT), "ana"))


async def _lost(life: Life) -> None:
    """A neighbour takes a run and dies: it is lost, or another process resumes it."""
    for name, on_lost in (("lost", "fail"), ("resumed", "resume")):
        made = await life.make(name, on_lost=on_lost)
        other = await life.house.neighbour(seed=len(name))
        hold = other.runtime.hangs()
        await life.elapse(300)
        await other.dispatch()
        await hold.started.wait()
        other.direct.close()
        await life.elapse(200)
        await life.house.claim()
        await life.house.idle()
        await life.end(made)


STAGES: tuple[Callable[[Life], Awaitable[None]], ...] = (
    _plain,
    _retried,
    _standstill,
    _skipped,
    _edited,
    _erased,
    _fixed,
    _counted,
    _deleted,
    _team,
    _gone,
    _lost,
)


async def live(house: House) -> Life:
    """All of it, in one open house."""
    await an_agent(house.database)
    life = Life(a_desk(house))
    for stage in STAGES:
        await stage(life)
    await lived_board.live(house)
    await lived_jobs.live(house)
    await life.make("held", overlap="queue_one")
    hold = house.runtime.hangs()
    await life.elapse(300)
    await house.dispatch()
    await hold.started.wait()
    await life.elapse(300)
    await house.dispatch()
    return life


@cache
def _template() -> tuple[tempfile.TemporaryDirectory[str], Path, int, dict[str, str]]:
    folder = tempfile.TemporaryDirectory(prefix="gnomon-lived-")

    async def make() -> tuple[int, dict[str, str]]:
        clock = FrozenClock(START)
        database = await open_database(Path(folder.name), clock)
        house = await House(database, clock, Mint(clock, SeededEntropy())).open()
        life = await live(house)
        house.direct.close()
        await database.close()
        return clock.micros(), life.schedules

    micros, schedules = asyncio.run(make())
    return folder, Path(folder.name) / "gnomon.db", micros, schedules


def lived_file(folder: Path) -> tuple[Path, FrozenClock, dict[str, str]]:
    """A copy of the life in ``folder``, a clock that stands where it was left, and its schedules by name.

    Not to be called inside an event loop.
    """
    _, path, micros, schedules = _template()
    copied = folder / "lived.db"
    shutil.copyfile(path, copied)
    return copied, FrozenClock(from_micros(micros)), schedules
