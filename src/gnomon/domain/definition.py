"""A schedule's definition as JSON: read with every fault at once, written in one canonical form (SCH-4, SCH-12a).

Two definitions are the same where their canonical forms are; revisions, exports and the comparison of a save with what
stands all use it. Whether a target, a calendar or a session exists is not known here, nor what the present instant is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

from gnomon.cadence import Cadence
from gnomon.domain import dedup, placeholders, scopes
from gnomon.domain.agent import TIMEOUT_SECONDS
from gnomon.domain.cadence_form import read_cadence
from gnomon.domain.errors import Fault, Invalid
from gnomon.domain.form import Form
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
READ_ONLY = (
    "id",
    "status",
    "status_detail",
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
)
MOST_SCOPES = 50
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_DEFAULT = Definition("", Target(TargetKind.AGENT, ""), Cadence.parse({"unit": "day", "at": "00:00"}))


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition as far as it could be read: what has a fault stands at its default."""

    definition: Definition
    faults: tuple[Fault, ...] = ()

    def reads(self, *fields: str) -> bool:
        """Whether all of these fields could be read."""
        return not any(fault.field.partition(".")[0] in fields for fault in self.faults)


def parse(given: object) -> Definition:
    """Read a written definition (CONTRACT, "Schedule"). Absent and null fields take SCH-14's defaults.

    A ``fixed`` schedule without a session comes back with ``session_id`` ``None``: the service makes one (SCH-7).

    Raises:
        Invalid: with every fault, each at its field; those of the cadence under ``cadence.``.
    """
    draft = read(given)
    if draft.faults:
        raise Invalid(draft.faults)
    return draft.definition


def read(given: object) -> Draft:
    """As ``parse``, but with the faults beside what could be read: the service adds those that only it can see.

    Raises:
        Invalid: it is no object.
    """
    if not isinstance(given, Mapping):
        raise Invalid([Fault("", "a schedule is an object")])
    form = Form(given)
    form.only(FIELDS, READ_ONLY)
    target, cadence = _target(form), read_cadence(form)
    default = _DEFAULT
    definition = Definition(
        name=form.text("name", *NAME_CHARACTERS, required=True) or "",
        target=target or default.target,
        cadence=cadence or default.cadence,
        query=_query(form),
        session_mode=SessionMode(form.choice("session_mode", list(SessionMode)) or default.session_mode),
        session_id=_session_id(form),
        starts_at=form.instant("starts_at"),
        ends_at=form.instant("ends_at"),
        max_runs=form.integer("max_runs", *MAX_RUNS),
        overlap=Overlap(form.choice("overlap", list(Overlap)) or default.overlap),
        catch_up=CatchUp(form.choice("catch_up", list(CatchUp)) or default.catch_up),
        misfire_grace_seconds=form.integer("misfire_grace_seconds", *MISFIRE_GRACE_SECONDS),
        timeout_seconds=_integer(form, "timeout_seconds", TIMEOUT_SECONDS, default.timeout_seconds),
        retry=_retry(form),
        failure_limit=_integer(form, "failure_limit", FAILURE_LIMIT, default.failure_limit),
        on_lost=OnLost(form.choice("on_lost", list(OnLost)) or default.on_lost),
        jitter_seconds=_integer(form, "jitter_seconds", JITTER_SECONDS, 0),
        invoke_as=_email(form),
        scopes=_scopes(form),
        dedup_key=_dedup_key(form),
    )
    _together(form, definition)
    return Draft(definition, tuple(form.faults))


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


def revised(standing: Definition, patch: object) -> Draft:
    """The definition after an edit: a field in ``patch`` replaces what stands, null brings its default back.

    ``retry`` is merged field by field; ``target`` and ``cadence`` are replaced whole. A cadence that names no anchor
    keeps the one that stands, so that an edit never moves the phase (CAD-5).

    Raises:
        Invalid: it is no object.
    """
    if not isinstance(patch, Mapping):
        raise Invalid([Fault("", "an edit is an object")])
    merged: dict[str, Any] = {**to_json(standing), **patch}
    if isinstance(patch.get("retry"), Mapping):
        merged["retry"] = {**asdict(standing.retry), **patch["retry"]}
    if merged.get("session_mode") in {None, SessionMode.FRESH.value} and "session_id" not in patch:
        merged["session_id"] = None
    draft = read(merged)
    cadence, anchor = draft.definition.cadence, standing.cadence.anchor
    if cadence.anchor is None and anchor is not None:
        kept = replace(draft.definition, cadence=replace(cadence, anchor=anchor))
        return replace(draft, definition=kept)
    return draft


