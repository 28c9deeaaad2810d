"""Agents: made, read, edited, deleted. The signing secret of an http agent is drawn here and shown once (TGT-1)."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gnomon.domain import agent_form
from gnomon.domain.agent import Agent, HttpRuntime, RuntimeSpec
from gnomon.domain.agent_form import AgentDraft
from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Fault, Missing, RevisionStale
from gnomon.domain.form import Form, merged
from gnomon.domain.ids import Kind
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.versions import Match, require
from gnomon.ports.clock import Clock, Entropy
from gnomon.ports.wakeup import Wakeup
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.services.pausing import disable_of_target
from gnomon.stores import agents, api_keys, audit
from gnomon.stores.database import Database, Tx, UniqueViolation

SECRET_BYTES = 32
CheckRuntime = Callable[[RuntimeSpec], list[Fault]]


@dataclass(frozen=True, slots=True)
class SavedAgent:
    """An agent as it stands after a write; ``secret`` only where it has just been drawn."""

    agent: Agent
    secret: str | None = None


class Agents:
    """The agents of one database. ``check_runtime`` says what is wrong with a runtime's address or program (TGT-4)."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        mint: Mint,
        entropy: Entropy,
        signal: Wakeup,
        *,
        check_runtime: CheckRuntime,
    ) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._entropy = entropy
        self._signal = signal
        self._check_runtime = check_runtime

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> SavedAgent | Replay:
        """Make an agent of its written form.

        Raises:
            Invalid: with every fault.
            Conflict: ``slug_taken``.
        """
        draft = self.read(given)

        async def work(tx: Tx) -> SavedAgent:
            return await self.create_in(tx, caller, draft)

        try:
            return await self._database.write(lambda tx: run_once(tx, once, work))
        except UniqueViolation as error:  # another process was first with the slug
            raise _taken(draft.slug) from error

    async def create_in(self, tx: Tx, caller: Caller, draft: AgentDraft) -> SavedAgent:
        """The same inside a transaction of the caller."""
        if await agents.find(tx, draft.slug) is not None:
            raise _taken(draft.slug)
        now = self._clock.now()
        assert draft.runtime is not None
        secret = self._secret_for(draft.runtime)
        agent = Agent(
            id=self._mint.make(Kind.AGENT),
            slug=draft.slug,
            name=draft.name,
            runtime=draft.runtime,
            timeout_seconds=draft.timeout_seconds,
            daily_cap=draft.daily_cap,
            limits=draft.limits,
            enabled=draft.enabled,
            version=1,
            created_at=now,
            created_by=caller.actor,
            updated_at=now,
            secret=secret,
        )
        agent = await agents.insert(tx, agent)
        await _note(tx, caller, Action.CREATE, agent.id, {"slug": agent.slug})
        return SavedAgent(agent, secret)

    async def get(self, name: str) -> Agent:
        """The agent of this id or slug.

        Raises:
            Missing: there is none.
        """
        return await self._database.read(lambda tx: there(tx, name))

    async def page(self, after: str, limit: int) -> list[Agent]:
        """Up to ``limit`` agents after an id, the oldest first."""
        return await self._database.read(lambda tx: agents.page(tx, after, limit))

    async def edit(
        self, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> SavedAgent:
        """Lay a patch over an agent; one that changes nothing changes nothing.

        Raises:
            Invalid: with every fault.
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """
        return await self._database.write(lambda tx: self.edit_in(tx, caller, name, patch, match=match))

    async def edit_in(
        self, tx: Tx, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> SavedAgent:
        """The same inside a transaction of the caller."""
        standing = await there(tx, name)
        require(match, standing.id, standing.version)
        draft = self.read(merged(agent_form.to_written(standing), patch), standing)
        assert draft.runtime is not None
        wanted = replace(
            standing,
            name=draft.name,
            runtime=draft.runtime,
            timeout_seconds=draft.timeout_seconds,
            daily_cap=draft.daily_cap,
            limits=draft.limits,
            enabled=draft.enabled,
        )
        if wanted == standing:
            return SavedAgent(standing)
        drawn = self._secret_for(draft.runtime) if standing.secret is None else None
        kept = standing.secret if isinstance(draft.runtime, HttpRuntime) else None
        saved = await agents.update(tx, replace(wanted, secret=drawn or kept))
        if saved is None:
            raise RevisionStale(f"{standing.id} was edited at the same moment. Read it again, then edit.")
        await _note(tx, caller, Action.UPDATE, saved.id, {"fields": sorted(patch), "version": saved.version})
        return SavedAgent(saved, drawn)

    async def delete(self, caller: Caller, name: str, *, match: Match = None) -> None:
        """Delete an agent: its schedules are disabled and its keys revoked; runs in flight go on (SCH-12).

        Raises:
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """

        async def work(tx: Tx) -> None:
            standing = await there(tx, name)
            require(match, standing.id, standing.version)
            await agents.delete(tx, standing.id)
            await _note(tx, caller, Action.DELETE, standing.id, {"slug": standing.slug})
            await forsake(tx, caller, Target(TargetKind.AGENT, standing.id))

        await self._database.write(work)
        self._signal.notify()

    def read(self, given: Mapping[str, Any], standing: Agent | None = None) -> AgentDraft:
        """Read a written agent, its runtime checked (TGT-4); for ``create_in``.

        Raises:
            Invalid: with every fault.
        """
        form = Form(given)
        draft = agent_form.read(form)
        if standing is not None and draft.slug != standing.slug:
            form.fault("slug", "can't be changed: others may know the agent by it")
        if draft.runtime is not None:
            form.faults += [
                fault for fault in self._check_runtime(draft.runtime) if not form.has_fault(fault.field)
            ]
        form.finish()
        return draft

    def _secret_for(self, runtime: RuntimeSpec) -> str | None:
        if not isinstance(runtime, HttpRuntime):
            return None
        drawn = self._entropy.bits(8 * SECRET_BYTES).to_bytes(SECRET_BYTES, "big")
        return f"whsec_{base64.b64encode(drawn).decode()}"


async def there(tx: Tx, name: str) -> Agent:
    """The agent of this id or slug.

    Raises:
        Missing: there is none.
    """
    found = await agents.find(tx, name)
    if found is None:
        raise Missing(f'There is no agent "{name[:64]}".')
    return found


async def forsake(tx: Tx, caller: Caller, target: Target) -> None:
    """What else ends with a deleted target: its schedules are disabled, the keys bound to it revoked."""
    await disable_of_target(tx, target, caller.actor)
    for key_id in await api_keys.revoke_of_target(tx, target):
        await audit.append(
            tx,
            actor=caller.actor,
            action=Action.REVOKE,
            subject_kind="key",
            subject_id=key_id,
            detail={"reason": "target_deleted"},
        )


def _taken(slug: str) -> Conflict:
    return Conflict(f'There is an agent "{slug}" already.', code="slug_taken", data={"slug": slug})


async def _note(tx: Tx, caller: Caller, action: Action, agent_id: str, detail: dict[str, object]) -> None:
    await audit.append(
        tx, actor=caller.actor, action=action, subject_kind="agent", subject_id=agent_id, detail=detail
    )
