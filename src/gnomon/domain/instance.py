"""One live process of a role, by whatever it comes: a WebSocket that is held, or requests (JOB-5, BRD-4)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from gnomon.domain.form import Form
from gnomon.domain.instants import maybe_rfc3339, rfc3339

MOST_IN_FLIGHT = 1_000
NAME_CHARACTERS = 200


class InstanceStatus(StrEnum):
    """Whether an instance may be given work."""

    ONLINE = "online"
    DRAINING = "draining"  # finishes what it has, gets nothing new
    OFFLINE = "offline"  # said goodbye, or has been silent for the heartbeat's timeout


# From each status to the ones it may become. A new connection ends a drain that the instance itself had asked for; one
# that a person asked for lasts until it is offline.
TRANSITIONS: dict[InstanceStatus, frozenset[InstanceStatus]] = {
    InstanceStatus.ONLINE: frozenset({InstanceStatus.DRAINING, InstanceStatus.OFFLINE}),
    InstanceStatus.DRAINING: frozenset({InstanceStatus.ONLINE, InstanceStatus.OFFLINE}),
    InstanceStatus.OFFLINE: frozenset({InstanceStatus.ONLINE}),
}


@dataclass(frozen=True, slots=True)
class Instance:
    """The record of one instance: the same one whenever the same (role, name) comes again.

    ``epoch`` counts its connections; ``server`` is the process that holds the present one, ``None`` where there is none.
    ``in_flight`` counts what was pushed to it and has not ended.
    """

    id: str
    role: str
    name: str
    status: InstanceStatus
    epoch: int
    server: str | None
    version: str | None
    max_in_flight: int
    in_flight: int
    connected_at: datetime | None
    last_heartbeat_at: datetime
    drain_asked_at: datetime | None
    created_at: datetime


def read_name(form: Form, field: str) -> str | None:
    """The name of an instance, as it says it itself; its fault is the form's."""
    return form.text(field, 1, NAME_CHARACTERS, required=True)


def to_json(instance: Instance) -> dict[str, Any]:
    """The read form (CONTRACT, "Instance")."""
    return {
        "id": instance.id,
        "name": instance.name,
        "role": instance.role,
        "status": instance.status.value,
        "epoch": instance.epoch,
        "last_heartbeat_at": rfc3339(instance.last_heartbeat_at),
        "in_flight": instance.in_flight,
        "max_in_flight": instance.max_in_flight,
        "server": instance.server,
        "version": instance.version,
        "connected_at": maybe_rfc3339(instance.connected_at),
        "drain_asked_at": maybe_rfc3339(instance.drain_asked_at),
        "created_at": rfc3339(instance.created_at),
    }
