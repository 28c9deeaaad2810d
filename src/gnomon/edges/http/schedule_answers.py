"""Schedules, their ledger, their revisions and explanations as JSON."""

from datetime import datetime
from typing import Any

from gnomon.cadence import Slot
from gnomon.domain import definition as definitions
from gnomon.domain.instants import from_micros, rfc3339
from gnomon.domain.run import RunError
from gnomon.domain.schedule import Revision, Schedule
from gnomon.services.explain import Explanation
from gnomon.services.timetable import Told


def instant(at: datetime | None) -> str | None:
    """An instant that may be missing."""
    return None if at is None else rfc3339(at)


def error_json(error: RunError | None) -> dict[str, str] | None:
    """An error that may be missing."""
    return None if error is None else {"code": error.code, "message": error.message}


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    """A schedule as it is read (CONTRACT, "Schedule")."""
    detail = schedule.status_detail
    return {
        "id": schedule.id,
        **definitions.to_json(schedule.definition),
        "status": schedule.status.value,
        "status_detail": {
            "by": detail.by,
            "at": rfc3339(detail.at),
            "reason": detail.reason,
            "until": instant(detail.until),
        },
        "revision": schedule.revision,
        "next_fire_at": instant(schedule.next_fire_at),
        "last_fire_at": instant(schedule.last_fire_at),
        "run_count": schedule.run_count,
        "failure_streak": schedule.failure_streak,
        "last_error": error_json(schedule.last_error),
        "in_flight_run_id": schedule.in_flight_run_id,
        "created_at": rfc3339(schedule.created_at),
        "created_by": schedule.created_by,
        "updated_at": rfc3339(schedule.updated_at),
        "updated_by": schedule.updated_by,
    }


def occurrence_json(told: Told) -> dict[str, Any]:
    """A record of the ledger (CONTRACT, "Occurrence")."""
    record = told.occurrence
    older = record.coalesced
    return {
        "schedule_id": record.schedule_id,
        "nominal_fire_at": rfc3339(record.nominal_fire_at),
        "local_time": told.local_time,
        "revision": record.revision,
        "disposition": record.disposition.value,
        "reason": None if record.reason is None else record.reason.value,
        "coalesced": None
        if older is None
        else {"first": rfc3339(older.first), "last": rfc3339(older.last), "count": older.count},
        "run_id": record.run_id,
        "session_id": record.session_id,
        "links_erased_at": instant(record.links_erased_at),
        "created_at": rfc3339(record.created_at),
    }


def revision_json(revision: Revision) -> dict[str, Any]:
    """One revision of a definition (SCH-4)."""
    return {
        "revision": revision.revision,
        "author": revision.author,
        "created_at": rfc3339(revision.created_at),
        "definition": revision.definition,
    }


def slot_json(slot: Slot) -> dict[str, Any]:
    """One slot to come, as the preview shows it (CAD-8)."""
    return {"at": rfc3339(slot.at), "local_time": slot.local_time, "offset": slot.offset, "note": slot.note}


def explanation_json(found: Explanation) -> dict[str, Any]:
    """The answer to why (DSP-9)."""
    status = found.status
    return {
        "schedule_id": found.schedule_id,
        "at": rfc3339(found.at),
        "local_time": found.local_time,
        "verdict": found.verdict.value,
        "sentence": found.sentence,
        "revision": found.revision,
        "occurrence": None if found.told is None else occurrence_json(found.told),
        "status": None
        if status is None
        else {
            "status": status.status,
            "at": rfc3339(from_micros(status.at)),
            "by": status.by,
            "reason": status.reason,
        },
        "before": instant(found.before),
        "after": instant(found.after),
    }
