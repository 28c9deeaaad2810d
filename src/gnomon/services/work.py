"""Runs in work: what a runner knows of each, and the heap of their deadlines."""

import asyncio
import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gnomon.domain.grant import Grant
from gnomon.domain.invocation import Usage

_MANY = 1_000


class Stopping(StrEnum):
    """Why a run in work is being stopped from outside."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    GIVEN_UP = (
        "given_up"  # the lease is lost, the process stops, or somebody else closed the run: write nothing
    )


@dataclass(slots=True)
class Work:
    """One run in work.

    ``started_at`` is monotonic; ``stopping`` is set before the task is cancelled; ``ended`` once its outcome is decided,
    after which nothing of it is written any more; ``usage`` is what the target reported so far.
    """

    grant: Grant
    started_at: float
    task: "asyncio.Task[None] | None" = None
    begun: bool = False
    invoked: bool = False
    deferred: bool = False
    stopping: Stopping | None = None
    cancelled_by: str | None = None
    ended: bool = False
    usage: Usage | None = None


class Deadline(NamedTuple):
    """An instant (monotonic) at which a run is stopped; ``hard`` ends the wait for a target that ignores its cancel.

    ``number`` keeps those of one instant in their order, and the heap from comparing what can't be compared.
    """

    at: float
    number: int
    work: Work
    hard: bool


class Deadlines:
    """The deadlines of all runs in work, the nearest first."""

    def __init__(self) -> None:
        self._heap: list[Deadline] = []
        self._numbers = itertools.count()
        self._over = 0

    def add(self, at: float, work: Work, *, hard: bool = False) -> None:
        """Watch over ``work``."""
        heapq.heappush(self._heap, Deadline(at, next(self._numbers), work, hard))

    def over(self, count: int) -> None:
        """So many runs are over: their deadlines lie there until they come, or until most of them are such."""
        self._over += count
        if self._over > _MANY and 2 * self._over > len(self._heap):
            self._heap = [deadline for deadline in self._heap if not deadline.work.ended]
            heapq.heapify(self._heap)
            self._over = 0

    def passed(self, now: float) -> list[Deadline]:
        """The deadlines that have come; those of runs that are over are dropped on the way."""
        found = []
        while self._heap and (self._heap[0].at <= now or self._heap[0].work.ended):
            deadline = heapq.heappop(self._heap)
            if not deadline.work.ended:
                found.append(deadline)
        return found

    def nearest(self) -> float | None:
        """The nearest deadline."""
        return self._heap[0].at if self._heap else None


class Works(dict[str, Work]):
    """The runs in work by their id, with their deadlines."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()

    def of(self, grants: Iterable[Grant]) -> list[Work]:
        """The work under each of these grants, where it is still there: a run may be back under another one."""
        found = [(self.get(grant.run_id), grant) for grant in grants]
        return [work for work, grant in found if work is not None and work.grant is grant]

    def take_out(self, works: Iterable[Work]) -> list[str]:
        """These have ended; the runs of those that were still there."""
        gone = []
        for work in works:
            work.ended = True
            if self.get(work.grant.run_id) is work:
                del self[work.grant.run_id]
                gone.append(work.grant.run_id)
        self.deadlines.over(len(gone))
        return gone
