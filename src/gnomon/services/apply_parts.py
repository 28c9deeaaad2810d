"""The sections of a document (SCH-13): calendars, agents and teams by slug, schedules by target and name.

Jobs are in ``apply_jobs``.
"""

from collections.abc import Mapping
from typing import Any

from gnomon.cadence import Unit
from gnomon.domain import agent_form, calendar, team_form
from gnomon.domain import definition as definitions
from gnomon.domain.agent import Agent
from gnomon.domain.caller import Caller
from gnomon.domain.errors import Conflict
from gnomon.domain.filters import ScheduleFilter
from gnomon.domain.schedule import Schedule, ScheduleStatus
from gnomon.domain.scopes import Scope
from gnomon.domain.target import Target, TargetKind
from gnomon.domain.team import Team
from gnomon.services.agents import Agents
from gnomon.services.apply import Part, Put, changes
from gnomon.services.apply_forms import BATCH, every, slug_given, sparse
from gnomon.services.apply_jobs import JobPart
from gnomon.services.calendars import Calendars
from gnomon.services.jobs import Jobs
from gnomon.services.schedules import Schedules, target_of
from gnomon.services.teams import Teams
from gnomon.stores import agents, calendars, schedules, teams
from gnomon.stores.database import Tx

_WHOLE = frozenset({"target", "cadence", "env", "headers"})
_NOTHING: frozenset[str] = frozenset()


class CalendarPart:
    """Holiday calendars."""

    section = "calendars"
    writes, reads = Scope.CALENDARS_WRITE, Scope.CALENDARS_READ

    def __init__(self, service: Calendars) -> None:
        self._service = service

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """Its slug."""
        return slug_given(given)

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """See ``Part.put``."""
        key = slug_given(given)
        standing = await calendars.find(tx, key) if key else None
        if standing is None:
            made = await self._service.create_in(tx, caller, given)
            return Put(made.slug, made.id, None, calendar.to_written(made))
        before = calendar.to_written(standing)
        patch = changes(before, {"slug": standing.slug, **given}, _NOTHING)
        saved = await self._service.edit_in(tx, caller, standing.id, patch)
        return Put(saved.slug, saved.id, before, calendar.to_written(saved))

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """See ``Part.export``."""
        found = await every(lambda after: calendars.page(tx, after, BATCH), lambda record: record.id)
        return [calendar.to_written(record) for record in sorted(found, key=lambda record: record.slug)]


class AgentPart:
    """Agents."""

    section = "agents"
    writes, reads = Scope.AGENTS_WRITE, Scope.AGENTS_READ

    def __init__(self, service: Agents) -> None:
        self._service = service

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """Its slug."""
        return slug_given(given)

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """See ``Part.put``."""
        key = slug_given(given)
        standing = await agents.find(tx, key) if key else None
        if standing is None:
            made = await self._service.create_in(tx, caller, self._service.read(given))
            return Put(made.agent.slug, made.agent.id, None, agent_form.to_written(made.agent), made.secret)
        before = agent_form.to_written(standing)
        patch = changes(before, {"slug": standing.slug, **given}, _NOTHING)
        saved = await self._service.edit_in(tx, caller, standing.id, patch)
        return Put(saved.agent.slug, standing.id, before, agent_form.to_written(saved.agent), saved.secret)

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """See ``Part.export``."""
        found = await every(lambda after: agents.page(tx, after, BATCH), lambda record: record.id)
        found.sort(key=lambda record: record.slug)
        return [sparse(agent_form.to_written(record), {"enabled": True}) for record in found]


class TeamPart:
    """Teams; their nodes name agents by slug."""

    section = "teams"
    writes, reads = Scope.TEAMS_WRITE, Scope.TEAMS_READ

    def __init__(self, service: Teams) -> None:
        self._service = service

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """Its slug."""
        return slug_given(given)

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """See ``Part.put``."""
        key = slug_given(given)
        standing = await teams.find(tx, key) if key else None
        if standing is None:
            made = await self._service.create_in(tx, caller, given)
            return Put(made.slug, made.id, None, team_form.to_written(made))
        before = team_form.to_written(standing)
        spelled = await _as_it_stands(tx, standing, {"slug": standing.slug, **given})
        patch = changes(before, spelled, _NOTHING)
        saved = await self._service.edit_in(tx, caller, standing.id, patch)
        return Put(saved.slug, saved.id, before, team_form.to_written(saved))

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """See ``Part.export``."""
        found = await every(lambda after: teams.page(tx, after, BATCH), lambda record: record.id)
        found.sort(key=lambda record: record.slug)
        slugs = {agent.id: agent.slug for agent in await _every_agent(tx)}
        written = [sparse(team_form.to_written(record), {"enabled": True}) for record in found]
        for team in written:
            team["nodes"] = [
                {**node, "agent": slugs.get(node["agent"], node["agent"])} for node in team["nodes"]
            ]
        return written


