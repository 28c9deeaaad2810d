"""One attempt of a run: from its claim to how it ended, by the order of steps of RUN-2."""

import asyncio
from dataclasses import replace

import structlog

from gnomon.domain.instants import SECOND, from_micros
from gnomon.domain.invocation import Deferred, Failing, Result, TargetFailure, Usage
from gnomon.domain.retry import backoff_seconds
from gnomon.domain.run import RunError, RunStatus
from gnomon.ports import failpoints
from gnomon.ports.clock import Clock
from gnomon.services.ending import Ending
from gnomon.services.invoking import Invoker
from gnomon.services.renewal import Renewal
from gnomon.services.reporting import Reports
from gnomon.services.work import Stopping, Work

_log = structlog.get_logger()


class Attempts:
    """Runs attempts and judges their outcomes; writes nothing itself."""

    def __init__(
        self, *, clock: Clock, renewal: Renewal, invoker: Invoker, reports: Reports, process_id: str
    ) -> None:
        self._clock = clock
        self._renewal = renewal
        self._invoker = invoker
        self._reports = reports
        self._process_id = process_id

    async def run(self, work: Work) -> Ending | None:
        """The attempt's ending; ``None`` where the run is not ours to close any more.

        Cancelling it stops the target; ``work.stopping`` says what the ending is then.
        """
        try:
            answer = await self._invoke(work)
        except asyncio.CancelledError:
            if work.stopping is None:  # the loop is being torn down under us: the lease ends the run
                raise
            return self.stopped(work)
        except TargetFailure as failure:
            return self._failed(work, failure)
        except Exception as error:
            _log.exception("attempt_failed_inside", run_id=work.grant.run_id)
            return self._ending(
                work, RunStatus.FAILED, error=RunError("internal", f"{type(error).__name__}: {error}")
            )
        if answer is None:
            return None
        return self._ending(work, RunStatus.SUCCEEDED, output=answer.output, usage=answer.usage)

    async def _invoke(self, work: Work) -> Result | None:
        grant = work.grant
        deadline = from_micros(self._clock.micros() + grant.timeout_seconds * SECOND)
        prepared = await self._invoker.prepare(grant, deadline)
        failpoints.reach("invoke.prepared")
        # A process that stood still asks its own clock before it sends anything (RUN-5).
        if work.stopping is not None or not self._renewal.holds(grant.run_id):
            return None
        work.invoked = True
        failpoints.reach("invoke.sent")
        answer = await self._invoker.invoke(prepared, self._reports.reporter(work))
        failpoints.reach("invoke.answered")
        if isinstance(answer, Deferred):
            await self._invoker.defer(grant)
            work.deferred = True
            # nothing more to do here until it is completed, cancelled or out of time
            await asyncio.get_running_loop().create_future()
        assert isinstance(answer, Result)
        return answer

    def stopped(self, work: Work) -> Ending | None:
        """The ending of a run that was stopped from outside; ``None`` where nothing may be written."""
        if work.stopping is Stopping.TIMEOUT:
            limit = work.grant.timeout_seconds
            error = RunError(Failing.TIMEOUT.value, f"The run was stopped after its timeout of {limit} s.")
            return self._or_again(work, self._ending(work, RunStatus.TIMED_OUT, error=error), None)
        if work.stopping is Stopping.CANCEL:
            error = RunError("cancelled", f"Cancelled by {work.cancelled_by or 'a person'}.")
            return self._ending(work, RunStatus.CANCELLED, error=error)
        return None

    def _failed(self, work: Work, failure: TargetFailure) -> Ending:
        error = RunError(failure.code.value, failure.message)
        ending = self._ending(work, RunStatus.FAILED, error=error, usage=failure.usage)
        return self._or_again(work, ending, failure.retry_after) if failure.retryable else ending

    def _or_again(self, work: Work, ending: Ending, retry_after: float | None) -> Ending:
        """The ending, or the next attempt after its backoff, where the policy has one left."""
        grant = work.grant
        if grant.attempt >= grant.retry.max_attempts:
            return ending
        pause = float(backoff_seconds(grant.retry, grant.attempt))
        if retry_after is not None:  # the target knows better, but the lease was computed for the cap
            pause = max(pause, min(retry_after, grant.retry.backoff_max_seconds))
        return replace(ending, retry_in_us=round(pause * SECOND))

    def _ending(
        self,
        work: Work,
        status: RunStatus,
        *,
        output: str | None = None,
        usage: Usage | None = None,
        error: RunError | None = None,
    ) -> Ending:
        seconds = max(0.0, self._clock.monotonic() - work.started_at)
        return Ending(work.grant, self._process_id, status, output, usage or work.usage, error, seconds)
