"""What the simulation's journal tells of the board, of jobs and of instances: which columns, and the triggers that note them."""

FIELDS: dict[str, tuple[str, ...]] = {
    "trigger": ("status", "instance_id", "epoch", "pushes"),
    "lock": ("instance_id", "fence", "expires_at"),
    "task": ("status", "fence"),
    "instance": ("epoch", "server", "status"),
    "job": ("next_fire_at", "enabled"),
}
_TABLES = {
    "trigger": ("triggers", "id"),
    "lock": ("task_locks", "task_id"),
    "task": ("tasks", "id"),
    "instance": ("instances", "id"),
    "job": ("jobs", "id"),
}


def _noted(kind: str, when: str, old: str | None, new: str | None) -> str:
    table, key = _TABLES[kind]
    row = new or old
    told = ", ".join(f"{side}.{name}" if side else "NULL" for side in (old, new) for name in FIELDS[kind])
    return (
        f"CREATE TRIGGER sim_{kind}_{when.lower()} AFTER {when} ON {table} BEGIN "
        f"SELECT sim_note('{kind}', {row}.{key}, NULL, NULL, {told}); END;"
    )


TRIGGERS = "\n".join(
    statement
    for kind in FIELDS
    for statement in (
        _noted(kind, "INSERT", None, "NEW"),
        _noted(kind, "UPDATE", "OLD", "NEW"),
        _noted(kind, "DELETE", "OLD", None),
    )
)
