"""Runs in work: what a runner knows of each, and the heap of their deadlines."""

import asyncio
import heapq
import itertools
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

    def over(self) -> None:
        """A run is over: its deadline lies there until it comes, or until most of them are such."""
        self._over += 1
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
