"""What a handler is given: the trigger or the invocation it is to work on, and whether it is to stop."""

import threading
from collections.abc import Callable
from typing import Any

from gnomon.client.errors import ClientError
from gnomon.client.frames import Trigger
from gnomon.client.session import Stop, Work
from gnomon.domain.invocation import Invocation


class Stopped(ClientError):  # noqa: N818 - named by what happened, as in errors.py
    """The work is to end before its time: it was cancelled, it is somebody else's now, or this instance ends."""

    def __init__(self, why: Stop) -> None:
        super().__init__(f"the work was stopped: {why.value}")
        self.why = why


class _Pushed:
    """What both kinds of pushed work have. A handler that is a coroutine is cancelled; a sync one looks here."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stopped = threading.Event()
        self._why: Stop | None = None

    @property
    def stopped(self) -> Stop | None:
        """Why this work is to stop, or ``None``."""
        return self._why

    def check(self) -> None:
        """Go on only while the work is wanted.

        Raises:
            Stopped: it is not any more.
        """
        if self._why is not None:
            raise Stopped(self._why)

    def wait_stopped(self, seconds: float) -> bool:
        """Wait for a stop, at most so long; whether it came."""
        return self._stopped.wait(seconds)

    def stop(self, why: Stop) -> None:
        """Ask for the end: the instance calls this."""
        self._why = self._why or why
        self._stopped.set()


class PushedTrigger(_Pushed):
    """A trigger of a job (JOB-2)."""

    trigger: Trigger

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        assert isinstance(work.subject, Trigger)
        self.trigger = work.subject

    @property
    def id(self) -> str:
        """The trigger's id: the same over all its pushes."""
        return self.trigger.id

    @property
    def payload(self) -> Any:
        """The job's payload, any JSON."""
        return self.trigger.payload

    @property
    def dedup_key(self) -> str:
        """The name of the effect: check for it before making it (IDM-2, IDM-3)."""
        return self.trigger.dedup_key


class PushedRun(_Pushed):
    """A run of an agent of kind ``role`` (TGT-1)."""

    invocation: Invocation

    def __init__(self, work: Work, say: Callable[[Work, str], None]) -> None:
        super().__init__(work)
        assert isinstance(work.subject, Invocation)
        self.invocation = work.subject
        self._say = say

    @property
    def id(self) -> str:
        """The run's id."""
        return self.invocation.run_id

    @property
    def fence(self) -> int:
        """The number of this attempt's lease: give it to whatever the work writes to."""
        return self.invocation.fence

    @property
    def idempotency_key(self) -> str:
        """The name of this run over all its attempts (RUN-6)."""
        return self.invocation.idempotency_key

    @property
    def query(self) -> str:
        """What is asked."""
        return self.invocation.query

    def progress(self, text: str) -> None:
        """Say how far it is (TGT-2). Nothing is said while there is no connection."""
        self._say(self._work, text)


Pushed = PushedTrigger | PushedRun
