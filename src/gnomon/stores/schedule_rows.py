"""The rows of schedules as records and back: one column per field, the cadence in full and what of it has a column."""

import json

from gnomon.cadence import Cadence, Unit
from gnomon.domain.instants import from_micros, maybe_instant, maybe_micros
from gnomon.domain.retry import RetryPolicy
from gnomon.domain.run import RunError
from gnomon.domain.schedule import (
    CatchUp,
    Definition,
    OnLost,
    Overlap,
    Revision,
    Schedule,
    ScheduleStatus,
    SessionMode,
    StatusDetail,
)
from gnomon.domain.target import Target, TargetKind
from gnomon.stores.database import Row, Value


def schedule_from_row(row: Row) -> Schedule:
    """The record of a row."""
    error = (
        None if row["last_error_code"] is None else RunError(row["last_error_code"], row["last_error"] or "")
    )
    return Schedule(
        id=row["id"],
        definition=_definition(row),
        anchor_at=from_micros(row["anchor_at"]),
        status=ScheduleStatus(row["status"]),
        status_detail=StatusDetail(
            by=row["status_by"],
            at=from_micros(row["status_at"]),
            reason=row["status_reason"],
            until=maybe_instant(row["status_until"]),
        ),
        revision=row["revision"],
        next_fire_at=maybe_instant(row["next_fire_at"]),
        last_fire_at=maybe_instant(row["last_fire_at"]),
        run_count=row["run_count"],
        failure_streak=row["failure_streak"],
        last_error=error,
        in_flight_run_id=row["unfinished_run_id"],
        created_at=from_micros(row["created_at"]),
        created_by=row["created_by"],
        updated_at=from_micros(row["updated_at"]),
        updated_by=row["updated_by"],
    )


def revision_from_row(row: Row) -> Revision:
    """The record of a replaced revision's row."""
    return Revision(
        schedule_id=row["schedule_id"],
        revision=row["revision"],
        definition=json.loads(row["definition"]),
        author=row["author"],
        created_at=from_micros(row["created_at"]),
    )


def _definition(row: Row) -> Definition:
    return Definition(
        name=row["name"],
        target=Target(TargetKind(row["target_kind"]), row["target_id"]),
        cadence=Cadence.from_stored(row["cadence"]),
        query=row["query"],
        session_mode=SessionMode(row["session_mode"]),
        session_id=row["session_id"],
        starts_at=maybe_instant(row["starts_at"]),
        ends_at=maybe_instant(row["ends_at"]),
        max_runs=row["max_runs"],
        overlap=Overlap(row["overlap"]),
        catch_up=CatchUp(row["catch_up"]),
        misfire_grace_seconds=row["misfire_grace_seconds"],
        timeout_seconds=row["timeout_seconds"],
        retry=RetryPolicy(row["max_attempts"], row["backoff_seconds"], row["backoff_max_seconds"]),
        failure_limit=row["failure_limit"],
        on_lost=OnLost(row["on_lost"]),
        jitter_seconds=row["jitter_seconds"],
        invoke_as=row["invoke_as"],
        scopes=tuple(json.loads(row["scopes"])),
        dedup_key=row["dedup_key"],
    )


def columns(definition: Definition) -> dict[str, Value]:
    """A definition as the columns of its row."""
    cadence = definition.cadence
    uncounted = cadence.unit in {Unit.ONCE, Unit.CRON, Unit.RRULE}
    return {
        "name": definition.name,
        "target_kind": definition.target.kind.value,
        "target_id": definition.target.id,
        "cadence": json.dumps(cadence.to_json(), separators=(",", ":")),
        "unit": cadence.unit.value,
        "every": None if uncounted else cadence.every,
        "calendar": cadence.calendar,
        "query": definition.query,
        "session_mode": definition.session_mode.value,
        "session_id": definition.session_id,
        "starts_at": maybe_micros(definition.starts_at),
        "ends_at": maybe_micros(definition.ends_at),
        "max_runs": definition.max_runs,
        "overlap": definition.overlap.value,
        "catch_up": definition.catch_up.value,
        "misfire_grace_seconds": definition.misfire_grace_seconds,
        "timeout_seconds": definition.timeout_seconds,
        "max_attempts": definition.retry.max_attempts,
        "backoff_seconds": definition.retry.backoff_seconds,
        "backoff_max_seconds": definition.retry.backoff_max_seconds,
        "failure_limit": definition.failure_limit,
        "on_lost": definition.on_lost.value,
        "jitter_seconds": definition.jitter_seconds,
        "invoke_as": definition.invoke_as,
        "scopes": json.dumps(list(definition.scopes)),
        "dedup_key": definition.dedup_key,
    }
