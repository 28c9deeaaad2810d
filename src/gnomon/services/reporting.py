"""What targets report while they work: progress into the runs' event streams, usage, process groups (TGT-2).

Reports come from any thread and are gathered; they are written a few times a second, each under its run's fence, so that
a zombie's progress changes nothing.
"""

import asyncio
import json
from collections import deque

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.domain.invocation import Usage
from gnomon.ports.wakeup import Wakeup
from gnomon.services.renewal import Renewal
from gnomon.services.work import Work
from gnomon.stores import runs
from gnomon.stores.database import Database, Value

_log = structlog.get_logger()
GATHER_SECONDS = 0.2
MOST_EVENTS = 1_000  # of one run
BATCH = 500  # rows of one transaction: heartbeats and closes wait for the same lock
MOST_CHARACTERS = 2_000  # of one line


class Reports:
    """Gathers and writes the reports of all runs of a process."""

    def __init__(self, database: Database, renewal: Renewal, wakeup: Wakeup) -> None:
        self._database = database
        self._renewal = renewal
        self._wakeup = wakeup
        self._gathered: deque[dict[str, Value]] = deque(maxlen=50_000)
        self._flushing: asyncio.Task[None] | None = None

    @property
    def gathered(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._gathered)

    def reporter(self, work: Work) -> "RunReporter":
        """The reporter of one run in work."""
        return RunReporter(self, work, self._renewal, asyncio.get_running_loop())

    def add(self, run_id: str, fence: int, kind: str, data: dict[str, object]) -> None:
        """Gather one event; it is written soon."""
        self._gathered.append(
            {"run_id": run_id, "fence": fence, "kind": kind, "data": json.dumps(data), "most": MOST_EVENTS}
        )

    def say(self, run_id: str, fence: int, text: str) -> None:
        """Called on the loop: a line of progress of a run that may be held elsewhere; under an old fence it is nothing."""
        self.add(run_id, fence, "progress", {"text": text[:MOST_CHARACTERS]})
        self.flush_soon()

    def flush_soon(self) -> None:
        """Called on the loop: write what has gathered, after a moment."""
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_after_a_moment(), name="gnomon-report")

    async def flush(self) -> None:
        """Write what has gathered, now. What can't be written is dropped: reports are best effort."""
        if not self._gathered:
            return
        waiting = [self._gathered.popleft() for _ in range(len(self._gathered))]
        for begin in range(0, len(waiting), BATCH):
            await self._write(waiting[begin : begin + BATCH])
        self._wakeup.notify()

    async def _write(self, rows: list[dict[str, Value]]) -> None:
        try:
            await self._database.write_guarded(lambda tx: runs.events(tx, rows))
        except Unavailable as error:
            _log.warning("reports_dropped", events=len(rows), error=error.message)

    async def _flush_after_a_moment(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        await self.flush()


class RunReporter:
    """``ports.runtime.Reporter`` for one run."""

    __slots__ = ("_loop", "_renewal", "_reports", "_told", "_work")

    def __init__(
        self, reports: Reports, work: Work, renewal: Renewal, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._reports = reports
        self._work = work
        self._renewal = renewal
        self._loop = loop
        self._told = 0

    def progress(self, text: str) -> None:
        """See ``Reporter.progress``. What no stream would keep goes no further: a target may say a million lines."""
        self._told += 1
        if self._told > MOST_EVENTS:
            return
        grant = self._work.grant
        self._reports.add(grant.run_id, grant.fence, "progress", {"text": text[:MOST_CHARACTERS]})
        self._loop.call_soon_threadsafe(self._reports.flush_soon)

    def usage(self, usage: Usage) -> None:
        """See ``Reporter.usage``."""
        self._work.usage = usage

    def process_started(self, pgid: int) -> None:
        """See ``Reporter.process_started``."""
        self._renewal.add_group(self._work.grant.run_id, pgid)

    def process_ended(self, pgid: int) -> None:
        """See ``Reporter.process_ended``."""
        self._renewal.remove_group(self._work.grant.run_id, pgid)
