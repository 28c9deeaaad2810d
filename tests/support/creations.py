"""Every POST that makes something, with a body that makes it: what the tests of IDM-2 walk through, in this order."""

from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

_WRITER = {"slug": "writer", "runtime": {"kind": "llm", "model": "test"}}
_DAILY = {"unit": "day", "at": "09:00"}
_NIGHTLY = {"name": "nightly", "target": {"kind": "agent", "id": "writer"}, "cadence": _DAILY}
_DIGEST = {"slug": "digest", "role": "pm", "cadence": _DAILY, "dedup_key": "digest-{{date}}"}
# POST answers with 201 or 202, and makes nothing: asking again is answered alike, with a key or without.
MAKES_NOTHING = {
    "/v1/runs/{run}/cancel": "a run that was asked to stop is not asked again",
}


@dataclass(frozen=True, slots=True)
class Creation:
    """One address with a body that makes something there, and another body; ``{schedule}`` is one that was made."""

    path: str
    body: dict[str, Any]
    other: dict[str, Any] = field(default_factory=dict)
    status: int = 201


CREATIONS = (
    Creation("/v1/agents", _WRITER, _WRITER | {"name": "Other"}),
    Creation(
        "/v1/teams",
        {"slug": "pair", "nodes": [{"id": "a", "agent": "writer"}], "output": "a"},
        {"slug": "other", "nodes": [{"id": "a", "agent": "writer"}], "output": "a"},
    ),
    Creation("/v1/calendars", {"slug": "de", "dates": ["2030-12-25"]}, {"slug": "de"}),
    Creation("/v1/keys", {"scopes": ["agents:read"]}, {"scopes": ["teams:read"]}),
    Creation("/v1/schedules", _NIGHTLY, _NIGHTLY | {"query": "other"}),
    Creation("/v1/schedules/{schedule}/run", {}, {"an": "other"}, status=202),
    Creation("/v1/tasks", {"role": "pm", "title": "Write it"}, {"role": "pm", "title": "Write another"}),
    Creation("/v1/jobs", _DIGEST, _DIGEST | {"dedup_key": "other-{{date}}"}),
    Creation(
        "/v1/apply",
        {"agents": [{"slug": "hook", "runtime": {"kind": "http", "url": "https://example.com/"}}]},
        {"agents": []},
        status=200,
    ),
)


def makes(app: FastAPI) -> set[str]:
    """The addresses whose POST answers 201 or 202, by the application's own description."""
    return {
        path
        for path, operations in app.openapi()["paths"].items()
        if {"201", "202"} & operations.get("post", {}).get("responses", {}).keys()
    }


def creations(app: FastAPI) -> list[Creation]:
    """Those that this application has."""
    return [creation for creation in CREATIONS if creation.path in app.openapi()["paths"]]
