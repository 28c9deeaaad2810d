"""What a list shows and where it stands: filters, and positions in orders that are not one id alone."""

from dataclasses import dataclass

from gnomon.domain.run import RunStatus, Trigger
from gnomon.domain.schedule import ScheduleStatus
from gnomon.domain.target import TargetKind
from gnomon.domain.task import Task, TaskStatus

EVER = 2**62  # later than every instant, in microseconds
LAST = "~"  # sorts after every id


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which schedules a list shows; ``None`` is no bound. ``target`` is an id or a slug."""

    status: ScheduleStatus | None = None
    target_kind: TargetKind | None = None
    target: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; ``None`` is no bound. ``target`` is an id or a slug."""

    status: RunStatus | None = None
    trigger: Trigger | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a list shows; ``None`` is no bound. ``holder`` is an instance's name or id."""

    role: str | None = None
    status: TaskStatus | None = None
    holder: str | None = None
    dedup_key: str | None = None

    def takes(self, task: Task) -> bool:
        """Whether a task is one of them."""
        holder = task.held_by
        return (
            self.role in (None, task.role)
            and self.status in (None, task.status)
            and self.dedup_key in (None, task.dedup_key)
            and (
                self.holder is None
                or (holder is not None and self.holder in (holder.instance, holder.instance_id))
            )
        )


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a list of one schedule's runs stands: it merges two orders, by slot and by id, each with its own place."""

    before_slot: int = EVER
    before_id: str = LAST
