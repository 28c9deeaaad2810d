"""What instances say of triggers, and what people read of them (JOB-4, JOB-5).

Only the instance that has a trigger may acknowledge or end it, over its present connection; whoever else says so is told,
changes nothing, and stands in the audit.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from gnomon.domain.audit import Action
from gnomon.domain.errors import Conflict, FenceStale, GnomonError, Missing
from gnomon.domain.form import Form
from gnomon.domain.ids import Kind, is_id
from gnomon.domain.instants import SECOND
from gnomon.domain.trigger import ENDED, NOTE_CHARACTERS, Trigger, TriggerReason, TriggerStatus
from gnomon.ports.push import Push, Speaker
from gnomon.ports.wakeup import Wakeup
from gnomon.services.trigger_returns import let_go
from gnomon.stores import audit, instances, jobs, triggers
from gnomon.stores.database import Database, Tx

# An instance that came back without a word on what it still has may end what it had acknowledged within that. It may as
# well have been started anew, and what it never ends would take its room for ever.
UNSAID_SECONDS = 3_600
_RESULTS = (TriggerStatus.SUCCEEDED.value, TriggerStatus.FAILED.value)
Frame = dict[str, Any]


class Triggers:
    """The triggers of one database, as their instances and people see them."""

    def __init__(
        self, database: Database, push: Push, signal: Wakeup, *, heartbeat_timeout_seconds: float
    ) -> None:
        self._database = database
        self._lost_us = round(heartbeat_timeout_seconds * SECOND)
        self._push = push
        self._signal = signal
        # triggers that instances ended here, by status, for the metrics
        self.ended: Counter[str] = Counter()

    async def page(
        self, job_name: str, before: int, limit: int, status: TriggerStatus | None = None
    ) -> list[Trigger]:
        """Triggers of a job whose slots lie before an instant, the newest first.

        Raises:
            Missing: there is no job of this id or slug.
        """

        async def work(tx: Tx) -> list[Trigger]:
            job = await jobs.find(tx, job_name)
            if job is None:
                raise Missing(f'There is no job "{job_name[:64]}".')
            return await triggers.page(tx, job.id, before, limit, status)

        return await self._database.read(work)

    async def acknowledge(self, speaker: Speaker, frame: Frame) -> None:
        """``ack``: the instance has the trigger. Saying it again changes nothing.

        Raises:
            Invalid: with what is wrong with the frame.
            Missing: there is no such trigger.
            FenceStale: it is not this instance's, over its present connection.
        """
        form = Form(frame)
        trigger_id = _trigger_id(form)
        form.finish()

        async def work(tx: Tx) -> GnomonError | None:
            if not await triggers.acknowledge(tx, trigger_id, speaker.instance_id, speaker.epoch):
                return await self._refusal(tx, speaker, trigger_id, "ack", _is_acknowledged)
            await _note(tx, speaker, Action.ACKNOWLEDGE, trigger_id, {})
            return None

        await self._do(work)

    async def finish(self, speaker: Speaker, frame: Frame) -> None:
        """``result``: the instance has ended the trigger, acknowledged or not. Saying the same again changes nothing.

        Raises:
            Invalid, Missing, FenceStale: as ``acknowledge``.
            Conflict: ``already_ended``, with another status.
        """
        form = Form(frame)
        trigger_id = _trigger_id(form)
        said = form.choice("status", _RESULTS, required=True)
        note = form.text("note", 0, NOTE_CHARACTERS, line=False)
        form.finish()
        status = TriggerStatus(said or "")
        reason = TriggerReason.REPORTED if status is TriggerStatus.FAILED else None

        async def work(tx: Tx) -> GnomonError | None:
            if not await triggers.finish(
                tx, trigger_id, speaker.instance_id, speaker.epoch, status, reason, note
            ):
                return await self._refusal(
                    tx, speaker, trigger_id, "result", lambda one: one.status is status
                )
            await _note(tx, speaker, Action.FINISH, trigger_id, {"status": status})
            return None

        await self._do(work)
        self.ended[status] += 1
        self._signal.notify()  # there is room again

    async def hello(self, speaker: Speaker, frame: Frame) -> None:
        """A new connection: what its instance still has stays with it, what it does not have any more is let go.

        Where it does not say what it has, what it acknowledged stays with it for a while. What it works on and is not
        its own any more is revoked.
        """
        listed = frame.get("in_flight")
        said = {trigger_id for one in listed or () if (trigger_id := _listed(one)) is not None}
        if not said and not await self._database.read(lambda tx: triggers.held(tx, speaker.instance_id)):
            return  # as with most, of whom a thousand may come at once

        async def work(tx: Tx) -> set[str]:
            return said - await self._meet(tx, speaker, said, tells=listed is not None)

        for trigger_id in sorted(await self._database.write_guarded(work)):
            revoke = {"type": "revoke", "trigger_id": trigger_id}
            await self._push.send(speaker.instance_id, speaker.epoch, revoke)
        self._signal.notify()

    async def _meet(self, tx: Tx, speaker: Speaker, said: set[str], *, tells: bool) -> set[str]:
        """What of its own an instance has said that it has; ``tells`` is whether it said anything of that."""
        kept, others = set(), []
        for one in await triggers.held(tx, speaker.instance_id):
            if one.id in said:
                if await triggers.keep(tx, one.id, speaker.instance_id, speaker.epoch):
                    kept.add(one.id)
                    if one.status is TriggerStatus.PUSHED:
                        await _note(tx, speaker, Action.ACKNOWLEDGE, one.id, {"by": "hello"})
            elif not tells and one.status is TriggerStatus.ACKNOWLEDGED:
                unsaid_us = UNSAID_SECONDS * SECOND
                await triggers.keep(tx, one.id, speaker.instance_id, speaker.epoch, unsaid_us)
            elif one.epoch not in {0, speaker.epoch}:
                others.append(one)
        await let_go(tx, others, "not_in_flight", self._lost_us)
        return kept

    async def _do(self, work: Callable[[Tx], Awaitable[GnomonError | None]]) -> None:
        """A refusal is raised after the commit: it stands in the audit."""
        refusal = await self._database.write_guarded(work)
        if refusal is not None:
            raise refusal

    async def _refusal(
        self, tx: Tx, speaker: Speaker, trigger_id: str, said: str, repeats: Callable[[Trigger], bool]
    ) -> GnomonError | None:
        """Why nothing was changed; ``None`` where it had been said before."""
        trigger = await triggers.get(tx, trigger_id)
        if trigger is None:
            return Missing(f"There is no trigger {trigger_id}.")
        instance = await instances.get(tx, speaker.instance_id)
        if (
            instance is not None
            and instance.epoch == speaker.epoch
            and trigger.instance_id == speaker.instance_id
            and trigger.status is not TriggerStatus.PENDING
        ):
            if repeats(trigger):
                return None
            if trigger.reason is not TriggerReason.INSTANCE_LOST and trigger.status in ENDED:
                return Conflict(
                    f"Trigger {trigger_id} has {trigger.status.value} already; that stands.",
                    code="already_ended",
                )
        detail: dict[str, object] = {"said": said, "epoch": speaker.epoch, "status": trigger.status}
        await _note(tx, speaker, Action.FENCED, trigger_id, detail)
        return FenceStale(
            f"Trigger {trigger_id} is not yours any more: it was passed on, or has ended, while you were not "
            "connected or had not acknowledged it. Stop working on it; nothing was changed.",
            data={"trigger_id": trigger_id},
        )


def _is_acknowledged(trigger: Trigger) -> bool:
    """An acknowledgement that comes again, or after the result, says nothing new."""
    return trigger.acknowledged_at is not None and trigger.reason is not TriggerReason.INSTANCE_LOST


def _listed(item: object) -> str | None:
    """The trigger that an item of ``in_flight`` names: an id, or an object with it; runs are others' affair."""
    found = item.get("trigger_id") if isinstance(item, dict) else item
    return found if isinstance(found, str) and is_id(Kind.TRIGGER, found) else None


def _trigger_id(form: Form) -> str:
    return form.text("trigger_id", 1, 64, required=True) or ""


async def _note(tx: Tx, speaker: Speaker, action: Action, trigger_id: str, detail: dict[str, object]) -> None:
    await audit.append(
        tx,
        actor=speaker.instance_id,
        action=action,
        subject_kind="trigger",
        subject_id=trigger_id,
        fence=speaker.epoch,
        detail=detail,
    )