def timing(definition: Definition) -> tuple[object, ...]:
    """What decides which slots there are; where it is equal, the slots are."""
    return definition.cadence, definition.starts_at, definition.ends_at, definition.max_runs


def _integer(form: Form, field: str, bounds: tuple[int, int], default: int) -> int:
    found = form.integer(field, *bounds)
    return default if found is None else found


def _target(form: Form) -> Target | None:
    inner = form.part("target", required=True)
    if inner is None:
        return None
    inner.only(("kind", "id"))
    kind = inner.choice("kind", list(TargetKind), required=True)
    name = inner.text("id", 1, 64, required=True)
    if name is not None and not (is_slug(name) or is_id(Kind.AGENT, name) or is_id(Kind.TEAM, name)):
        inner.fault("id", "must be the id or the slug of a target")
        return None
    return None if kind is None or name is None else Target(TargetKind(kind), name)


def _retry(form: Form) -> RetryPolicy:
    default = RetryPolicy()
    inner = form.part("retry")
    if inner is None:
        return default
    inner.only(("max_attempts", "backoff_seconds", "backoff_max_seconds"))
    base = _integer(inner, "backoff_seconds", BACKOFF_SECONDS, default.backoff_seconds)
    most = _integer(inner, "backoff_max_seconds", BACKOFF_MAX_SECONDS, max(default.backoff_max_seconds, base))
    if most < base:
        inner.fault("backoff_max_seconds", f"must not be below backoff_seconds, {base:,}")
    return RetryPolicy(_integer(inner, "max_attempts", MAX_ATTEMPTS, default.max_attempts), base, most)


def _query(form: Form) -> str:
    query = form.text("query", *QUERY_CHARACTERS, line=False) or ""
    if "\x00" in query:  # one engine refuses it; kept whole or refused, never cut
        form.fault("query", "must not hold the character U+0000")
    try:
        query.encode()
    except UnicodeEncodeError:
        form.fault("query", "holds half a character (a lone surrogate)")
    for name in placeholders.unknown(query):  # refused when it is saved (SCH-6)
        known = ", ".join(f"{{{{{known}}}}}" for known in placeholders.NAMES)
        form.fault("query", f"unknown placeholder {{{{{name[:60]}}}}}; known are {known}")
    return query


def _dedup_key(form: Form) -> str | None:
    found = form.text("dedup_key", *dedup.TEMPLATE_CHARACTERS)
    for fault in dedup.check(found, dedup.Loop.SCHEDULE) if found is not None else ():
        form.fault(fault.field, fault.message)
    return found


def _session_id(form: Form) -> str | None:
    found = form.text("session_id", 1, 64)
    if found is not None and not is_id(Kind.SESSION, found):
        form.fault("session_id", "must be the id of a session (ses_…)")
        return None
    return found


def _email(form: Form) -> str | None:
    found = form.text("invoke_as", 3, 254)
    if found is not None and (not _EMAIL.fullmatch(found) or ".." in found):
        form.fault("invoke_as", "must be an e-mail address")
    return found


def _scopes(form: Form) -> tuple[str, ...]:
    found = form.texts("scopes", 0, MOST_SCOPES, 1, 100)
    for index, scope in enumerate(found):
        if scope not in scopes.NAMES:
            near = get_close_matches(scope, scopes.NAMES, 1)
            form.fault(
                f"scopes.{index}", "is no known scope" + (f'; did you mean "{near[0]}"?' if near else "")
            )
    return tuple(sorted(set(found)))


def _together(form: Form, definition: Definition) -> None:
    """Faults of fields that don't go together."""
    if definition.starts_at and definition.ends_at and definition.ends_at < definition.starts_at:
        form.fault("ends_at", f"must not be before starts_at, {rfc3339(definition.starts_at)}")
    if definition.session_id is not None and definition.session_mode is SessionMode.FRESH:
        form.fault("session_id", "goes with session_mode fixed; a fresh schedule has a session for each run")
