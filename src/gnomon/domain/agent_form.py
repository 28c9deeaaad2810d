"""The written and the read form of an agent and of limits (CONTRACT, "Agent and team").

Shape, ranges and what belongs together are judged here, all of it at once. What a runtime's address or program may be is
judged by the runtimes, and whether a slug is free by the store.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gnomon.domain.agent import (
    DAILY_CAP,
    TIMEOUT_SECONDS,
    TIMEOUT_SECONDS_DEFAULT,
    Agent,
    CommandRuntime,
    HttpRuntime,
    LlmRuntime,
    PythonRuntime,
    RoleRuntime,
    RuntimeSpec,
    runtime_to_json,
)
from gnomon.domain.form import Form
from gnomon.domain.ids import is_slug
from gnomon.domain.instants import rfc3339
from gnomon.domain.invocation import Limits

OUTPUT_BYTES = (1, 100_000_000)
MODEL_CALLS = (1, 1_000_000)
COST = (0.0, 1_000_000.0)
_WRITTEN = ("slug", "name", "runtime", "timeout_seconds", "daily_cap", "limits", "enabled")
_READ_ONLY = ("id", "version", "secret", "created_at", "created_by", "updated_at")
_RUNTIME_FIELDS = {
    "http": ("url", "headers"),
    "command": ("argv", "cwd", "env"),
    "python": ("path",),
    "llm": ("model", "instructions", "settings"),
    "role": ("role",),
}
_TEXT = 10_000


@dataclass(frozen=True, slots=True)
class AgentDraft:
    """An agent as far as it could be read: what has a fault has some value, or for ``runtime`` perhaps none."""

    slug: str
    name: str
    runtime: RuntimeSpec | None
    timeout_seconds: int
    daily_cap: int | None
    limits: Limits
    enabled: bool


def read(form: Form) -> AgentDraft:
    """An agent as far as it can be read; its faults are the form's."""
    form.only(_WRITTEN, _READ_ONLY)
    slug, name = read_names(form)
    runtime = form.part("runtime", required=True)
    return AgentDraft(
        slug=slug,
        name=name,
        runtime=None if runtime is None else read_runtime(runtime),
        timeout_seconds=form.integer("timeout_seconds", *TIMEOUT_SECONDS, default=TIMEOUT_SECONDS_DEFAULT)
        or TIMEOUT_SECONDS_DEFAULT,
        daily_cap=form.integer("daily_cap", *DAILY_CAP),
        limits=read_limits(form.part("limits")),
        enabled=form.boolean("enabled", default=True),
    )


def to_written(agent: Agent) -> dict[str, Any]:
    """The written form of a record: what a patch is laid over, and what an export holds."""
    return {
        "slug": agent.slug,
        "name": agent.name,
        "runtime": runtime_to_json(agent.runtime),
        "timeout_seconds": agent.timeout_seconds,
        "daily_cap": agent.daily_cap,
        "limits": limits_to_json(agent.limits),
        "enabled": agent.enabled,
    }


def to_json(agent: Agent, *, secret: str | None = None) -> dict[str, Any]:
    """The read form; ``secret`` is in it only where it is shown for the first and last time."""
    return {
        "id": agent.id,
        **to_written(agent),
        **({} if secret is None else {"secret": secret}),
        "version": agent.version,
        "created_at": rfc3339(agent.created_at),
        "created_by": agent.created_by,
        "updated_at": rfc3339(agent.updated_at),
    }


def read_names(form: Form) -> tuple[str, str]:
    """Slug and name; where one is missing it is made from the other."""
    slug = form.slug("slug")
    name = form.text("name", 1, 200)
    if slug is None and not form.has("slug"):
        slug = slug_of(name) if name else None
        if slug is None and (name or not form.has("name")):
            form.fault("slug", "is required")
    return slug or "", name or slug or ""


def slug_of(name: str) -> str | None:
    """A slug made from a name, or ``None`` where nothing of it can stand in one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].strip("-")
    return slug if is_slug(slug) else None


def read_runtime(form: Form) -> RuntimeSpec | None:
    """One of the five runtimes as far as it can be read; ``None`` where it is none of them."""
    kind = form.choice("kind", tuple(_RUNTIME_FIELDS), required=True)
    if kind is None:
        return None
    form.only(("kind", *_RUNTIME_FIELDS[kind]))
    return _READERS[kind](form)


def read_limits(form: Form | None) -> Limits:
    """The limits of one run; what is left out has none."""
    if form is None:
        return Limits()
    form.only(("output_bytes", "model_calls", "cost"))
    return Limits(
        output_bytes=form.integer("output_bytes", *OUTPUT_BYTES),
        model_calls=form.integer("model_calls", *MODEL_CALLS),
        cost=form.number("cost", *COST),
    )


def limits_to_json(limits: Limits) -> dict[str, Any]:
    """All three limits, null where there is none."""
    return {"output_bytes": limits.output_bytes, "model_calls": limits.model_calls, "cost": limits.cost}


def _http(form: Form) -> RuntimeSpec:
    url = form.text("url", 1, 2_000, required=True)
    return HttpRuntime(url or "", form.mapping("headers", 50, 4_000))


def _command(form: Form) -> RuntimeSpec:
    argv = form.texts("argv", 1, 100, 0, _TEXT, required=True, line=False)
    cwd = form.text("cwd", 1, 1_000)
    return CommandRuntime(argv, cwd, form.mapping("env", 100, _TEXT, line=False))


def _python(form: Form) -> RuntimeSpec:
    return PythonRuntime(form.text("path", 1, 300, required=True) or "")


def _llm(form: Form) -> RuntimeSpec:
    model = form.text("model", 1, 200, required=True)
    instructions = form.text("instructions", 0, 100_000, line=False)
    settings = form.part("settings")
    return LlmRuntime(model or "", instructions, {} if settings is None else dict(settings.given))


def _role(form: Form) -> RuntimeSpec:
    return RoleRuntime(form.slug("role", required=True) or "")


_READERS: Mapping[str, Callable[[Form], RuntimeSpec]] = {
    "http": _http,
    "command": _command,
    "python": _python,
    "llm": _llm,
    "role": _role,
}
