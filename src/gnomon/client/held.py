"""A task while it is held: its record, its fence, its report; the contexts that end it one way or another (BRD-3).

Leaving the context reports what the body did not: an error blocks the task with the error as its note, a worker that
was stopped gives it back, and a body that forgot to report is told so. A lease that was lost is raised.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from gnomon.client import board, flows
from gnomon.client.board import Claim, Report, Status, Task
from gnomon.client.errors import ClientError, LeaseLost, NotReported
from gnomon.client.http import AsyncHttp, Http
from gnomon.client.renewing import Renewal, Try

LAST_WORD_SECONDS = 10.0
_LONGEST_LOOK = 5.0


class _Held:
    """What both faces know of a claim. Its lease is renewed from the moment this is made."""

    def __init__(self, claim: Claim, ask: Try, on_lost: Callable[[], None]) -> None:
        self._claim = claim
        self._renewal = Renewal(claim, ask, on_lost)
        self._reported = False
        self._renewal.start()

    @property
    def task(self) -> Task:
        """The task as it was claimed (CONTRACT, "Task")."""
        return self._claim.task

    @property
    def fence(self) -> int:
        """The number of this grant: give it to whatever the work writes to."""
        return self._claim.fence

    @property
    def verify_first(self) -> bool:
        """Whether somebody may have done half of it: look what is there before doing it again (BRD-6)."""
        return self._claim.verify_first

    @property
    def last_report(self) -> Task | None:
        """What was reported last before this claim, by whom and when; or ``None``."""
        return self._claim.task.get("last_report")

    @property
    def is_reported(self) -> bool:
        """Whether a report released the task."""
        return self._reported

    @property
    def is_lost(self) -> bool:
        """Whether the task is no longer this worker's."""
        return not self._reported and self._renewal.lost is not None

    @property
    def seconds_left(self) -> float:
        """How long nobody else can have the task, at the least; nothing once the server has said so."""
        return self._renewal.seconds_left()

    def check(self) -> None:
        """Go on only while the task is held.

        Raises:
            LeaseLost: it is not.
        """
        if not self._reported and (lost := self._renewal.lost) is not None:
            raise lost

    def note(self, text: str) -> None:
        """Say with the next renewal how far the work is; the next holder would read it (BRD-6). Costs nothing."""
        self._renewal.note = board.excerpt(text)

    def stop(self) -> None:
        """Renew no more, and say nothing: the lease ends by itself."""
        self._renewal.stop()

    def _begin_report(self) -> float:
        """How long the report may take: as long as the task is ours."""
        if self._reported:
            raise RuntimeError(f"{self._claim.task_id} was reported already: a report is the release")
        self.check()
        self._renewal.is_reporting = True
        return max(LAST_WORD_SECONDS, self._renewal.seconds_left())

    def _end_report(self, error: ClientError | None) -> None:
        self._renewal.is_reporting = False
        if error is None:
            self._reported = True
            self._renewal.stop()
        elif isinstance(error, LeaseLost):
            self._renewal.lose(error)
            self._renewal.stop()

    def _noted(self, sent_at: float) -> None:
        self._renewal.renewed(sent_at)

    def _last_word(self, error: BaseException | None) -> Report | None:
        """What is left to report at the end of the context, if anything.

        Raises:
            LeaseLost: nothing can be reported any more.
        """
        if self._reported:
            return None
        if (lost := self._renewal.lost) is None:
            return board.unreported(error)
        self._renewal.stop()
        if _stops(error):
            return None
        raise lost from error

    def _forgot(self, error: BaseException | None) -> None:
        if error is None:
            raise NotReported(self._claim.task_id)

    def _unsaid(self, error: BaseException | None, failed: ClientError) -> None:
        """The last word did not get through: the lease will end by itself, and the error of the body matters more."""
        if error is None or (isinstance(failed, LeaseLost) and not _stops(error)):
            raise failed from error
        error.add_note(f"{self._claim.task_id} could not be reported as failed: {failed}")


def _stops(error: BaseException | None) -> bool:
    """Whether this is no failure but somebody stopping the worker, which nothing may hide."""
    return error is not None and not isinstance(error, Exception)


