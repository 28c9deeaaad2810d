"""The services behind the edges, one for each noun, each built once over the parts of one process."""

from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

from gnomon.cadence import zone_data_version
from gnomon.edges.http.services import Check, Readiness, Services
from gnomon.runtimes.checks import check_runtime
from gnomon.services.agents import Agents
from gnomon.services.api_keys import ApiKeys
from gnomon.services.apply import Apply
from gnomon.services.apply_parts import all_parts
from gnomon.services.audit_log import AuditLog
from gnomon.services.calendars import Calendars
from gnomon.services.doctor import Doctor
from gnomon.services.explain import Explain
from gnomon.services.gates import Gates
from gnomon.services.health import Health
from gnomon.services.holidays import realign_users
from gnomon.services.jobs import Jobs
from gnomon.services.overview import Overview
from gnomon.services.previews import Previews
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.sessions import Sessions
from gnomon.services.tasks import Tasks
from gnomon.services.teams import Teams
from gnomon.services.usage import Usage
from gnomon.settings import inventory
from gnomon.stores import migrations
from gnomon.wiring.parts import Parts


def build_services(parts: Parts, operator_token: str | None) -> Services:
    """Every service; ``operator_token`` is taken by the keys as one that may do everything."""
    database, clock, mint, signal = parts.link.database, parts.clock, parts.mint, parts.link.signal
    settings, entropy = parts.settings, parts.entropy
    schedules = Schedules(database=database, mint=mint, signal=signal)
    check = partial(check_runtime, allow_private=settings.allow_private_targets)
    agents = Agents(database, clock, mint, entropy, signal, check_runtime=check)
    teams = Teams(database, clock, mint, signal)
    calendars = Calendars(database, clock, mint, signal, on_changed=realign_users)
    jobs = Jobs(database, mint, signal)
    code = all_parts(
        calendar_service=calendars,
        agent_service=agents,
        team_service=teams,
        schedule_service=schedules,
        job_service=jobs,
    )
    return Services(
        agents=agents,
        teams=teams,
        calendars=calendars,
        api_keys=ApiKeys(database, clock, mint, entropy, operator_token=operator_token),
        sessions=Sessions(database),
        audit_log=AuditLog(database),
        previews=Previews(database),
        schedules=schedules,
        pausing=parts.pausing,
        run_now=RunNow(database=database, mint=mint, signal=signal, gates=Gates()),
        runs=Runs(database=database, signal=signal, closing=parts.engine.closing),
        tasks=_tasks(parts),
        jobs=jobs,
        triggers=parts.job_engine.triggers,
        instances=parts.pushed.instances,
        explain=Explain(database=database),
        apply=Apply(database=database, signal=signal, parts=code),
        doctor=_doctor(parts),
        overview=Overview(database, settings.heartbeat_timeout_seconds),
        usage=Usage(database),
        frames=_frames,
        settings=lambda: [asdict(entry) for entry in inventory(settings)],
        readiness=_readiness(parts),
    )


def _frames() -> dict[str, Any]:
    """The schema of the frames of ``/v1/connect``; they are loaded where instances connect, or where it is asked for."""
    from gnomon.edges.ws import frames  # noqa: PLC0415

    return frames.schema()


def _tasks(parts: Parts) -> Tasks:
    return Tasks(
        parts.link.database,
        parts.clock,
        parts.mint,
        parts.link.signal,
        lock_seconds=parts.settings.task_lock_seconds,
        heartbeat_timeout_seconds=parts.settings.heartbeat_timeout_seconds,
    )


def _doctor(parts: Parts) -> Doctor:
    return Doctor(
        database=parts.link.database,
        clock=parts.clock,
        heartbeat_timeout_seconds=parts.settings.heartbeat_timeout_seconds,
        zone_data=zone_data_version(),
        version=version("gnomon"),
    )


def _readiness(parts: Parts) -> Readiness:
    """Look at what OPS-5a names, in the words of the HTTP edge."""
    health = Health(
        database=parts.link.database,
        clock=parts.clock,
        tick_seconds=parts.settings.tick_seconds,
        dispatches=parts.dispatches,
        last_tick=parts.engine.last_tick,
        zone_data=zone_data_version(),
        migration=migrations.load("sqlite")[-1].number,
        hears=parts.link.hears,
    )

    async def readiness() -> list[Check]:
        return [Check(vital.name, vital.ok, vital.detail) for vital in await health.vitals()]

    return readiness
