"""An agent: one callable that a schedule, a team's node or a key can fire (TGT-1)."""

from dataclasses import dataclass, field
from datetime import datetime

from gnomon.domain.invocation import Limits

TIMEOUT_SECONDS = (1, 86_400)  # SCH-14
TIMEOUT_SECONDS_DEFAULT = 300
DAILY_CAP = (1, 1_000_000)


@dataclass(frozen=True, slots=True)
class HttpRuntime:
    """A signed POST to ``url``; ``headers`` are added to each request."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandRuntime:
    """A program started as ``argv``, without a shell, in ``cwd``, with ``env`` added to a clean environment."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PythonRuntime:
    """An importable callable, ``module:callable``, sync or async."""

    path: str


@dataclass(frozen=True, slots=True)
class LlmRuntime:
    """A model by its name (``test`` answers offline), with instructions and the provider's settings."""

    model: str
    instructions: str | None = None
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoleRuntime:
    """One connected instance of a role."""

    role: str


RuntimeSpec = HttpRuntime | CommandRuntime | PythonRuntime | LlmRuntime | RoleRuntime


@dataclass(frozen=True, slots=True)
class Agent:
    """The record of one agent. ``version`` grows with each edit and is its ETag; ``secret`` signs http requests."""

    id: str
    slug: str
    name: str
    runtime: RuntimeSpec
    timeout_seconds: int
    daily_cap: int | None
    limits: Limits
    enabled: bool
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime
    secret: str | None = None
