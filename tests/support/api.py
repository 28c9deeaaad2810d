"""The HTTP application over a real database, and a client that speaks to it without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gnomon.cadence import zone_data_version
from gnomon.domain.caller import system
from gnomon.edges.http.app import build_app
from gnomon.edges.http.services import Check, Services
from gnomon.edges.mcp.door import Door
from gnomon.edges.ws import frames
from gnomon.runtimes.checks import check_runtime
from gnomon.services.agents import Agents
from gnomon.services.api_keys import ApiKeys, NewKey
from gnomon.services.apply import Apply
from gnomon.services.apply_parts import all_parts
from gnomon.services.audit_log import AuditLog
from gnomon.services.calendars import Calendars
from gnomon.services.closing import Closing
from gnomon.services.connections import Connections
from gnomon.services.doctor import Doctor
from gnomon.services.explain import Explain
from gnomon.services.gates import Gates
from gnomon.services.holidays import realign_users
from gnomon.services.instances import Instances
from gnomon.services.jobs import Jobs
from gnomon.services.mint import Mint
from gnomon.services.overview import Overview
from gnomon.services.pausing import Pausing
from gnomon.services.previews import Previews
from gnomon.services.questions import Questions
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.sessions import Sessions
from gnomon.services.signal import Signal
from gnomon.services.tasks import Tasks
from gnomon.services.teams import Teams
from gnomon.services.triggers import Triggers
from gnomon.services.usage import Usage
from gnomon.stores.database import Database
from gnomon.testing.clock import FrozenClock, SeededEntropy
from gnomon.wiring.doors import mount
from gnomon.wiring.mcp import tool_services

AGENT = {"slug": "writer", "runtime": {"kind": "python", "path": "work:write"}}


@dataclass
class Api:
    """One application and what it stands on. ``checks`` is what readiness says."""

    app: FastAPI
    services: Services
    database: Database
    clock: FrozenClock
    door: Door
    checks: list[Check] = field(default_factory=list)

    def client(self, key: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """A client with this key."""
        given = {**headers, **({} if key is None else {"Authorization": f"Bearer {key}"})}
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app), base_url="http://gnomon.test", headers=given
        )

    async def key(self, *scopes: str, **written: Any) -> str:
        """The text of a new key with these scopes, or as it is written."""
        made = await self.services.api_keys.create(
            system("test"), written or {"name": "test", "scopes": list(scopes) or ["*"]}
        )
        assert isinstance(made, NewKey)
        return made.text


def services_over(database: Database, clock: FrozenClock, checks: list[Check]) -> Services:
    """Every service of the HTTP edge over one database."""
    entropy = SeededEntropy(7)
    mint, signal = Mint(clock, entropy), Signal()
    agents = Agents(
        database, clock, mint, entropy, signal, check_runtime=partial(check_runtime, allow_private=False)
    )
    teams = Teams(database, clock, mint, signal)
    calendars = Calendars(database, clock, mint, signal, on_changed=realign_users)
    schedules = Schedules(database=database, mint=mint, signal=signal)
    jobs = Jobs(database, mint, signal)
    parts = all_parts(
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
        api_keys=ApiKeys(database, clock, mint, entropy),
        sessions=Sessions(database),
        audit_log=AuditLog(database),
        previews=Previews(database),
        schedules=schedules,
        pausing=Pausing(database=database, signal=signal),
        run_now=RunNow(database=database, mint=mint, signal=signal, gates=Gates()),
        runs=Runs(database=database, signal=signal, closing=Closing(database, clock, signal)),
        tasks=Tasks(database, clock, mint, signal, lock_seconds=120, heartbeat_timeout_seconds=120),
        jobs=jobs,
        triggers=Triggers(database, Connections(), signal, heartbeat_timeout_seconds=120),
        explain=Explain(database=database),
        apply=Apply(database=database, signal=signal, parts=parts),
        doctor=Doctor(
            database=database,
            clock=clock,
            heartbeat_timeout_seconds=120,
            zone_data=zone_data_version(),
            version="test",
        ),
        instances=Instances(database, mint, signal, "prc_1"),
        frames=frames.schema,
        overview=Overview(database, 120),
        usage=Usage(database),
        settings=lambda: [{"name": "port", "value": 8420, "default": 8420, "origin": "default"}],
        readiness=partial(_as_they_are, checks),
    )


def api_over(database: Database, clock: FrozenClock) -> Api:
    """The application over one database."""
    checks = [Check("database", ok=True)]
    services = services_over(database, clock, checks)
    app = build_app(
        services, clock=clock, entropy=SeededEntropy(8), version="test", registry=CollectorRegistry()
    )
    questions = Questions(database, Mint(clock, SeededEntropy(9)), Signal())
    return Api(app, services, database, clock, mount(app, tool_services(services, questions), "test"), checks)


@asynccontextmanager
async def admin_of(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that may do everything."""
    async with api.client(await api.key()) as client:
        yield client


async def _as_they_are(checks: list[Check]) -> list[Check]:
    return list(checks)
