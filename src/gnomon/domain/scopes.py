"""Scopes: what a caller may do, as a closed list (SEC-1). ``*`` is all of them, ``noun:*`` all of one noun's."""

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    """One permission: the noun, then what is done to it."""

    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    AGENTS_INVOKE = "agents:invoke"
    TEAMS_READ = "teams:read"
    TEAMS_WRITE = "teams:write"
    TEAMS_INVOKE = "teams:invoke"
    SCHEDULES_READ = "schedules:read"
    SCHEDULES_WRITE = "schedules:write"
    SCHEDULES_RUN = "schedules:run"
    RUNS_READ = "runs:read"
    RUNS_CANCEL = "runs:cancel"
    RUNS_COMPLETE = "runs:complete"
    SESSIONS_READ = "sessions:read"
    SESSIONS_ERASE = "sessions:erase"
    TASKS_READ = "tasks:read"
    TASKS_WRITE = "tasks:write"
    TASKS_CLAIM = "tasks:claim"
    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    INSTANCES_READ = "instances:read"
    INSTANCES_WRITE = "instances:write"
    INSTANCES_CONNECT = "instances:connect"
    CALENDARS_READ = "calendars:read"
    CALENDARS_WRITE = "calendars:write"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"
    PRINCIPALS_READ = "principals:read"
    PRINCIPALS_WRITE = "principals:write"
    TENANTS_READ = "tenants:read"
    TENANTS_WRITE = "tenants:write"
    USAGE_READ = "usage:read"
    OVERVIEW_READ = "overview:read"
    AUDIT_READ = "audit:read"
    SETTINGS_READ = "settings:read"


EVERYTHING = "*"
NAMES: tuple[str, ...] = (
    EVERYTHING,
    *sorted({f"{scope.value.partition(':')[0]}:*" for scope in Scope}),
    *(scope.value for scope in Scope),
)


def allows(held: Iterable[str], wanted: str) -> bool:
    """Whether the scopes that a caller holds cover ``wanted``, which may itself be ``noun:*`` or ``*``."""
    noun = wanted.partition(":")[0]
    return any(scope in {EVERYTHING, wanted, f"{noun}:*"} for scope in held)


def beyond(held: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Which of the wanted scopes the held ones do not cover: nobody hands out more than they have."""
    mine = tuple(held)
    return [scope for scope in wanted if not allows(mine, scope)]
