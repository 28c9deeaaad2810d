"""What happens at failpoints: this process is killed, stopped, held up, or told that the database is gone (PRF-1).

For tests of the product and nothing else: ``wiring`` arms them where the settings name some, and production mode
refuses to start with any. Each one that springs is told in the log before it acts.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterable
from threading import Event, Lock

import structlog

from gnomon.domain.errors import Unavailable
from gnomon.domain.failpoint import Effect, Trap

_log = structlog.get_logger()


class Failpoints:
    """``ports.failpoints.Armed`` over this very process. Safe from any thread."""

    def __init__(self, traps: Iterable[Trap]) -> None:
        self._traps = tuple(traps)
        self._passed: Counter[str] = Counter()
        self._lock = Lock()
        self._never = Event()

    def reach(self, point: str) -> None:
        """See ``Armed.reach``."""
        with self._lock:
            self._passed[point] += 1
            passing = self._passed[point]
        for trap in self._traps:
            if trap.point == point and trap.springs(passing):
                _log.warning("failpoint", point=point, action=trap.action.value, passing=passing)
                self._spring(trap)

    def _spring(self, trap: Trap) -> None:
        if trap.action is Effect.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        elif trap.action is Effect.STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif (
            trap.action is Effect.DELAY
        ):  # the thread stands still with whatever it holds, as on a machine out of breath
            self._never.wait(trap.seconds)
        else:
            raise Unavailable(f"The failpoint {trap.point} was told to fail.", code="database_failed")