class SchedulePart:
    """Schedules. Two of one target with one name can't be told apart, and are refused."""

    section = "schedules"
    writes, reads = Scope.SCHEDULES_WRITE, Scope.SCHEDULES_READ

    def __init__(self, service: Schedules) -> None:
        self._service = service

    def key_of(self, given: Mapping[str, Any]) -> str | None:
        """Its target and its name, as written."""
        target, name = given.get("target"), given.get("name")
        if not isinstance(target, Mapping) or not isinstance(name, str):
            return None
        return f"{target.get('kind')}/{target.get('id')}/{name}"

    async def put(self, tx: Tx, caller: Caller, given: Mapping[str, Any]) -> Put:
        """See ``Part.put``."""
        standing = await self._standing(tx, given)
        if standing is None:
            made = await self._service.create_in(tx, definitions.read(given), caller.actor)
            return Put(await _key(tx, made), made.id, None, definitions.to_json(made.definition))
        before = definitions.to_json(standing.definition)
        patch = changes(before, given, _WHOLE)
        if given.get("session_id") is None and given.get("session_mode") == standing.definition.session_mode:
            patch.pop("session_id", None)  # a session that was made for the schedule stays its own
        saved = await self._service.edit_in(tx, standing.id, patch, caller.actor)
        return Put(
            await _key(tx, saved.schedule),
            standing.id,
            before,
            definitions.to_json(saved.schedule.definition),
        )

    async def _standing(self, tx: Tx, given: Mapping[str, Any]) -> Schedule | None:
        parsed = definitions.read(given).definition  # its faults are told by whoever makes or edits it
        target = await target_of(tx, parsed.target.id, parsed.target.kind)
        if target is None:
            return None
        found = await schedules.of_target(tx, target, parsed.name)
        if len(found) > 1:
            ids = ", ".join(schedule.id for schedule in found)
            raise Conflict(
                f'There are {len(found)} schedules "{parsed.name}" of this target: {ids}. Give them names of their own.',
                code="ambiguous_name",
                data={"schedules": [schedule.id for schedule in found]},
            )
        return found[0] if found else None

    async def export(self, tx: Tx) -> list[dict[str, Any]]:
        """See ``Part.export``.

        Left out is what could not be made again: one-time schedules that are over, and those whose target is gone.
        """
        found = await every(
            lambda after: schedules.page(tx, ScheduleFilter(), after, BATCH), lambda record: record.id
        )
        lasting = [
            schedule
            for schedule in found
            if (
                schedule.status is not ScheduleStatus.COMPLETED
                or schedule.definition.cadence.unit is not Unit.ONCE
            )
            and await schedules.target_named(tx, schedule.definition.target) is not None
        ]
        written = [await _written(tx, schedule) for schedule in lasting]
        return sorted(written, key=lambda form: (form["target"]["kind"], form["target"]["id"], form["name"]))


def all_parts(
    *,
    calendar_service: Calendars,
    agent_service: Agents,
    team_service: Teams,
    schedule_service: Schedules,
    job_service: Jobs,
) -> tuple[Part, ...]:
    """Every section, in the order of need."""
    return (
        CalendarPart(calendar_service),
        AgentPart(agent_service),
        TeamPart(team_service),
        SchedulePart(schedule_service),
        JobPart(job_service),
    )


async def _as_it_stands(tx: Tx, standing: Team, given: Mapping[str, Any]) -> dict[str, Any]:
    """A team whose nodes name the same agents as the standing one names them: an id and its slug are one agent."""
    nodes = given.get("nodes")
    if not isinstance(nodes, list):
        return dict(given)
    slugs = {agent.id: agent.slug for agent in await _every_agent(tx)}
    names = {node.id: node.agent for node in standing.nodes}

    def spelled(node: Any) -> Any:
        if not isinstance(node, Mapping) or not isinstance(node.get("id"), str):
            return node
        stands = names.get(node["id"])
        same = stands is not None and node.get("agent") in {slugs.get(stands), stands}
        return {**node, "agent": stands} if same else node

    return {**given, "nodes": [spelled(node) for node in nodes]}


async def _every_agent(tx: Tx) -> list[Agent]:
    return await every(lambda after: agents.page(tx, after, BATCH), lambda record: record.id)


async def _key(tx: Tx, schedule: Schedule) -> str:
    target = schedule.definition.target
    return f"{target.kind.value}/{await _slug_of(tx, target)}/{schedule.definition.name}"


async def _slug_of(tx: Tx, target: Target) -> str:
    named = await schedules.target_named(tx, Target(TargetKind(target.kind), target.id))
    return target.id if named is None else named[1]


_DEFAULTS = definitions.to_json(
    definitions.parse({"name": "any", "target": {"kind": "agent", "id": "any"}, "cadence": {"unit": "hour"}})
)


async def _written(tx: Tx, schedule: Schedule) -> dict[str, Any]:
    full = definitions.to_json(schedule.definition)
    full["target"]["id"] = await _slug_of(tx, schedule.definition.target)
    always = {"name", "target", "cadence"}
    return {name: value for name, value in full.items() if name in always or value != _DEFAULTS[name]}
