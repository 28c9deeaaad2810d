"""An agent: one callable that a schedule, a team's node or a key can fire (TGT-1)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

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


_KINDS: dict[str, type[RuntimeSpec]] = {
    "http": HttpRuntime,
    "command": CommandRuntime,
    "python": PythonRuntime,
    "llm": LlmRuntime,
    "role": RoleRuntime,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def runtime_to_json(spec: RuntimeSpec) -> dict[str, Any]:
    """The stored and outer form of a runtime, with its ``kind``; optional parts that are empty are left out."""
    given = {name: value for name, value in asdict(spec).items() if value is not None and value != {}}
    if "argv" in given:
        given["argv"] = list(given["argv"])  # it is read again as JSON would be, where a tuple is no list
    return {"kind": _NAMES[type(spec)], **given}


def runtime_from_json(stored: Mapping[str, Any]) -> RuntimeSpec:
    """The runtime that ``runtime_to_json`` wrote down; it is trusted."""
    given = {name: value for name, value in stored.items() if name != "kind"}
    if "argv" in given:
        given["argv"] = tuple(given["argv"])
    return _KINDS[stored["kind"]](**given)
