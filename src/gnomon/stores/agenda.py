"""What lies ahead of the loops of a process, in one statement. One method per query of ``sql/agenda.sql``."""

from dataclasses import dataclass

from gnomon.stores.database import Tx


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is there at the instant ``now``; instants are microseconds of the database's clock, ``None``: nothing.

    ``slot_at`` and ``job_at`` are when the next slot is due, ``asked_run_at`` and ``slot_run_at`` when the next queued
    run of each priority may be claimed. ``cancelled``: somebody wants a run of this process to stop. ``trigger_waits``
    and ``trigger_held``: a trigger has no instance yet, or has one and is not over. ``lease_until`` is the first end of
    a run's lease, ``paused_until`` of a pause, ``lock_until`` of a claim of a task; ``claimable_role`` is of a task that
    can be claimed, ``instance_heard_at`` when an instance was heard of that is not offline, ``pushed_run`` one whose push
    is still written down.
    """

    now: int
    slot_at: int | None = None
    asked_run_at: int | None = None
    slot_run_at: int | None = None
    cancelled: str | None = None
    job_at: int | None = None
    trigger_waits: int | None = None
    trigger_held: str | None = None
    lease_until: int | None = None
    paused_until: int | None = None
    claimable_role: str | None = None
    lock_until: int | None = None
    instance_heard_at: int | None = None
    pushed_run: str | None = None


async def ahead(tx: Tx, process_id: str) -> Ahead:
    """What lies ahead of this process and of all."""
    row = await tx.one("agenda.ahead", process_id=process_id)
    assert row is not None
    return Ahead(**row)
