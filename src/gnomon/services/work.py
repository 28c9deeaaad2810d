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
    after which nothing of it is written any more; ``ending`` while its outcome is being written and its target is over;
    ``usage`` is what the target reported so far.
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
    ending: bool = False
    usage: Usage | None = None


class Deadline(NamedTuple):
    """An instant (monotonic) at which runs are stopped; ``hard`` ends the wait for a target that ignores its cancel.

    ``number`` keeps those of one instant in their order, and the heap from comparing what can't be compared.
    """

    at: float
    number: int
    works: list[Work]
    hard: bool

    @property
    def left(self) -> list[Work]:
        """Those that have not ended."""
        return [work for work in self.works if not work.ended]


class Deadlines:
    """The deadlines of all runs in work, the nearest first; one for those of a batch that share it."""

    def __init__(self) -> None:
        self._heap: list[Deadline] = []
        self._numbers = itertools.count()
        self._watched = self._over = 0

    def add(self, at: float, works: list[Work], *, hard: bool = False) -> None:
        """Watch over ``works``."""
        heapq.heappush(self._heap, Deadline(at, next(self._numbers), works, hard))
        self._watched += len(works)

    def over(self, count: int) -> None:
        """So many runs are over: their deadlines lie there until they come, or until most of them are such."""
        self._over += count
        if self._over > _MANY and 2 * self._over > self._watched:
            self._heap = [deadline._replace(works=left) for deadline in self._heap if (left := deadline.left)]
            heapq.heapify(self._heap)
            self._watched, self._over = sum(len(deadline.works) for deadline in self._heap), 0

    def passed(self, now: float) -> list[Deadline]:
        """The deadlines that have come, with the runs that have not ended; those of which all have are dropped."""
        found = []
        while self._heap and (self._heap[0].at <= now or not self._heap[0].left):
            deadline = heapq.heappop(self._heap)
            self._watched -= len(deadline.works)
            if left := deadline.left:
                found.append(deadline._replace(works=left))
        return found

    def nearest(self) -> float | None:
        """The nearest deadline."""
        return self._heap[0].at if self._heap else None


class Works(dict[str, Work]):
    """The runs in work by their id, with their deadlines."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()

    def put_in(self, works: Iterable[Work]) -> list[Work]:
        """These begin now; those under an older fence that they took the place of, which are on their way out."""
        replaced: list[Work] = []
        alike: dict[int, list[Work]] = {}
        for work in works:
            grant = work.grant
            if grant.run_id in self:
                replaced.append(self[grant.run_id])
            self[grant.run_id] = work
            alike.setdefault(grant.timeout_seconds, []).append(work)
        for seconds, those in alike.items():
            self.deadlines.add(those[0].started_at + seconds, those)
        return replaced

    def of(self, grants: Iterable[Grant]) -> list[Work]:
        """The work under each of these grants, where it is still there: a run may be back under another one."""
        found = [(self.get(grant.run_id), grant) for grant in grants]
        return [work for work, grant in found if work is not None and work.grant is grant]

    def take_out(self, works: Iterable[Work]) -> list[Work]:
        """These have ended; those that were still there."""
        gone: list[Work] = []
        for work in works:
            work.ended = True
            if self.get(work.grant.run_id) is work:
                del self[work.grant.run_id]
                gone.append(work)
        self.deadlines.over(len(gone))
        return gone
