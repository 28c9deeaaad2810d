"""The board: tasks made, read, edited, deleted by people; claimed, renewed, reported by instances (BRD).

What a claim or a report does inside its transaction, ``services.task_claims`` knows, what people write,
``services.task_writing``; what is taken from the silent, ``services.task_sweep``.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from gnomon.domain import task_form as forms
from gnomon.domain.caller import Caller
from gnomon.domain.errors import FenceStale
from gnomon.domain.filters import TaskFilter
from gnomon.domain.form import Form
from gnomon.domain.ids import Kind
from gnomon.domain.instants import SECOND
from gnomon.domain.task import REPORTABLE, Task, TaskGrant, TaskStatus
from gnomon.domain.task_form import ClaimForm
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services import task_claims, task_writing
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.services.task_claims import Claimer, Reported, there
from gnomon.services.task_writing import MadeTask
from gnomon.stores import tasks
from gnomon.stores.database import Database, Tx
from gnomon.stores.tasks import Hold

T = TypeVar("T")
POLL_SECONDS = 5.0  # of a claim that waits: a wakeup that was lost costs no more
REASON_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Renewed:
    """A renewed claim."""

    task: Task

    @property
    def expires_at(self) -> datetime:
        """Until when it holds now."""
        assert self.task.held_by is not None
        return self.task.held_by.expires_at


async def stays() -> bool:
    """Whoever waits is still there."""
    return False


class Tasks:
    """The board of one database.

    ``lock_seconds`` is how long a claim holds without being renewed; an instance that is silent for
    ``heartbeat_timeout_seconds`` loses it as well (BRD-4).
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        mint: Mint,
        signal: Wakeup,
        *,
        lock_seconds: float,
        heartbeat_timeout_seconds: float,
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._signal = signal
        self._lock_us = round(lock_seconds * SECOND)
        self._stopping = False
        self.renew_seconds = (
            min(lock_seconds, heartbeat_timeout_seconds) / 3
        )  # how often a holder should renew

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> MadeTask | Replay:
        """Put a task on the board; one whose dedup key is there already is given as it stands.

        Raises:
            Invalid: with every fault; ``dedup_key_reused``, the key made another task before.
        """
        form = Form(given)
        draft = forms.read_new(form)
        form.finish()

        async def work(tx: Tx) -> MadeTask:
            return await task_writing.create(tx, caller, self._mint.make(Kind.TASK), draft)

        made = await self._database.write_guarded(lambda tx: run_once(tx, once, work))
        if isinstance(made, MadeTask) and not made.existed and not made.task.waits_for:
            self._signal.notify()
        return made

    async def get(self, caller: Caller, task_id: str) -> Task:  # noqa: ARG002 - as every method of a board
        """The task of this id.

        Raises:
            Missing: there is none.
        """
        return await self._database.read(lambda tx: there(tx, task_id))

    async def page(self, caller: Caller, chosen: TaskFilter, after: str, limit: int) -> list[Task]:  # noqa: ARG002
        """Up to ``limit`` tasks after an id, the oldest first."""
        return await self._database.read(lambda tx: tasks.page(tx, chosen, after, limit))

    async def edit(self, caller: Caller, task_id: str, patch: Mapping[str, Any]) -> Task:
        """Lay a patch over a task that nobody holds; one that changes nothing changes nothing.

        Raises:
            Invalid: with every fault; ``dependency_cycle``, naming it (BRD-8).
            Missing: there is none of this id.
            Conflict: ``task_held``, naming the holder.
        """
        saved = await self._database.write_guarded(lambda tx: task_writing.edit(tx, caller, task_id, patch))
        self._signal.notify()
        return saved

    async def delete(self, caller: Caller, task_id: str) -> None:
        """Delete a task that nobody holds and no other task needs.

        Raises:
            Missing: there is none of this id.
            Conflict: ``task_held``, naming the holder; ``task_needed``, naming some of those that need it.
        """
        await self._database.write_guarded(lambda tx: task_writing.delete(tx, caller, task_id))

    async def claim(
        self,
        caller: Caller,
        given: Mapping[str, Any],
        *,
        is_gone: Callable[[], Awaitable[bool]] = stays,
    ) -> list[TaskGrant]:
        """Tasks for an instance to work on, the most urgent first; none where there is nothing, or where it drains.

        With ``wait_seconds`` it waits so long for the first one; nothing is claimed for whoever ``is_gone`` by then.

        Raises:
            Invalid: with every fault.
            Refused: ``key_bound_to_role``, the key serves another role.
        """
        form = Form(given)
        claim = forms.read_claim(form)
        form.finish()
        caller.require_role(claim.role)
        claimer = Claimer(
            caller,
            self._mint.make(Kind.INSTANCE),
            claim.claim_id or self._mint.make(Kind.CLAIM),
            self._lock_us,
        )
        until = self._clock.monotonic() + claim.wait_seconds
        while True:
            seen = self._signal.version
            found = await self._database.write_guarded(lambda tx: task_claims.claim(tx, claimer, claim))
            if found or not await self._wait(claim, seen, until, is_gone):
                return found

    async def renew(self, caller: Caller, task_id: str, given: Mapping[str, Any]) -> Renewed:
        """Hold a task for another lock window from now on; ``note`` says how far it has come (BRD-2).

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id.
            FenceStale: somebody else holds it, or nobody: nothing was changed but the audit.
            Refused: as ``claim``.
        """
        form = Form(given)
        renewal = forms.read_renew(form)
        form.finish()
        held = Hold(task_id, renewal.fence, caller.actor, renewal.instance)

        async def work(tx: Tx) -> Task | FenceStale:
            outcome = await task_claims.renew(tx, held, renewal, self._lock_us)
            if isinstance(outcome, Task):
                caller.require_role(outcome.role)
            return outcome

        return Renewed(landed(await self._database.write_guarded(work)))

    async def report(self, caller: Caller, task_id: str, given: Mapping[str, Any]) -> Reported:
        """Say what became of a task, which releases it (BRD-3).

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id.
            FenceStale: as ``renew``.
            Refused: as ``claim``.
        """
        form = Form(given)
        report = forms.read_report(form)
        form.finish()
        held = Hold(task_id, report.fence, caller.actor, report.instance)

        async def work(tx: Tx) -> Reported | FenceStale:
            outcome = await task_claims.report(tx, held, report)
            if isinstance(outcome, Reported) and not outcome.replayed:
                caller.require_role(outcome.role)
            return outcome

        done = landed(await self._database.write_guarded(work))
        if done.frees:  # every other loop would be woken for nothing, too
            self._signal.notify()
        return done

    async def release(self, caller: Caller, task_id: str, given: Mapping[str, Any]) -> Task:
        """Take a task from its holder by a person's word, back to the backlog or to the status that is named.

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id.
            Conflict: ``task_not_held``.
        """
        form = Form(given)
        form.only(("reason", "status"))
        reason = form.text("reason", 0, REASON_CHARACTERS)
        allowed = sorted(status.value for status in REPORTABLE)
        status = TaskStatus(form.choice("status", allowed, default=TaskStatus.BACKLOG) or TaskStatus.BACKLOG)
        form.finish()
        task = await self._database.write_guarded(
            lambda tx: task_claims.release_by_force(tx, caller, task_id, status, reason)
        )
        self._signal.notify()
        return task

    def end_waits(self) -> None:
        """Let nobody wait here any more: the process stops, and each gets the answer that there is nothing (DSP-10)."""
        self._stopping = True
        self._signal.notify()

    async def _wait(
        self, claim: ClaimForm, seen: int, until: float, is_gone: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Until there is something to claim; ``False`` once time is up, or whoever waited has gone, or the process stops."""
        while True:
            left = until - self._clock.monotonic()
            if left <= 0 or self._stopping:
                return False
            seen = await self._signal.wait(seen, min(left, POLL_SECONDS))
            if await is_gone():
                return False
            if await self._database.look(lambda tx: tasks.is_waiting(tx, claim.role)):
                return True


def landed(outcome: T | FenceStale) -> T:
    """What a write by a holder gave, after its commit.

    Raises:
        FenceStale: nothing was changed but the audit.
    """
    if isinstance(outcome, FenceStale):
        raise outcome
    return outcome


async def require_role_of(tx: Tx, caller: Caller, task_id: str) -> None:
    """Let a caller through to a task of the role that their key serves.

    Raises:
        Missing: there is no such task.
        Refused: as ``claim``.
    """
    if caller.role is not None:
        caller.require_role((await there(tx, task_id)).role)
