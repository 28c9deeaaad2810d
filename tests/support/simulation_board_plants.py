"""Guards of the board, of jobs and of pushes taken out, one at a time: the simulator must notice each (PRF-4).

As ``simulation_plants``, whose form they have.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from gnomon.services import trigger_returns
from gnomon.services.job_dispatcher import JobDispatcher
from gnomon.services.task_sweep import TaskSweep
from gnomon.services.tasks import Tasks
from gnomon.services.trigger_returns import Returned
from gnomon.services.triggers import Triggers
from gnomon.stores import jobs, queries, tasks
from gnomon.stores.database import Row, Tx
from gnomon.stores.queries import Query
from support.simulation_board import BoardScript
from support.simulation_plants import without

Changed = Mapping[str, Query]


@dataclass(frozen=True, slots=True)
class BoardPlant:
    """A guard that is missing, the kind of world in which that shows soonest, and the invariant that it breaks."""

    name: str
    take_out: Callable[[], AbstractContextManager[Changed]]
    script: BoardScript
    shows: str


@contextmanager
def unguarded_claim() -> Iterator[Changed]:
    """Candidates are read in one transaction and taken in another, which asks no more (BRD-1)."""
    seen: dict[str, list[str]] = {}  # by claim
    query = queries.load("sqlite")["tasks.claim"]
    text = query.text
    for old, new in (
        (
            "WHERE role = :role AND status = 'backlog' AND unmet = 0",
            "WHERE id IN (SELECT value FROM json_each(:role))",
        ),
        (
            "ON CONFLICT (task_id) DO NOTHING",
            """ON CONFLICT (task_id) DO UPDATE SET instance_id = excluded.instance_id, fence = excluded.fence,
            claim_id = excluded.claim_id, expires_at = excluded.expires_at""",
        ),
    ):
        assert text.count(old) == 1, f"{old!r} is not in tasks.claim any more"
        text = text.replace(old, new)
    real_service, real_store = Tasks.claim, tasks.claim

    async def look_first(board: Any, caller: Any, given: Any, **rest: Any) -> Any:
        async def look(tx: Tx) -> list[str]:
            page = await tx.tuples("tasks.page", after="", role=given["role"], status="backlog", limit=50)
            found = await tasks.records(tx, [row[0] for row in page])
            return [task.id for task in found.values() if not task.waits_for]

        seen[given["claim_id"]] = await board._database.read(look)
        return await real_service(board, caller, given, **rest)

    async def take(tx: Tx, role: str, instance_id: str, **rest: Any) -> Any:
        del role
        return await real_store(tx, json.dumps(seen[rest["claim_id"]]), instance_id, **rest)

    with patch.object(Tasks, "claim", look_first), patch.object(tasks, "claim", take):
        begin = queries.load("sqlite")["tasks.begin"]
        loose = begin.text.replace(" AND status = 'backlog'", "")
        assert loose != begin.text
        yield {
            "tasks.claim": replace(query, statements=(text,)),
            "tasks.begin": replace(begin, statements=(loose,)),
        }


@contextmanager
def unfenced_report() -> Iterator[Changed]:
    """A task is reported by whoever has been its holder (BRD-3)."""
    yield {**without("sqlite", "tasks.release", "fence = :fence", _BY_ACTOR, _BY_NAME), **_moved_by_anybody()}


_BY_ACTOR = "(CAST(:instance AS TEXT) IS NOT NULL OR claimed_by = :actor)"
_BY_NAME = """(CAST(:instance AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM instances AS i WHERE i.id = task_locks.instance_id AND i.name = :instance
  ))"""


def _moved_by_anybody() -> dict[str, Query]:
    return without("sqlite", "tasks.move", "fence = :fence")


@contextmanager
def blind_sweep() -> Iterator[Changed]:
    """What looked expired is taken, whether it was renewed since or not, and whatever the clock did (BRD-4, RUN-5b)."""
    real = TaskSweep.__init__

    async def steady(_: Tx) -> bool:
        return False

    def blind(sweep: Any, *args: Any, **kwargs: Any) -> None:
        real(sweep, *args, **{**kwargs, "calm_us": lambda: None, "jumped": steady})

    with patch.object(TaskSweep, "__init__", blind):
        yield {}


@contextmanager
def late_sweep() -> Iterator[Changed]:
    """What is over is taken five minutes after that (BRD-5)."""
    query = queries.load("sqlite")["tasks.expired"]
    text = query.text
    for over in ("l.expires_at <= now_us() AND", "last_heartbeat_at <= now_us() - :timeout_us"):
        assert text.count(over) == 1, f"{over!r} is not in tasks.expired any more"
        text = text.replace(over, over.replace("now_us()", "now_us() - 300000000"))
    yield {"tasks.expired": replace(query, statements=(text,))}


@contextmanager
def unfenced_result() -> Iterator[Changed]:
    """A trigger is ended by whoever names it (JOB-4)."""
    yield without(
        "sqlite",
        "triggers.finish",
        "instance_id = :instance_id\n",
        "EXISTS (SELECT 1 FROM instances AS i WHERE i.id = :instance_id AND i.epoch = :epoch)",
    )


@contextmanager
def trigger_apart() -> Iterator[Changed]:
    """Due jobs are read, then something is waited for; then they are moved on and their triggers made, unasked (JOB-2)."""
    scans: Counter[str] = Counter()  # by process
    real = jobs.due

    async def look_first(dispatcher: Any) -> Any:
        database = dispatcher._database
        stale = await database.read(lambda tx: real(tx, 100))
        scans[database.actor] += 1
        if scans[database.actor] % 3 == 0:
            await asyncio.sleep(400.0)

        async def fire(tx: Tx) -> Any:
            with patch.object(jobs, "due", lambda *_: _given(stale)):
                return await dispatcher._fire_batch(tx)

        seen, landed, made = await database.write_guarded(fire)
        dispatcher.made.update(made)
        return seen, landed

    guards = (
        "next_fire_at + 0 = :claimed_at",
        "version = :seen_version",
        "coalesce(recorded_until, -1) = coalesce(:seen_recorded, -1)",
    )
    with patch.object(JobDispatcher, "_fire", look_first):
        yield without("sqlite", "jobs.advance", *guards)


async def _given(rows: list[Row]) -> list[Row]:
    return rows


@contextmanager
def another_name() -> Iterator[Changed]:
    """What is pushed again goes out under a new id (JOB-4)."""
    query = queries.load("sqlite")["triggers.take_back"]
    last = "substr(id, 1, 23) || CASE substr(id, 24) WHEN 'z' THEN 'y' ELSE 'z' END"
    yield {
        "triggers.take_back": replace(
            query, statements=(query.text.replace("SET\n", f"SET id = {last},\n", 1),)
        )
    }


@contextmanager
def acknowledged_passed_on() -> Iterator[Changed]:
    """What an instance has acknowledged is given to another when its connection ends (JOB-4)."""

    async def let_go(tx: Tx, held: Any, why: str, _lost_us: int) -> Returned:
        return await trigger_returns.pass_on(tx, held, why)

    with (
        patch("gnomon.services.trigger_sweep.let_go", let_go),
        patch("gnomon.services.triggers.let_go", let_go),
    ):
        yield {}


@contextmanager
def never_returned() -> Iterator[Changed]:
    """A trigger whose connection closed stays where it was (JOB-4)."""

    async def keep(*_: Any, **__: Any) -> Returned:
        return Returned()

    with patch("gnomon.services.trigger_sweep.let_go", keep), patch.object(Triggers, "_meet", _met_by_nobody):
        yield {}


async def _met_by_nobody(*_: Any, **__: Any) -> set[str]:
    return set()


_STORM = partial(BoardScript, calm_share=0.0)
PLANTS = (
    BoardPlant(
        "unguarded task claim", unguarded_claim, _STORM(jumps=False, tilt="freeze"), "claims_end_once"
    ),
    BoardPlant(
        "unfenced task report",
        unfenced_report,
        _STORM(jumps=False, board_plans=("zombie", "quick")),
        "claims_end_once",
    ),
    BoardPlant("blind task sweep", blind_sweep, _STORM(tilt="jump", board_plans=("long",)), "one_holder"),
    BoardPlant("late task sweep", late_sweep, _STORM(jumps=False), "the_abandoned_come_back"),
    BoardPlant(
        "unfenced result", unfenced_result, _STORM(plans=("foreign", "late")), "only_the_present_speak"
    ),
    BoardPlant(
        "trigger outside the guarded advance",
        trigger_apart,
        _STORM(jumps=False, tilt="freeze"),
        "jobs_move_forward",
    ),
    BoardPlant(
        "redelivery under a new id", another_name, _STORM(plans=("deaf", "works")), "one_name_for_each_slot"
    ),
    BoardPlant(
        "acknowledged and passed on",
        acknowledged_passed_on,
        _STORM(plans=("holds",)),
        "triggers_keep_their_order",
    ),
    BoardPlant("never passed on", never_returned, _STORM(plans=("deaf", "works")), "all_comes_to_an_end"),
)
