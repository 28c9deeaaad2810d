"""The protocol that every kind of agent is driven through: one small door for http, command, python, llm and role."""

from typing import Protocol

from gnomon.domain.agent import RuntimeSpec
from gnomon.domain.invocation import Deferred, Invocation, Result, Usage


class Reporter(Protocol):
    """Where a runtime tells what happens while it works (TGT-2). Every method is cheap and safe from any thread."""

    def progress(self, text: str) -> None:
        """A line of progress for the run's event stream."""
        ...

    def usage(self, usage: Usage) -> None:
        """Usage so far, in total for this attempt; it is kept even if the attempt is killed."""
        ...

    def process_started(self, pgid: int) -> None:
        """A process group works for this run: it is killed if the lease is lost, even from another thread (RUN-5)."""
        ...

    def process_ended(self, pgid: int) -> None:
        """The group is gone."""
        ...


class Runtime(Protocol):
    """One adapter, for one kind of runtime."""

    async def invoke(
        self, spec: RuntimeSpec, secret: str | None, invocation: Invocation, reporter: Reporter
    ) -> Result | Deferred:
        """Run one attempt to its end.

        Cancelling the task must stop the work: the adapter ends what it started (process group, connection) before
        it lets the cancellation through. The caller enforces the deadline by cancelling. ``secret`` is the agent's
        signing secret where it has one.

        Raises:
            TargetFailure: the attempt failed; it says whether another try makes sense.
        """
        ...

    async def close(self) -> None:
        """Give back what the adapter holds (connections, threads)."""
        ...