class Held(_Held):
    """A task that is held, sync. Use it as a context; it is renewed on a thread of its own."""

    def __init__(self, claim: Claim, http: Http, ask: Try) -> None:
        super().__init__(claim, ask, lambda: None)
        self._http = http

    def report(
        self, status: Status, *, note: str | None = None, result: Any = None, role: str | None = None
    ) -> None:
        """Report a status; it is the release (BRD-3). ``role`` hands the task over to another role.

        ``note`` is for people, ``result`` any JSON.

        Raises:
            LeaseLost: the task is not this worker's any more; nothing was changed.
            Refused: otherwise the server's no; the task is still held.
            Unreachable: nobody answered as long as the lease lasted.
        """
        patience = self._begin_report()
        try:
            said = Report(status, note, result, role)
            flows.follow(self._http, flows.report(self._claim, said), patience)
        except ClientError as error:
            self._end_report(error)
            raise
        self._end_report(None)

    def progress(self, note: str) -> None:
        """Say at once how far the work is, as ``note`` does later. It renews the lease as well."""
        self.check()
        self._noted(self._http.send(board.renew(self._claim, note)).sent_at)

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        word = self._last_word(error)
        if word is None:
            return
        try:
            flow = flows.report(self._claim, word)
            flows.follow(self._http, flow, LAST_WORD_SECONDS)
        except ClientError as failed:
            self._unsaid(error, failed)
        else:
            self._reported = True
        finally:  # whatever cuts the last word off: a lease that nobody holds is renewed no more
            self._renewal.stop()
        self._forgot(error)


class AsyncHeld(_Held):
    """A task that is held, async. As a context it cancels its body when the lease is lost, and raises ``LeaseLost``."""

    def __init__(self, claim: Claim, http: AsyncHttp, ask: Try) -> None:
        self._loop = asyncio.get_running_loop()
        self._body: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._interrupted = False
        self._watch: asyncio.TimerHandle | None = None
        self._http = http
        super().__init__(claim, ask, self._tell)

    async def report(
        self, status: Status, *, note: str | None = None, result: Any = None, role: str | None = None
    ) -> None:
        """Report a status; see ``Held.report``."""
        patience = self._begin_report()
        try:
            said = Report(status, note, result, role)
            await flows.follow_async(self._http, flows.report(self._claim, said), patience)
        except ClientError as error:
            self._end_report(error)
            raise
        except BaseException:
            self._renewal.is_reporting = False
            raise
        self._end_report(None)

    async def progress(self, note: str) -> None:
        """Say how far the work is; see ``Held.progress``."""
        self.check()
        self._noted((await self._http.send(board.renew(self._claim, note))).sent_at)

    async def __aenter__(self) -> Self:
        self.check()
        self._body = asyncio.current_task()
        assert self._body is not None
        self._cancelling = self._body.cancelling()
        self._look()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        error = await self._settle(error)
        word = self._last_word(error)
        if word is None:
            return
        try:
            flow = flows.report(self._claim, word)
            await flows.follow_async(self._http, flow, LAST_WORD_SECONDS)
        except ClientError as failed:
            self._unsaid(error, failed)
        else:
            self._reported = True
        finally:  # whatever cuts the last word off: a lease that nobody holds is renewed no more
            self._renewal.stop()
        self._forgot(error)

    async def _settle(self, error: BaseException | None) -> BaseException | None:
        """The body is over: take back a cancellation of ours; what remains is what the body itself raised."""
        body, self._body = self._body, None
        if self._watch is not None:
            self._watch.cancel()
        if not self._interrupted or body is None:
            return error
        ours = body.uncancel() <= self._cancelling
        if isinstance(error, asyncio.CancelledError):
            return None if ours else error
        with suppress(asyncio.CancelledError):  # ours, which the body ended too early to meet
            await asyncio.sleep(0)
        return error

    def _tell(self) -> None:
        """On the renewing thread: the lease is lost."""
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        """Cancel the body of a lost lease. Beside the thread, which may hang in a look-up of a name, the loop looks too."""
        if self._body is None or self._interrupted or self._reported:
            return
        if self.is_lost and not self._renewal.is_reporting:
            self._interrupted = True
            self._body.cancel("the lease of its task is lost")
            return
        if self._watch is not None:
            self._watch.cancel()
        # a machine that sleeps does not count its sleep as waiting, so no wait is long
        wait = min(self._renewal.seconds_to_end() + 0.05, _LONGEST_LOOK)
        self._watch = self._loop.call_later(wait, self._look)
