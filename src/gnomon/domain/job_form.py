"""The written and the read form of a job (CONTRACT, "Job"), every fault at once.

Whether a slug is free, a calendar there, or any slot to come is judged by the service.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gnomon.cadence import Cadence
from gnomon.domain import dedup
from gnomon.domain.agent_form import read_names
from gnomon.domain.cadence_form import read_cadence
from gnomon.domain.form import Form
from gnomon.domain.instants import maybe_rfc3339, rfc3339
from gnomon.domain.job import GRACE_SECONDS, PAYLOAD_CHARACTERS, Job, JobDraft

FIELDS = ("slug", "name", "role", "cadence", "payload", "dedup_key", "grace_seconds", "enabled")
_READ_ONLY = (
    "id",
    "version",
    "next_fire_at",
    "last_fire_at",
    "error",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
)
_ANY = Cadence.parse({"unit": "day", "at": "00:00"})


def read(form: Form) -> JobDraft:
    """A job as far as it can be read; its faults are the form's, and what has one stands at a default.

    A missing dedup key is a fault (IDM-1).
    """
    form.only(FIELDS, _READ_ONLY)
    slug, name = read_names(form)
    payload = _payload(form)
    return JobDraft(
        slug=slug,
        name=name,
        role=form.slug("role", required=True) or "",
        cadence=read_cadence(form) or _ANY,
        payload=payload,
        dedup_key=_dedup_key(form, payload),
        grace_seconds=form.integer("grace_seconds", *GRACE_SECONDS),
        enabled=form.boolean("enabled", default=True),
    )


def patched(standing: JobDraft, patch: Mapping[str, Any]) -> Form:
    """What stands with a patch laid over it: a field replaces what is there, null brings its default back."""
    return Form({**to_written(standing), **patch})


def with_anchor(draft: JobDraft, standing: JobDraft) -> JobDraft:
    """An edit that names no anchor keeps the one that stands, so that it never moves the phase (CAD-5)."""
    if draft.cadence.anchor is not None or standing.cadence.anchor is None:
        return draft
    return replace(draft, cadence=replace(draft.cadence, anchor=standing.cadence.anchor))


def to_written(draft: JobDraft) -> dict[str, Any]:
    """The written form: what a patch is laid over, and what an export holds."""
    return {
        "slug": draft.slug,
        "name": draft.name,
        "role": draft.role,
        "cadence": draft.cadence.to_json(),
        "payload": draft.payload,
        "dedup_key": draft.dedup_key,
        "grace_seconds": draft.grace_seconds,
        "enabled": draft.enabled,
    }


def to_json(job: Job) -> dict[str, Any]:
    """The read form."""
    return {
        "id": job.id,
        **to_written(job.written),
        "version": job.version,
        "next_fire_at": maybe_rfc3339(job.next_fire_at),
        "last_fire_at": maybe_rfc3339(job.last_fire_at),
        "error": job.error,
        "created_at": rfc3339(job.created_at),
        "created_by": job.created_by,
        "updated_at": rfc3339(job.updated_at),
        "updated_by": job.updated_by,
    }


def _payload(form: Form) -> Any:
    """Any JSON value; a missing one is an empty object. Kept whole or refused, never cut."""
    value = form.given.get("payload")
    if value is None:
        return {}
    length = len(json.dumps(value, separators=(",", ":")))
    if length > PAYLOAD_CHARACTERS:
        form.fault("payload", f"must have at most {PAYLOAD_CHARACTERS:,} characters as JSON, not {length:,}")
        return {}
    return value


def _dedup_key(form: Form, payload: Any) -> str:
    """The template that names a slot's effect (IDM-1)."""
    template = form.text("dedup_key", *dedup.TEMPLATE_CHARACTERS)
    if template is None:
        if not form.has("dedup_key"):
            form.fault(
                "dedup_key",
                "is required: the name under which a slot's effect may exist once, such as {{job}}-{{date}}",
            )
        return ""
    for fault in dedup.check(template, dedup.Loop.JOB, payload):
        form.fault(fault.field, fault.message)
    return template
