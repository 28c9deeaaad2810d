"""A schedule's definition as JSON: read with every fault at once, written in one canonical form (SCH-4, SCH-12a).

Two definitions are the same where their canonical forms are; revisions, exports and the comparison of a save with what
stands all use it. Whether a target, a calendar or a session exists is not known here, nor what the present instant is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from gnomon.cadence import Cadence, CadenceError
from gnomon.domain import placeholders
from gnomon.domain.agent import TIMEOUT_SECONDS
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.fields import FieldReader, shown
from gnomon.domain.ids import Kind, is_id, is_slug
from gnomon.domain.instants import rfc3339
from gnomon.domain.retry import BACKOFF_MAX_SECONDS, BACKOFF_SECONDS, MAX_ATTEMPTS, RetryPolicy
from gnomon.domain.schedule import (
    FAILURE_LIMIT,
    JITTER_SECONDS,
    MAX_RUNS,
    MISFIRE_GRACE_SECONDS,
    NAME_CHARACTERS,
    QUERY_CHARACTERS,
    CatchUp,
    Definition,
    OnLost,
    Overlap,
    SessionMode,
)
from gnomon.domain.target import Target, TargetKind

FIELDS = (
    "name",
    "target",
    "cadence",
    "query",
    "session_mode",
    "session_id",
    "starts_at",
    "ends_at",
    "max_runs",
    "overlap",
    "catch_up",
    "misfire_grace_seconds",
    "timeout_seconds",
    "retry",
    "failure_limit",
    "on_lost",
    "jitter_seconds",
    "invoke_as",
    "scopes",
    "dedup_key",
)
_BY_ACTION = "is changed by /pause and /resume, not by a save"
READ_ONLY = {
    "status": _BY_ACTION,
    "status_detail": _BY_ACTION,
    **dict.fromkeys(
        (
            "id",
            "revision",
            "next_fire_at",
            "last_fire_at",
            "run_count",
            "failure_streak",
            "last_error",
            "in_flight_run_id",
            "created_at",
            "created_by",
            "updated_at",
            "updated_by",
        ),
        "is read-only",
    ),
}
DEDUP_KEY_CHARACTERS = (1, 500)
MOST_SCOPES = 50
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_SCOPE = re.compile(r"\*|[a-z][a-z_]{0,40}:(?:\*|[a-z][a-z_]{0,40})")
_DEFAULT = Definition("", Target(TargetKind.AGENT, ""), Cadence.parse({"unit": "day", "at": "00:00"}))


def parse(given: object) -> Definition:
    """Read a written definition (CONTRACT, "Schedule"). Absent and null fields take SCH-14's defaults.

    A ``fixed`` schedule without a session comes back with ``session_id`` ``None``: the service makes one (SCH-7).

    Raises:
        Invalid: with every fault, each at its field; those of the cadence under ``cadence.``.
    """
    if not isinstance(given, Mapping):
        raise Invalid([Fault("", f"a schedule is an object, not {shown(given)}")])
    reader = FieldReader(given)
    reader.only(FIELDS, READ_ONLY)
    target, cadence = _target(reader), _cadence(reader)
    definition = replace(
        _DEFAULT,
        name=reader.text("name", NAME_CHARACTERS),
        query=reader.text("query", QUERY_CHARACTERS),
        session_mode=reader.choice("session_mode", SessionMode, _DEFAULT.session_mode),
        session_id=_session_id(reader),
        starts_at=reader.maybe_instant("starts_at"),
        ends_at=reader.maybe_instant("ends_at"),
        max_runs=reader.maybe_integer("max_runs", MAX_RUNS),
        overlap=reader.choice("overlap", Overlap, _DEFAULT.overlap),
        catch_up=reader.choice("catch_up", CatchUp, _DEFAULT.catch_up),
        misfire_grace_seconds=reader.maybe_integer("misfire_grace_seconds", MISFIRE_GRACE_SECONDS),
        timeout_seconds=reader.integer("timeout_seconds", TIMEOUT_SECONDS, _DEFAULT.timeout_seconds),
        retry=_retry(reader),
        failure_limit=reader.integer("failure_limit", FAILURE_LIMIT, _DEFAULT.failure_limit),
        on_lost=reader.choice("on_lost", OnLost, _DEFAULT.on_lost),
        jitter_seconds=reader.integer("jitter_seconds", JITTER_SECONDS, 0),
        invoke_as=_email(reader),
        scopes=_scopes(reader),
        dedup_key=reader.maybe_text("dedup_key", DEDUP_KEY_CHARACTERS),
    )
    _template(reader, "query", definition.query)
    _template(reader, "dedup_key", definition.dedup_key or "")
    _together(reader, definition)
    if reader.faults or target is None or cadence is None:
        raise Invalid(reader.faults)
    return replace(definition, target=target, cadence=cadence)


def to_json(definition: Definition) -> dict[str, Any]:
    """The canonical form: every field, defaults filled in; ``parse`` reads it back as an equal definition."""
    return {
        "name": definition.name,
        "target": {"kind": definition.target.kind.value, "id": definition.target.id},
        "cadence": definition.cadence.to_json(),
        "query": definition.query,
        "session_mode": definition.session_mode.value,
        "session_id": definition.session_id,
        "starts_at": None if definition.starts_at is None else rfc3339(definition.starts_at),
        "ends_at": None if definition.ends_at is None else rfc3339(definition.ends_at),
        "max_runs": definition.max_runs,
        "overlap": definition.overlap.value,
        "catch_up": definition.catch_up.value,
        "misfire_grace_seconds": definition.misfire_grace_seconds,
        "timeout_seconds": definition.timeout_seconds,
        "retry": asdict(definition.retry),
        "failure_limit": definition.failure_limit,
        "on_lost": definition.on_lost.value,
        "jitter_seconds": definition.jitter_seconds,
        "invoke_as": definition.invoke_as,
        "scopes": list(definition.scopes),
        "dedup_key": definition.dedup_key,
    }


def canonical(definition: Definition) -> str:
    """The canonical form as text, as revisions keep it."""
    return json.dumps(to_json(definition), separators=(",", ":"), ensure_ascii=False)


def edited(standing: Definition, patch: object) -> Definition:
    """The definition after an edit: a field in ``patch`` replaces what stands, null brings its default back.

    ``retry`` is merged field by field; ``target`` and ``cadence`` are replaced whole. A cadence that names no anchor
    keeps the one that stands, so that an edit never moves the phase (CAD-5).

    Raises:
        Invalid: with every fault.
    """
    if not isinstance(patch, Mapping):
        raise Invalid([Fault("", f"an edit is an object, not {shown(patch)}")])
    merged: dict[str, Any] = {**to_json(standing), **patch}
    if isinstance(patch.get("retry"), Mapping):
        merged["retry"] = {**asdict(standing.retry), **patch["retry"]}
    if merged.get("session_mode") in {None, SessionMode.FRESH.value} and "session_id" not in patch:
        merged["session_id"] = None
    found = parse(merged)
    if found.cadence.anchor is None and standing.cadence.anchor is not None:
        found = replace(found, cadence=replace(found.cadence, anchor=standing.cadence.anchor))
    return found


def timing(definition: Definition) -> tuple[object, ...]:
    """What decides which slots there are; where it is equal, the slots are."""
    return definition.cadence, definition.starts_at, definition.ends_at, definition.max_runs


def _target(reader: FieldReader) -> Target | None:
    value = reader.get("target")
    if not isinstance(value, Mapping):
        reader.fault(
            "target",
            'must be an object such as {"kind": "agent", "id": "…"}' if value is not None else "is needed",
        )
        return None
    inner = FieldReader(value, "target.")
    inner.only(("kind", "id"), {})
    kind = value.get("kind")
    if kind not in {member.value for member in TargetKind}:
        inner.fault("kind", f"must be one of {', '.join(TargetKind)}, not {shown(kind)}")
    name = inner.text("id", (1, 64))
    if name and not (is_slug(name) or any(is_id(prefix, name) for prefix in (Kind.AGENT, Kind.TEAM))):
        inner.fault("id", f"must be the id or the slug of a target, not {shown(name)}")
    reader.faults += inner.faults
    return None if inner.faults else Target(TargetKind(str(kind)), name)


def _cadence(reader: FieldReader) -> Cadence | None:
    value = reader.get("cadence")
    if value is None:
        reader.fault("cadence", "is needed")
        return None
    try:
        return Cadence.parse(value)
    except CadenceError as error:
        for fault in error.faults:
            reader.fault(f"cadence.{fault.field}" if fault.field else "cadence", fault.message)
        return None


def _retry(reader: FieldReader) -> RetryPolicy:
    value = reader.get("retry")
    default = RetryPolicy()
    if value is None:
        return default
    if not isinstance(value, Mapping):
        reader.fault("retry", f"must be an object, not {shown(value)}")
        return default
    inner = FieldReader(value, "retry.")
    inner.only(("max_attempts", "backoff_seconds", "backoff_max_seconds"), {})
    base = inner.integer("backoff_seconds", BACKOFF_SECONDS, default.backoff_seconds)
    most = inner.integer("backoff_max_seconds", BACKOFF_MAX_SECONDS, max(default.backoff_max_seconds, base))
    policy = RetryPolicy(inner.integer("max_attempts", MAX_ATTEMPTS, default.max_attempts), base, most)
    if not inner.faults and most < base:
        inner.fault("backoff_max_seconds", f"must not be below backoff_seconds, {base:,}")
    reader.faults += inner.faults
    return policy


def _template(reader: FieldReader, field: str, text: str) -> None:
    """A template over the slot: what it names must be known when it is saved (SCH-6, IDM-1)."""
    for name in placeholders.unknown(text):
        known = ", ".join(f"{{{{{known}}}}}" for known in placeholders.NAMES)
        reader.fault(field, f"unknown placeholder {{{{{name[:60]}}}}}; known are {known}")


def _session_id(reader: FieldReader) -> str | None:
    value = reader.get("session_id")
    if value is None:
        return None
    if not isinstance(value, str) or not is_id(Kind.SESSION, value):
        reader.fault("session_id", f"must be the id of a session (ses_…), not {shown(value)}")
        return None
    return value


def _email(reader: FieldReader) -> str | None:
    value = reader.maybe_text("invoke_as", (3, 254))
    if value is not None and (not _EMAIL.fullmatch(value) or ".." in value):
        reader.fault("invoke_as", f"must be an e-mail address, not {shown(value)}")
    return value


def _scopes(reader: FieldReader) -> tuple[str, ...]:
    value = reader.get("scopes")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_SCOPES:
        reader.fault("scopes", f"must be a list of at most {MOST_SCOPES} scopes, not {shown(value)}")
        return ()
    found: list[str] = []
    for index, scope in enumerate(value):
        if isinstance(scope, str) and _SCOPE.fullmatch(scope):
            found.append(scope)
        else:
            reader.fault(f"scopes[{index}]", f"must be a scope such as runs:read, not {shown(scope)}")
    return tuple(sorted(set(found)))


def _together(reader: FieldReader, definition: Definition) -> None:
    """Faults of fields that don't go together."""
    if definition.starts_at and definition.ends_at and definition.ends_at < definition.starts_at:
        reader.fault("ends_at", f"must not be before starts_at, {rfc3339(definition.starts_at)}")
    if definition.session_id is not None and definition.session_mode is SessionMode.FRESH:
        reader.fault(
            "session_id", "goes with session_mode fixed; a fresh schedule has a session for each run"
        )
