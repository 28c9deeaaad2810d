"""The tick of jobs: each due slot gets one trigger, and each trigger that waits an instance, if one has room (JOB-2).

A trigger, the place at its instance and the job's next instant are written in one transaction, in which a slot that has
a trigger already gets no other (JOB-3). Whoever holds the connection of the instance sends it (``trigger_delivery``).
Nobody there: it waits through its grace, and is missed with the reason (JOB-4).
"""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

import structlog

from gnomon.domain.audit import Action
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND
from gnomon.domain.trigger import TriggerReason
from gnomon.ports.wakeup import Wakeup
from gnomon.services.job_plan import JobPlan, plan_job
from gnomon.services.mint import Mint
from gnomon.stores import audit, instances, jobs, slots, triggers
from gnomon.stores.audit import new_entry
from gnomon.stores.database import Database, Row, Tx

ACTOR = "dispatcher"
BATCH = 100
HELD_SECONDS = 0.05  # others are at work on what is due
NOT_YET_SECONDS = 0.2  # until the heartbeat of a process that stood still is fresh again
_log = structlog.get_logger()


class _Look(NamedTuple):
    """Microseconds until a job is due and until a wait is over, and whether anything that waits can be helped."""

    due_us: int | None
    over_us: int | None
    givable: bool

    @property
    def idle(self) -> bool:
        return not self.givable and all(us is None or us > 0 for us in (self.due_us, self.over_us))

    def wait(self) -> float | None:
        waits = [us / SECOND for us in (self.due_us, self.over_us) if us is not None]
        return max(0.0, min(waits)) if waits else None


class _Page(NamedTuple):
    """Where a walk over what waits has come to: the last one's end of waiting and id; ``None`` where it is at its end."""

    after: tuple[int, str] | None
    settled: int


