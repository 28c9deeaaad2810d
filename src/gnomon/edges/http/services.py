"""What the HTTP edge stands on: the services that its routes call, built by ``wiring`` and named here once.

Knows no web framework: a process that answers no HTTP has these services too. How a route comes by them, ``served`` knows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from gnomon.services.agents import Agents
from gnomon.services.api_keys import ApiKeys
from gnomon.services.apply import Apply
from gnomon.services.audit_log import AuditLog
from gnomon.services.calendars import Calendars
from gnomon.services.doctor import Doctor
from gnomon.services.explain import Explain
from gnomon.services.instances import Instances
from gnomon.services.jobs import Jobs
from gnomon.services.overview import Overview
from gnomon.services.pausing import Pausing
from gnomon.services.previews import Previews
from gnomon.services.run_now import RunNow
from gnomon.services.runs import Runs
from gnomon.services.schedules import Schedules
from gnomon.services.sessions import Sessions
from gnomon.services.tasks import Tasks
from gnomon.services.teams import Teams
from gnomon.services.triggers import Triggers
from gnomon.services.usage import Usage


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that readiness depends on: its name, whether it is well, a sentence for people."""

    name: str
    ok: bool
    detail: str = ""


Readiness = Callable[[], Awaitable[list[Check]]]


@dataclass(frozen=True, slots=True)
class Services:
    """The services, one for each noun.

    ``frames`` is the JSON schema of every frame of ``/v1/connect``; ``settings`` is the inventory of settings as JSON-safe rows (OPS-5); ``readiness`` looks at what OPS-5a names.
    """

    agents: Agents
    teams: Teams
    calendars: Calendars
    api_keys: ApiKeys
    sessions: Sessions
    audit_log: AuditLog
    previews: Previews
    schedules: Schedules
    pausing: Pausing
    run_now: RunNow
    runs: Runs
    tasks: Tasks
    jobs: Jobs
    triggers: Triggers
    explain: Explain
    apply: Apply
    doctor: Doctor
    overview: Overview
    usage: Usage
    instances: Instances
    frames: Callable[[], dict[str, Any]]
    settings: Callable[[], list[dict[str, Any]]]
    readiness: Readiness
