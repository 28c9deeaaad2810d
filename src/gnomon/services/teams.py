"""Teams: made, read, checked, edited, deleted (TGT-3).

An enabled team is saved only with a sound graph; one that is not enabled may be a draft with faults, and ``check`` lists
them. Whether its agents are enabled just now is no reason to refuse a save: the gates ask again before each run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gnomon.domain import team_form
from gnomon.domain.audit import Action
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict, Fault, Missing, RevisionStale
from gnomon.domain.form import Form, merged
from gnomon.domain.ids import Kind
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.team import Team, check
from gnomon.domain.team_form import TeamDraft
from gnomon.domain.versions import Match, require
from gnomon.ports.clock import Clock
from gnomon.ports.wakeup import Wakeup
from gnomon.services.agents import forsake
from gnomon.services.dedup import Once, Replay, run_once
from gnomon.services.mint import Mint
from gnomon.stores import audit, targets, teams
from gnomon.stores.database import Database, Tx, UniqueViolation


class Teams:
    """The teams of one database."""

    def __init__(self, database: Database, clock: Clock, mint: Mint, signal: Wakeup) -> None:
        self._database = database
        self._clock = clock
        self._mint = mint
        self._signal = signal

    async def create(
        self, caller: Caller, given: Mapping[str, Any], *, once: Once | None = None
    ) -> Team | Replay:
        """Make a team of its written form.

        Raises:
            Invalid: with every fault, those of its graph among them.
            Conflict: ``slug_taken``.
        """

        async def work(tx: Tx) -> Team:
            return await self.create_in(tx, caller, given)

        try:
            return await self._database.write(lambda tx: run_once(tx, once, work))
        except UniqueViolation as error:  # another process was first with the slug
            raise _taken(str(given.get("slug"))) from error

    async def create_in(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Team:
        """The same inside a transaction of the caller."""
        now = self._clock.now()
        form = Form(given)
        draft = team_form.read(form)
        team = _applied(
            draft,
            Team(
                id=self._mint.make(Kind.TEAM),
                slug=draft.slug,
                name="",
                nodes=(),
                output="",
                daily_cap=None,
                limits=draft.limits,
                enabled=True,
                version=1,
                created_at=now,
                created_by=caller.actor,
                updated_at=now,
            ),
        )
        await _judge(tx, form, draft, team)
        if await teams.find(tx, team.slug) is not None:
            raise _taken(team.slug)
        team = await teams.insert(tx, team)
        await _note(tx, caller, Action.CREATE, team.id, {"slug": team.slug})
        return team

    async def get(self, name: str) -> Team:
        """The team of this id or slug.

        Raises:
            Missing: there is none.
        """
        return await self._database.read(lambda tx: there(tx, name))

    async def page(self, after: str, limit: int) -> list[Team]:
        """Up to ``limit`` teams after an id, the oldest first."""
        return await self._database.read(lambda tx: teams.page(tx, after, limit))

    async def check(self, name: str, patch: Mapping[str, Any] | None = None) -> list[Fault]:
        """Every fault of a team's graph as it stands now, or as it would with a patch laid over it.

        Raises:
            Missing: there is none of this id or slug.
            Invalid: the patch can't be read.
        """

        async def work(tx: Tx) -> list[Fault]:
            team = await there(tx, name)
            if patch:
                form = Form(merged(team_form.to_written(team), patch))
                draft = team_form.read(form)
                form.finish()
                team = _applied(draft, team)
            known = await targets.live_agents(tx, {node.agent for node in team.nodes})
            return check(team, {agent_name: agent.enabled for agent_name, agent in known.items()})

        return await self._database.read(work)

    async def edit(self, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None) -> Team:
        """Lay a patch over a team; one that changes nothing changes nothing.

        Raises:
            Invalid: with every fault, those of its graph among them.
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """
        return await self._database.write(lambda tx: self.edit_in(tx, caller, name, patch, match=match))

    async def edit_in(
        self, tx: Tx, caller: Caller, name: str, patch: Mapping[str, Any], *, match: Match = None
    ) -> Team:
        """The same inside a transaction of the caller."""
        standing = await there(tx, name)
        require(match, standing.id, standing.version)
        form = Form(merged(team_form.to_written(standing), patch))
        draft = team_form.read(form)
        if draft.slug != standing.slug:
            form.fault("slug", "can't be changed: others may know the team by it")
        wanted = _applied(draft, standing)
        await _judge(tx, form, draft, wanted)
        if wanted == standing:
            return standing
        saved = await teams.update(tx, wanted)
        if saved is None:
            raise RevisionStale(f"{standing.id} was edited at the same moment. Read it again, then edit.")
        await _note(tx, caller, Action.UPDATE, saved.id, {"fields": sorted(patch), "version": saved.version})
        return saved

    async def delete(self, caller: Caller, name: str, *, match: Match = None) -> None:
        """Delete a team: its schedules are disabled and its keys revoked; runs in flight go on (SCH-12).

        Raises:
            Missing: there is none of this id or slug.
            RevisionStale: it was edited since the caller read it.
        """

        async def work(tx: Tx) -> None:
            standing = await there(tx, name)
            require(match, standing.id, standing.version)
            await teams.delete(tx, standing.id)
            await _note(tx, caller, Action.DELETE, standing.id, {"slug": standing.slug})
            await forsake(tx, caller, Target(TargetKind.TEAM, standing.id))

        await self._database.write(work)
        self._signal.notify()


async def there(tx: Tx, name: str) -> Team:
    """The team of this id or slug.

    Raises:
        Missing: there is none.
    """
    found = await teams.find(tx, name)
    if found is None:
        raise Missing(f'There is no team "{name[:64]}".')
    return found


def _taken(slug: str) -> Conflict:
    return Conflict(f'There is a team "{slug}" already.', code="slug_taken", data={"slug": slug})


def _applied(draft: TeamDraft, team: Team) -> Team:
    return replace(
        team,
        name=draft.name,
        nodes=draft.nodes,
        output=draft.output,
        daily_cap=draft.daily_cap,
        limits=draft.limits,
        enabled=draft.enabled,
    )


async def _judge(tx: Tx, form: Form, draft: TeamDraft, team: Team) -> None:
    """Add the faults of the graph where it could be read and has to be sound, and raise what there is."""
    if draft.whole and team.enabled:
        known = await targets.live_agents(tx, {node.agent for node in team.nodes})
        form.faults += check(team, dict.fromkeys(known, True))
    form.finish()


async def _note(tx: Tx, caller: Caller, action: Action, team_id: str, detail: dict[str, object]) -> None:
    await audit.append(
        tx, actor=caller.actor, action=action, subject_kind="team", subject_id=team_id, detail=detail
    )