class JobDispatcher:
    """Makes triggers; one of any number, in any number of processes."""

    def __init__(
        self,
        *,
        database: Database,
        mint: Mint,
        wakeup: Wakeup,
        may_claim: Callable[[], bool] = lambda: True,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._mint = mint
        self._wakeup = wakeup
        self._may_claim = may_claim
        self._batch = batch
        # triggers by what became of them here, for the metrics
        self.made: Counter[str] = Counter()

    async def tick(self) -> float | None:
        """Do everything that is due; seconds until more is, or ``None`` where nothing is known to come."""
        look = await self._database.look(_look)
        if look.idle:  # the common tick reads once and writes nothing
            return look.wait()
        if not self._may_claim():
            return NOT_YET_SECONDS
        moved = 0
        while look.due_us is not None and look.due_us <= 0:
            seen, landed = await self._fire()
            moved += landed
            if seen < self._batch or not landed:
                break
        if look.givable or (look.over_us is not None and look.over_us <= 0):
            moved += await self._settle_waiting()
        if moved:
            self._wakeup.notify()
        look = await self._database.look(_look)
        return look.wait() if look.idle else HELD_SECONDS

    async def _fire(self) -> tuple[int, int]:
        """One batch of due jobs: how many there were, and how many of them this process moved on."""
        seen, landed, made = await self._database.write_guarded(self._fire_batch)
        self.made.update(made)
        return seen, landed

    async def _fire_batch(self, tx: Tx) -> tuple[int, int, Counter[str]]:
        due = await jobs.due(tx, self._batch)
        slugs = {row["calendar"] for row in due if row["calendar"] is not None}
        calendars = await slots.holidays(tx, slugs) if slugs else {}
        none: frozenset[date] = frozenset()
        plans = [
            plan_job(row, calendars.get(row["calendar"], none), trigger_id)
            for row, trigger_id in zip(due, self._mint.many(Kind.TRIGGER, len(due)), strict=True)
        ]
        for plan in plans:
            if plan.error is not None:
                await _set_aside(tx, plan, plan.error)
        landed = await jobs.advance(tx, [plan.advance for plan in plans if plan.error is None])
        mine = [plan for plan in plans if plan.job_id in landed and plan.trigger is not None]
        recorded = await triggers.record(tx, [plan.trigger for plan in mine if plan.trigger is not None])
        made: Counter[str] = Counter()
        for plan in mine:
            if plan.trigger is not None and plan.trigger["id"] in recorded:
                made[await _begin(tx, plan)] += 1
        return len(due), len(landed) + sum(plan.error is not None for plan in plans), made

    async def _settle_waiting(self) -> int:
        """Walk everything that waits; how many got an instance or were missed."""
        settled, after, empty = 0, (-(2**62), ""), set[str]()
        while True:
            page, made = await self._database.write_guarded(lambda tx: self._settle_page(tx, after, empty))  # noqa: B023
            self.made.update(made)
            settled += page.settled
            if page.after is None:
                return settled
            after = page.after

    async def _settle_page(
        self, tx: Tx, after: tuple[int, str], empty: set[str]
    ) -> tuple[_Page, Counter[str]]:
        """``empty`` gathers the roles of which nobody has room."""
        rows = await triggers.waiting(tx, *after, self._batch)
        made: Counter[str] = Counter()
        for row in rows:
            what = await _settle(tx, row, empty)
            if what is not None:
                made[what] += 1
        last = None if len(rows) < self._batch else (rows[-1]["wait_until"], rows[-1]["id"])
        return _Page(last, sum(made.values())), made


async def _look(tx: Tx) -> _Look:
    return _Look(await jobs.next_due(tx), await triggers.next_over(tx), await triggers.givable(tx))


async def _begin(tx: Tx, plan: JobPlan) -> str:
    """A new trigger gets an instance, where one has room; what became of it."""
    row = plan.trigger
    assert row is not None
    nominal, trigger_id = row["nominal_fire_at"], str(row["id"])
    detail: dict[str, object] = {"nominal_fire_at": nominal, "trigger_id": trigger_id}
    if row["coalesced_count"] is not None:
        detail["coalesced"] = row["coalesced_count"]
    if not plan.waits:
        detail["reason"] = row["reason"]
        await _note(tx, Action.SKIP, plan.job_id, detail)
        return "missed"
    chosen = await _choose(tx, plan.role, None)
    if chosen is not None:
        await triggers.give(tx, trigger_id, chosen)
        await jobs.fired(tx, [{"id": plan.job_id, "at": nominal}])
    await _note(tx, Action.TRIGGER, plan.job_id, {**detail, "instance_id": chosen})
    return "waiting" if chosen is None else "given"


async def _settle(tx: Tx, row: Row, empty: set[str]) -> str | None:
    """What waits gets an instance, or is missed, or waits on (``None``)."""
    role = row["role"]
    off = _off(row)
    if off is not None:
        return await _miss(tx, row, off)
    if row["wait_until"] <= row["now"]:
        there = await triggers.connected(tx, role)
        return await _miss(tx, row, TriggerReason.NO_ROOM if there else TriggerReason.NO_INSTANCE)
    if role in empty:
        return None
    chosen = await _choose(tx, role, row["taken_from"])
    if chosen is None:
        empty.add(role)
        return None
    if not await triggers.give(tx, row["id"], chosen):
        return None
    await jobs.fired(tx, [{"id": row["job_id"], "at": row["nominal_fire_at"]}])
    detail: dict[str, object] = {"instance_id": chosen, "job_id": row["job_id"]}
    await audit.append_many(tx, [new_entry(ACTOR, Action.GIVE, "trigger", row["id"], None, detail)])
    return "given"


async def _choose(tx: Tx, role: str, taken_from: str | None) -> str | None:
    """The instance that is to get it: another one than it was taken from, unless there is no other (JOB-4)."""
    chosen = await instances.place(tx, role, but=taken_from or "")
    if chosen is None and taken_from is not None:
        chosen = await instances.place(tx, role)
    return chosen


def _off(row: Row) -> TriggerReason | None:
    if row["deleted_at"] is not None:
        return TriggerReason.JOB_DELETED
    return None if row["enabled"] else TriggerReason.JOB_DISABLED


async def _miss(tx: Tx, row: Row, reason: TriggerReason) -> str | None:
    if not await triggers.miss(tx, row["id"], reason):
        return None
    detail: dict[str, object] = {
        "nominal_fire_at": row["nominal_fire_at"],
        "trigger_id": row["id"],
        "reason": reason,
    }
    await _note(tx, Action.SKIP, row["job_id"], detail)
    return "missed"


async def _set_aside(tx: Tx, plan: JobPlan, error: str) -> None:
    """A job whose next slot can't be computed stops no other (DSP-9a)."""
    if await jobs.set_aside(tx, plan.job_id, plan.version, ACTOR, error[:1_000]):
        _log.error("job_set_aside", job_id=plan.job_id, error=error)
        await _note(tx, Action.SET_ASIDE, plan.job_id, {"error": error[:1_000]})


async def _note(tx: Tx, action: Action, job_id: str, detail: dict[str, object]) -> None:
    await audit.append_many(tx, [new_entry(ACTOR, action, "job", job_id, None, detail)])
