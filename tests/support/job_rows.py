"""Bare rows of jobs, triggers and instances: the state that a test of pushed work starts from."""

from typing import Any

from gnomon.stores.database import Database
from support.rows import AT, SECOND, add

MINUTE = 60 * SECOND
JOB: dict[str, Any] = {
    "id": "job_" + "0" * 20,
    "slug": "digest",
    "name": "Digest",
    "role": "pm",
    "cadence": '{"unit":"minute","every":5,"zone":"UTC"}',
    "unit": "minute",
    "every": 5,
    "anchor_at": AT,
    "payload": '{"repo":"a/b"}',
    "dedup_key": "{{job}}-{{now}}",
    "enabled": 1,
    "version": 1,
    "next_fire_at": AT,
    "created_at": AT - MINUTE,
    "created_by": "test",
    "updated_at": AT - MINUTE,
    "updated_by": "test",
}
TRIGGER: dict[str, Any] = {
    "id": "trg_" + "0" * 20,
    "job_id": JOB["id"],
    "nominal_fire_at": AT,
    "dedup_key": "digest-1",
    "payload": '{"repo":"a/b"}',
    "status": "pending",
    "wait_until": AT + 150 * SECOND,
    "created_at": AT,
}
PUSHED: dict[str, Any] = {
    "status": "pushed",
    "instance_id": "ins_pm_a",
    "epoch": 1,
    "pushes": 1,
    "pushed_at": AT,
}
ACKNOWLEDGED: dict[str, Any] = {**PUSHED, "status": "acknowledged", "acknowledged_at": AT}


async def add_job(database: Database, **changes: Any) -> dict[str, Any]:
    """A job that is enabled and due at ``AT``."""
    if changes.get("enabled") == 0 or changes.get("deleted_at") is not None:
        changes.setdefault("next_fire_at", None)
    return await add(database, "jobs", JOB, **changes)


async def add_trigger(database: Database, **changes: Any) -> dict[str, Any]:
    """A trigger of that job's first slot, which waits for an instance."""
    return await add(database, "triggers", TRIGGER, **changes)


async def add_instance(
    database: Database, name: str = "a", role: str = "pm", **changes: Any
) -> dict[str, Any]:
    """An instance that ``prc_1`` holds the connection of, with room for ten."""
    row: dict[str, Any] = {
        "id": f"ins_{role}_{name}",
        "role": role,
        "name": name,
        "status": "online",
        "epoch": 1,
        "server": "prc_1",
        "max_in_flight": 10,
        "connected_at": AT,
        "last_heartbeat_at": AT,
        "created_at": AT,
    }
    return await add(database, "instances", row, **changes)
