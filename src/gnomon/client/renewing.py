"""The thread that keeps one lease, for both faces: work that blocks, or blocks an event loop, can't starve it (BRD-2).

It renews at a third of the window. A refusal ends the lease at once; silence ends it when the worker's own clock says
so, before the server's does.
"""

import random
import threading
from collections.abc import Callable

from gnomon.adapters.clock import SystemClock
from gnomon.client import board
from gnomon.client.board import Claim
from gnomon.client.calls import Answer, Call, Unanswered
from gnomon.client.errors import LeaseLost, refused
from gnomon.client.lease import granted

_chance = random.SystemRandom().random
Try = Callable[[Call, float], Answer | Unanswered]


class Renewal:
    """Keeps the lease of one claim until it is stopped or lost.

    ``ask`` sends one try of one call, each phase within so many seconds. ``on_lost`` is called once, on this thread.
    While ``is_reporting``, a refused renewal is no loss: the report itself may have released the task. ``note`` goes with
    the next renewal.
    """

    def __init__(self, claim: Claim, ask: Try, on_lost: Callable[[], None]) -> None:
        self._claim = claim
        self._ask = ask
        self._on_lost = on_lost
        self._clock = SystemClock()
        self._lease = claim.lease
        self._stopped = threading.Event()
        self._lost: LeaseLost | None = None
        self._silence = "it was not renewed in time"
        self.is_reporting = False
        self.note: str | None = None

    def start(self) -> None:
        """Begin to renew."""
        threading.Thread(target=self._keep, name=f"renew-{self._claim.task_id}", daemon=True).start()

    def stop(self) -> None:
        """Renew no more. A renewal under way is not waited for."""
        self._stopped.set()

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is lost, or ``None``. The clock is asked too: a thread that stood still has told nobody."""
        if self._lost is None and not self._stopped.is_set() and self._lease.is_over(self._clock.monotonic()):
            self._lost = LeaseLost(self._claim.task_id, self._silence)
        return self._lost

    def lose(self, why: LeaseLost) -> None:
        """The lease is lost, as the server said to somebody else of this worker."""
        self._lost = self._lost or why

    def seconds_left(self) -> float:
        """How long the server keeps the task for this worker, at the least: nothing once it has refused."""
        if self._lost is not None and self._lost.because is not None:
            return 0.0
        return self._lease.seconds_left(self._clock.monotonic())

    def renewed(self, sent_at: float) -> None:
        """The lease was renewed by a request that was sent at ``sent_at``, in monotonic seconds."""
        if sent_at > self._lease.granted_at:
            self._lease = granted(self._lease.window_seconds, sent_at)

    def seconds_to_end(self) -> float:
        """How long the lease lasts by the worker's own clock."""
        return max(0.0, self._lease.ends_at - self._clock.monotonic())

    def _keep(self) -> None:
        while not self._stopped.wait(self._lease.wait(self._clock.monotonic())):
            now = self._clock.monotonic()
            if self.lost is None and self._lease.is_due(now):
                self._renew(now)
            if self.lost is not None:
                self._on_lost()
                return

    def _renew(self, now: float) -> None:
        note = self.note
        outcome = self._ask(board.renew(self._claim, note), self._lease.patience(now))
        if isinstance(outcome, Answer) and outcome.is_success:
            self.renewed(now)
            if self.note is note:
                self.note = None
            return
        if isinstance(outcome, Unanswered):
            self._failed(outcome.reason)
            return
        refusal = refused(outcome.status, outcome.body)
        if board.is_gone(refusal) and not self.is_reporting and not self._stopped.is_set():
            self._lost = LeaseLost(self._claim.task_id, refusal.detail, refusal)
        self._failed(str(refusal))

    def _failed(self, reason: str) -> None:
        self._silence = f"it could not be renewed in time: {reason}"
        self._lease = self._lease.failed(self._clock.monotonic(), _chance())
