"""What becomes of a trigger whose instance is gone before it ended: passed on, kept for a while, or failed (JOB-4).

One that was not acknowledged goes to another instance, under its own id and dedup key. One that was is never repeated,
since twice is worse: it stays with its instance, which may come back, and fails once that has been gone for too long.
Each step is guarded by the instance and the epoch it was seen under, so any number of servers may do it at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gnomon.domain.audit import Action
from gnomon.domain.trigger import MOST_PUSHES, TriggerReason, TriggerStatus
from gnomon.stores import audit, triggers
from gnomon.stores.audit import NewEntry, new_entry
from gnomon.stores.database import Tx
from gnomon.stores.triggers import Held

ACTOR = "dispatcher"


@dataclass(frozen=True, slots=True)
class Returned:
    """How many triggers wait again, and how many failed."""

    taken_back: int = 0
    failed: int = 0

    def __add__(self, other: "Returned") -> "Returned":
        return Returned(self.taken_back + other.taken_back, self.failed + other.failed)


async def let_go(tx: Tx, held: Iterable[Held], why: str, lost_us: int) -> Returned:
    """Their instance is not there any more; ``why`` is a word for the audit.

    What it has acknowledged is its own for ``lost_us`` yet.
    """
    returned = Returned()
    for one in held:
        if one.status is TriggerStatus.ACKNOWLEDGED:
            await triggers.gone(tx, one, lost_us)
        else:
            returned += await pass_on(tx, [one], why)
    return returned


async def pass_on(tx: Tx, held: Iterable[Held], why: str, *, unsent: bool = False) -> Returned:
    """Another instance is to get what was not acknowledged; ``unsent`` says that this one never got it."""
    returned = Returned()
    for one in held:
        if one.status is TriggerStatus.PUSHED and one.pushes >= MOST_PUSHES and not unsent:
            returned += await fail(tx, one, TriggerReason.NOT_ACKNOWLEDGED)
        elif await triggers.take_back(tx, one, unsent=unsent):
            await audit.append_many(tx, [_entry(one, Action.TAKE_BACK, {"why": why})])
            returned += Returned(taken_back=1)
    return returned


async def fail(tx: Tx, one: Held, reason: TriggerReason) -> Returned:
    """It ends with its instance."""
    if not await triggers.lose(tx, one, reason):
        return Returned()
    detail: dict[str, object] = {"status": TriggerStatus.FAILED, "reason": reason}
    await audit.append_many(tx, [_entry(one, Action.FINISH, detail)])
    return Returned(failed=1)


def _entry(one: Held, action: Action, detail: dict[str, object]) -> NewEntry:
    detail = {"job_id": one.job_id, "instance_id": one.instance_id, **detail}
    return new_entry(ACTOR, action, "trigger", one.id, one.epoch or None, detail)
